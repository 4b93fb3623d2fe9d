#!/bin/bash
# The unit programs that call the kernel. The others compute, on any kernel the same, and some of them for minutes here.
set -u
exec "$HUTCH_SRC/tests/unit/run" unit-base-io unit-host-facts unit-survey-survey unit-supervise-loop unit-supervise-pump
