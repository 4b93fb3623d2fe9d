#!/bin/bash
# A mount made in a box that spreads to the host: there it would cover a directory of the workspace with the attacker's files.
#
# It must fail because the filter refuses mounts; where nesting is allowed the box's mounts are private. The control has a parent
# namespace of its own whose mounts are shared, and looks from there.
#
# setup: mkdir "$ws/directory"
# args: "$in/directory"
# control: userns
# check: [ -e "$ws/directory/planted" ]
# also: /--allow-nested --workspace rw
# also: /--allow-nested --workspace rw --as root
# also: without mount-api/--allow-nested --workspace rw
directory=$1
if [ -n "${HUTCH_CONTROL:-}" ]; then
        mount --make-rshared / || exit 77
        unshare -m --propagation unchanged sh -c 'mount -t tmpfs none "$1" && echo >"$1/planted"' sh "$directory" || exit 77
        [ -e "$directory/planted" ] && exit 0
        exit 1
fi
# Without a namespace first, then in one; the harness looks at the host afterwards, and meanwhile the mount has to last.
mount -t tmpfs none "$directory" 2>&1 && echo >"$directory/planted"
unshare -Urm --propagation shared sh -c 'mount -t tmpfs none "$1" && cd "$1" && echo made && echo >planted' sh "$directory" 2>&1
grep -q shared: /proc/self/mountinfo && echo "the box has shared mounts" && exit 0
exit 1
