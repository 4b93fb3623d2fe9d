#!/bin/bash
# The attacks, on fewer kinds of boxes: the usual one alone, and what an attack names for itself. The other kinds differ in what hutch does,
# not in what the kernel does, and each costs a minute here. This kernel is also the one without Landlock's newer parts.
set -u
export HUTCH_ESCAPE_VARIANTS=/ HUTCH_ESCAPE_LIMIT=120
exec "$HUTCH_SRC/tests/escape/run"
