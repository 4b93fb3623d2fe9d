#!/bin/sh
echo "ssh-ed25519 AAAA test" >> ~/.ssh/authorized_keys
