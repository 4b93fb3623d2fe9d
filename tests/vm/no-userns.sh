#!/bin/bash
# An ordinary user where user namespaces are switched off: the landlock backend takes over, and doctor prints what
# would give namespaces back.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1
name=kernel.unprivileged_userns_clone
[ "$(cat /proc/sys/user/max_user_namespaces)" != 0 ] || name=user.max_user_namespaces

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

mkdir cow && echo a >cow/a
timeout 120 "$hutch" -d cow --workspace cow sh -c 'echo b >>a' 2>err </dev/null
same "copy-on-write: the workspace stays as it is" a "$(cat cow/a)" "$(cat err)"
check "copy-on-write: diff shows the change" sh -c 'timeout 120 "$1" diff -d cow | grep -qx "+b"' - "$hutch"
timeout 120 "$hutch" apply -d cow >out 2>err </dev/null
same "copy-on-write: apply does it" "a b" "$(xargs <cow/a)" "$(cat out err)"
timeout 120 "$hutch" session start s >out 2>err </dev/null
timeout 120 "$hutch" session run s -c 'x=5; cd /' >out 2>err </dev/null
same "a session keeps its shell" "5 /" "$(timeout 120 "$hutch" session run s -c 'echo $x $PWD' </dev/null)" "$(cat out err)"
timeout 120 "$hutch" session stop s >out 2>err </dev/null
timeout 120 "$hutch" --hide /etc/hostname true >out 2>err </dev/null
same "what cannot be done there is refused" "125 1" "$? $(grep -c "not possible on 'landlock'" err)" "$(cat err)"

timeout 120 "$hutch" --isolation namespace echo hi >out 2>err </dev/null
same "namespace: refused with 125" 125 $? "$(cat out err)"
same "namespace: prints nothing" "" "$(cat out)"
same "namespace: one line" "1 1" "$(wc -l <err) $(grep -c '^hutch: ' err)" "$(cat err)"
same "namespace, --json: code of the error" "125 backend_unavailable" \
        "$(timeout 120 "$hutch" --isolation namespace --json echo hi 2>/dev/null </dev/null | jq -r '"\(.exit_code) \(.error.code)"')"
finish
