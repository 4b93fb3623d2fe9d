#!/bin/bash
# An ordinary user where user namespaces are switched off: the landlock backend takes over, and doctor prints what
# would give namespaces back.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1
name=kernel.unprivileged_userns_clone

timeout 120 "$hutch" doctor >table 2>err </dev/null
same "doctor: exit status" 0 $? "$(cat table err)"
check "doctor: names the sysctl as the remedy" grep -q "sysctl.*$name=1" table
timeout 120 "$hutch" doctor --json >json 2>err </dev/null
same "doctor --json: exit status" 0 $? "$(cat json err)"
check "doctor --json: one object" jq -e 'type == "object"' json
check "doctor --json: names the sysctl" grep -q "$name=1" json

timeout 120 "$hutch" echo hi >out 2>err </dev/null
same "hutch echo hi: runs" "0 hi" "$? $(cat out)" "$(cat out err)"
same "hutch echo hi: on landlock" landlock "$(timeout 120 "$hutch" --json echo hi 2>/dev/null </dev/null | jq -r .backend)"
timeout 120 "$hutch" sh -c 'cat /etc/hostname >/dev/null && echo read; echo x >/etc/planted' >out 2>err </dev/null
check "hutch on landlock: reads the system" grep -qx read out
check "hutch on landlock: does not write there" grep -q "/etc/planted" err

timeout 120 "$hutch" --isolation namespace echo hi >out 2>err </dev/null
same "namespace: refused with 125" 125 $? "$(cat out err)"
same "namespace: prints nothing" "" "$(cat out)"
same "namespace: one line" "1 1" "$(wc -l <err) $(grep -c '^hutch: ' err)" "$(cat err)"
same "namespace, --json: code of the error" "125 backend_unavailable" \
        "$(timeout 120 "$hutch" --isolation namespace --json echo hi 2>/dev/null </dev/null | jq -r '"\(.exit_code) \(.error.code)"')"
finish
