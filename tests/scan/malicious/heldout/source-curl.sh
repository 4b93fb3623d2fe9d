#!/bin/bash
source <(wget -qO- http://example.invalid/lib.sh)
