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
        'no new mount API"' 'every namespace is' 'a box in a box'                                    # hosts
        'kill -9 of hutch while'                                                                     # ends
        'rm, new, sed' '--ephemeral leaves nothing' 'copy-on-write by the old mount API'             # cow
)
# bats reads every test of a file before it runs one, a minute's work here: so these get files of their own.
mkdir "$HUTCH_TMP/cli" && cp "$HUTCH_SRC"/tests/cli/*.bash "$HUTCH_TMP/cli" || exit 1
names=$(printf '%s\n' "${wanted[@]}")
for file in shows streams paths hosts ends cow; do
        awk -v names="$names" '
                BEGIN { n = split(names, wanted, "\n") }
                /^@test "/ {
                        name = substr($0, 8)
                        drop = 1
                        for (i = 1; i <= n; i++)
                                if (index(name, wanted[i]) == 1) drop = 0
                        if ($0 ~ /}$/) { if (!drop) print; drop = 0; next } # all of it on this line
                }
                !drop { print }
                /^}$/ { drop = 0 }' "$HUTCH_SRC/tests/cli/$file.bats" >"$HUTCH_TMP/cli/$file.bats"
done
# One that was renamed would be gone without a word.
found=$(cat "$HUTCH_TMP"/cli/*.bats | grep -c '^@test ')
[ "$found" -eq ${#wanted[@]} ] || { echo "not ok - tests/vm/cli.sh finds $found of ${#wanted[@]} tests"; exit 1; }
exec "$HUTCH_SRC/tests/cli/run" "$HUTCH_TMP"/cli/*.bats
