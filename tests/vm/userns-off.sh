#!/bin/bash
# Switches user namespaces off: for ordinary users, as a careful administrator of Debian does, or with "limit" for everybody, by their number.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1

if [ "${1:-}" = limit ]; then
        check "the sysctls are set" sysctl -q kernel.unprivileged_userns_clone=1 user.max_user_namespaces=0
        same "root's boxes are refused, with the sysctl that gives them back" 1 "$("$hutch" --isolation namespace echo hi 2>&1 | grep -c "hutch doctor")"
        check "doctor names it" sh -c '"$1" doctor | grep -q "sysctl -w user.max_user_namespaces="' - "$hutch"
else
        check "the sysctl is set" sysctl -q kernel.unprivileged_userns_clone=0
        same "root still has boxes" hi "$("$hutch" echo hi 2>&1)"
fi
check "vmuser has no user namespaces" sh -c '! setpriv --reuid vmuser --regid vmuser --clear-groups unshare -U true'
finish
