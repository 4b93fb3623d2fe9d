#!/bin/bash
# The CLI suite, cut to what another kernel could change: mounts and their old API, namespaces, ids, overlays, how boxes end, descriptors.
# A test costs ten seconds in emulation, so these are a few that go through each of them once. The rest stays with the ordinary run, which
# has all of it: words of the command line, JSON, streams, the review of changes, and real work with compilers and package managers,
# which would also need a disk three times as large.
set -u
if [ ! -x "$HUTCH_SRC/tests/cli/run" ]; then
        echo "not ok 1 - there is a CLI suite"
        exit 1
fi
wanted=(
        'started by root:'                                                                           # shows
        'the box cannot reopen a host file'                                                          # streams
        'rules inside the workspace hold' 'mounts below a granted path'                              # paths
        'no new mount API$' 'every namespace is' 'a box in a box'                                    # hosts
        'kill -9 of hutch while'                                                                     # ends
        'rm, new, sed' '--ephemeral leaves nothing' 'copy-on-write by the old mount API'             # cow
)
filter=$(IFS='|'; echo "^(${wanted[*]})")
# One that was renamed would be gone without a word.
for name in "${wanted[@]}"; do
        grep -qhE "^@test \"${name/%\$/\"}" "$HUTCH_SRC"/tests/cli/*.bats || { echo "not ok - tests/vm/cli.sh: no test is called '$name'"; exit 1; }
done
cd "$HUTCH_SRC/tests/cli" && exec ./run --filter "$filter" shows.bats streams.bats paths.bats hosts.bats ends.bats cow.bats
