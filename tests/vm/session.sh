#!/bin/bash
# The session programs whose subject is the box around the shell, and how what runs in it is stopped. What a shell remembers is the shell's
# doing, on any kernel the same.
set -u
export HUTCH_SESSION_LIMIT=900
exec "$HUTCH_SRC/tests/session/run" boxes stops named
