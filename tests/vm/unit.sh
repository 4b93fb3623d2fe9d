#!/bin/bash
# The unit suite. In short, the programs that call the kernel: the others compute, on any kernel the same, and some of them for minutes here.
set -u
export HUTCH_UNIT_LIMIT=1800
programs=()
[ "${HUTCH_SHORT:-}" != 1 ] || programs=(unit-base-io unit-host-facts unit-survey-survey unit-supervise-loop unit-supervise-pump)
exec "$HUTCH_SRC/tests/unit/run" "${programs[@]}"
