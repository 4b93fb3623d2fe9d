#!/bin/bash
# Switches user namespaces off for ordinary users, as a careful administrator of Debian does.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1

check "the sysctl is set" sysctl -q kernel.unprivileged_userns_clone=0
check "vmuser has no user namespaces" sh -c '! setpriv --reuid vmuser --regid vmuser --clear-groups unshare -U true'
same "root still has boxes" hi "$("$hutch" echo hi 2>&1)"
finish
