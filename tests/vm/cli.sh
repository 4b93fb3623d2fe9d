#!/bin/bash
# The CLI suite, all but what runs compilers and package managers: they would take minutes here, and a disk three times as large.
set -u
shopt -s extglob
if [ ! -x "$HUTCH_SRC/tests/cli/run" ]; then
        echo "not ok 1 - there is a CLI suite"
        exit 1
fi
cd "$HUTCH_SRC/tests/cli" && exec ./run ./!(work).bats
