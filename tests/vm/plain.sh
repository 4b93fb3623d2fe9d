#!/bin/bash
# Runs files in bats' language with bash alone. bats reads a file anew for each of its tests, in a handful of processes, which here is half
# of the time. Knows what tests/cli uses: @test, run, skip, load, setup, teardown. Prints TAP.
# usage: plain.sh FILE…
set -u
limit=${BATS_TEST_TIMEOUT:-400}

# ---- one test, in a process of its own: plain.sh --one FILE FUNCTION ----
# shellcheck disable=SC2034 # for the tests
run() {
        local before=$- IFS=$'\n'
        set +e
        output=$("$@" 2>&1)
        status=$?
        set -f
        # shellcheck disable=SC2206 # lines
        lines=($output)
        set +f
        [[ $before != *e* ]] || set -e
}
skip() { echo "$*" >"$HUTCH_TMP/skipped"; exit 0; }
# shellcheck disable=SC1090 # a file of the suite
load() { . "$here/$1.bash"; }
if [ "${1:-}" = --one ]; then
        here=${2%/*}
        # shellcheck disable=SC1090 # the file
        . "$2"
        set +u
        trap 'status=$?; set +e; teardown; exit $status' EXIT
        set -eE
        exec 7>&1
        trap 'echo "line $LINENO: $BASH_COMMAND; output: ${output-}" >&7' ERR
        setup
        "$3"
        exit
fi

# ---- all ----
n=0 bad=0
for file; do
        awk -v names="$file.names" '/^@test "/ {
                        name = substr($0, 8)
                        match(name, /" \{/)
                        print substr(name, 1, RSTART - 1) >names
                        $0 = "test_" ++n "() {" substr(name, RSTART + 3)
                }
                { print }' "$file" >"$file.plain"
        i=0
        while IFS= read -r name; do
                i=$((i + 1)) n=$((n + 1)) word=ok
                rm -f "$HUTCH_TMP/skipped"
                timeout -k 5 "$limit" bash "$0" --one "$file.plain" "test_$i" >"$HUTCH_TMP/plain.log" 2>&1 </dev/null || word="not ok"
                [ ! -e "$HUTCH_TMP/skipped" ] || name+=" # SKIP $(<"$HUTCH_TMP/skipped")"
                echo "$word $n $name"
                [ "$word" = ok ] || { bad=$((bad + 1)); sed 's/^/# /' "$HUTCH_TMP/plain.log"; }
        done <"$file.names"
done
echo "1..$n"
[ $bad -eq 0 ]
