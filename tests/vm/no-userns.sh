#!/bin/bash
# An ordinary user where user namespaces are switched off: hutch refuses to run anything and doctor says what would help.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1
name=kernel.unprivileged_userns_clone

timeout 120 "$hutch" doctor >table 2>err </dev/null
same "doctor: exit status" 1 $? "$(cat table err)"
check "doctor: names the sysctl as the remedy" grep -q "sysctl.*$name=1" table
timeout 120 "$hutch" doctor --json >json 2>err </dev/null
same "doctor --json: exit status" 1 $? "$(cat json err)"
check "doctor --json: one object" jq -e 'type == "object"' json
check "doctor --json: names the sysctl" grep -q "$name=1" json

timeout 120 "$hutch" echo hi >out 2>err </dev/null
same "hutch echo hi: refused with 125" 125 $? "$(cat out err)"
same "hutch echo hi: prints nothing" "" "$(cat out)"
same "hutch echo hi: one line" "1 1" "$(wc -l <err) $(grep -c '^hutch: ' err)" "$(cat err)"
box echo hi
same "hutch --json echo hi: exit status and code of the error" "125 125 backend_unavailable" "$status ${got[exit_code]} ${got[code]}" "$result"
finish
