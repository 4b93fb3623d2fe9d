#!/bin/sh
cat /etc/shadow > /tmp/s
