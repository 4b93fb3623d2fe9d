#!/bin/bash
# The CLI suite, cut to what another kernel could change: mounts and their old API, namespaces, ids, overlays, how boxes end, descriptors.
# A test costs seconds in emulation, so the rest stays with the ordinary run, which has all of it: words of the command line, JSON,
# the review of changes on the host (which no kernel of the box takes part in), and real work with compilers and package managers, which
# would also need a disk three times as large.
set -u
if [ ! -x "$HUTCH_SRC/tests/cli/run" ]; then
        echo "not ok 1 - there is a CLI suite"
        exit 1
fi
wanted=(
        # shows, streams
        'writes outside the workspace fail' 'a file written in the workspace is on the host' 'ps ax shows only the box' 'started by root:'
        'a granted path gives' 'the box cannot reopen a host file' 'fds that the caller leaks' 'the output cap kills'
        # paths
        'further paths, at their own place' 'later rules override earlier ones' 'rules inside the workspace hold' 'identities'
        'links in a destination' 'mounts below a granted path' '--dev attaches'
        # hosts
        'no Landlock' 'no openat2$' 'no new mount API$' 'root without the new mount API' 'a host that lets nobody' '--net deny has lo'
        'every namespace is' 'a box in a box'
        # ends
        '--timeout ends the whole tree' 'a cancelled run says so' 'kill -9 of hutch while' 'nothing is left in the host' 'many boxes at once'
        'a fork bomb'
        # cow
        'rm, new, sed' 'apply takes everything' '--ephemeral leaves nothing' 'two boxes on one workspace' 'folders and files without permissions'
        '--cow: further folders' 'hutch killed: the host as it was' 'the box cannot reach its layer' '--disk:' 'copy-on-write by the old mount API'
)
filter=$(IFS='|'; echo "^(${wanted[*]})")
# One that was renamed would be gone without a word.
for name in "${wanted[@]}"; do
        grep -qhE "^@test \"${name/%\$/\"}" "$HUTCH_SRC"/tests/cli/*.bats || { echo "not ok - tests/vm/cli.sh: no test is called '$name'"; exit 1; }
done
cd "$HUTCH_SRC/tests/cli" && exec ./run --filter "$filter" shows.bats streams.bats paths.bats hosts.bats ends.bats cow.bats
