#!/bin/bash
# hutch doctor on a host where everything is there.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1

timeout 120 "$hutch" doctor >table 2>err </dev/null
same "doctor: exit status" 0 $? "$(cat table err)"
check "doctor: a table" test -s table
check "doctor: nothing on stderr" test ! -s err
check "doctor: names the namespace backend" grep -qi namespace table
check "doctor: does not send one to the sysctl" sh -c '! grep -q kernel.unprivileged_userns_clone table'
timeout 120 "$hutch" doctor --json >json 2>err </dev/null
same "doctor --json: exit status" 0 $? "$(cat json err)"
check "doctor --json: one object" jq -e 'type == "object"' json
finish
