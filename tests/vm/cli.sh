#!/bin/bash
# The CLI suite: all of it but what needs a network, which this machine has none of.
#
# In short, what another kernel could change: mounts and their old API, namespaces, ids, overlays and stacks of them, how boxes and sessions end,
# descriptors. A test costs ten seconds in emulation, so these are a few that go through each of them once.
set -u
unwanted='
installs    apt-get install of a small package from Debian
installs    pip install of a small package
installs    npm install -g of a small package
'
wanted='
streams     the box cannot reopen a host file
paths       rules inside the workspace hold
paths       mounts below a granted path
hosts       no new mount API"
hosts       every namespace is
hosts       a box in a box
ends        kill -9 of hutch while
cow         rm, new, sed
cow         --ephemeral leaves nothing
cow         copy-on-write by the old mount API
layers      a state directory that can hold no layer
layers      what cannot be a layer inside
snapshot    snapshot, wreck everything, restore
snapshot    review of a box with snapshots
snapshot    further copy-on-write directories
system      new files, directories, replaced and removed
archive     export, import elsewhere
session     run --timeout: 124
session     a limit of the box ends what runs
session     exit, set -e, exec, kill -9
session     reset: files, variables
session     stop keeps changes for a review
session     kill -9 of its warden
session     nobody but the owner gets at a session
session     a snapshot of a session holds
'
export HUTCH_SNAPSHOTS=105 HUTCH_CPU_TIME=12s BATS_TEST_TIMEOUT=600 # a shell that starts has used a second of it here
[ "${HUTCH_SHORT:-}" = 1 ] || wanted=

# Each file with those that are wanted, or without those that are not.
mkdir "$HUTCH_TMP/cli" && cp "$HUTCH_SRC"/tests/cli/*.bash "$HUTCH_TMP/cli" || exit 1
files=()
number=0
for source in "$HUTCH_SRC"/tests/cli/*.bats; do
        file=${source##*/}
        names=$(sed -nE "s/^${file%.bats} +//p" <<<"${wanted:-$unwanted}")
        [ -z "$wanted" ] || [ -n "$names" ] || continue
        awk -v names="$names" -v keep="${wanted:+1}" '
                BEGIN { n = split(names, listed, "\n") }
                /^@test "/ {
                        name = substr($0, 8)
                        drop = keep
                        for (i = 1; i <= n; i++)
                                if (index(name, listed[i]) == 1) drop = !keep
                        if ($0 ~ /}$/) { if (!drop) print; drop = 0; next } # all of it on this line
                }
                !drop { print }
                /^}$/ { drop = 0 }' "$source" >"$HUTCH_TMP/cli/$file"
        files+=("$HUTCH_TMP/cli/$file")
        number=$((number + $(grep -c '^@test ' "$source")))
done
# One that was renamed would be gone, or back, without a word.
found=$(cat "${files[@]}" | grep -c '^@test ')
if [ -n "$wanted" ]; then number=$(grep -c . <<<"$wanted"); else number=$((number - $(grep -c . <<<"$unwanted"))); fi
[ "$found" -eq "$number" ] || { echo "not ok - tests/vm/cli.sh finds $found of $number tests"; exit 1; }
exec bash "$HUTCH_SRC/tests/vm/plain.sh" "${files[@]}"
