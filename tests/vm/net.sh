#!/bin/bash
# The network of a box on a kernel whose parts are modules: which of them an ordinary user's namespace gets, and whether an allowlist
# works with them.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"

ladder=$("$HUTCH_SRC/tests/net/ladder")
same "net: what an allowlist needs" 0 $? "$ladder"
sed 's/^/# /' <<<"$ladder"
while read -r line; do
        case $line in
        ok*) say ok "net: ${line#ok * - }" ;;
        "not ok"*) say "not ok" "net: ${line#not ok * - }" ;;
        "#"*) echo "$line" ;;
        esac
done < <(HUTCH_MUST_WORK='' HUTCH_SLOW=5 "$HUTCH_SRC/tests/net/run" "--net loopback:" "UDP to an" "half close" "DNS over TCP" "refused at once" "a port of the host" "a published port, under" "unreachable" 2>&1)
finish
