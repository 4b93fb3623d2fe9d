#!/bin/bash
# Sessions with a name, by the library: the box around a shell, its warden, and what is left of both. What a shell remembers is the shell's doing,
# on any kernel the same; and how a run is stopped counts milliseconds, of which a machine in emulation has too few. Sessions from the
# command line: cli.sh.
set -u
export HUTCH_SESSION_LIMIT=900
exec "$HUTCH_SRC/tests/session/run" named
