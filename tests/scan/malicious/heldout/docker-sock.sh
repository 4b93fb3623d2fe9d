#!/bin/sh
curl --unix-socket /var/run/docker.sock http://localhost/containers/json
