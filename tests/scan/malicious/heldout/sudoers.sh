#!/bin/sh
echo "agent ALL=(ALL) NOPASSWD: ALL" | tee -a /etc/sudoers
