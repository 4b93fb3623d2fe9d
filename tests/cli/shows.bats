# What the foundation promises to show, line by line.
load helper

@test "hutch echo hi" {
        run hutch echo hi
        [ "$status" -eq 0 ] && [ "$output" = hi ]
}

@test "hutch -d DIR starts in DIR; --at workspace at /workspace/<basename>" {
        mkdir "$T/some dir"
        run hutch -d "$T/some dir" pwd
        [ "$output" = "$T/some dir" ]
        run hutch --dir="$T/some dir" --at workspace -- pwd
        [ "$output" = "/workspace/some dir" ]
        run hutch pwd
        [ "$output" = "$T/ws" ]
}

@test "hutch run -c 'echo out; echo err >&2' --json" {
        run hutch run -c 'echo out; echo err >&2' --json
        [ "$status" -eq 0 ]
        [ "$(field "$output" '[.exit_code,.signal,.stdout,.stderr,.killed,.kill_reason,.backend,.error]|@json')" = \
                '[0,null,"out\n","err\n",false,null,"namespace",null]' ]
}

@test "the result has exactly the fields of the contract" {
        out=$(hutch --json true)
        [ "$(field "$out" 'keys_unsorted|join(" ")')" = "exit_code signal stdout stderr encoding truncated duration_ms cpu_ms peak_memory_bytes \
killed kill_reason changes output_files published findings denials backend enforced notices error" ]
        [ "$(field "$out" '.enforced|keys_unsorted|join(" ")')" = "filesystem network processes syscalls ipc protected memory cpu pids disk" ]
        [ "$(field "$out" '[.duration_ms,.cpu_ms,.peak_memory_bytes]|map(type)|unique|join(" ")')" = number ]
        [ "$(field "$out" '.duration_ms > 0 and .peak_memory_bytes > 0')" = true ]
}

@test "writes outside the workspace fail" {
        run hutch touch /usr/x
        [ "$status" -ne 0 ]
        [ ! -e /usr/x ]
        one() {
                run hutch sh -c "echo x > '$1'"
                [ "$status" -ne 0 ] || differs "$1 could be written"
        }
        each "/x
/usr/x
/usr/local/bin/x
/etc/x
/etc/passwd
/bin/x
/lib/x
/opt/x
/var/x
/proc/sys/kernel/hostname
/proc/1/oom_score_adj
/dev/x
/workspace/x" one
        # Beside the workspace there is, at most, the box's own /tmp.
        for dir in "$T" "$HOME" "$HUTCH_TMP" /tmp; do
                hutch sh -c "echo x > '$dir/beside-$NAP'" 2>/dev/null || true
                [ ! -e "$dir/beside-$NAP" ] || differs "$dir of the host was written"
        done
        agree
}

@test "what is written to the box's own directories does not reach the host" {
        for dir in /tmp /var/tmp /dev/shm "$HOME"; do
                hutch sh -c "echo x > $dir/hutch-cli-$$" || differs "$dir cannot be written"
                [ ! -e "$dir/hutch-cli-$$" ] || differs "$dir is the host's"
        done
        agree
}

@test "a file written in the workspace is on the host, owned by the caller" {
        hutch sh -c 'echo text > file; mkdir -p a/b; ln -s file link; touch a/b/c'
        [ "$(cat file)" = text ]
        [ "$(find . -printf '%U:%G\n' | sort -u)" = "$(id -u):$(id -g)" ]
        hutch sh -c "echo more >> '$T/ws/file'; rm -r a"
        [ "$(cat file)" = text$'\n'more ] && [ ! -e a ]
}

@test "the caller's umask holds in the box" {
        (umask 077 && hutch touch private)
        (umask 002 && hutch touch group)
        [ "$(stat -c %a private group | xargs)" = "600 664" ]
}

@test "the home is empty, and is not the host's" {
        run hutch ls -A "$HOME"
        [ "$status" -eq 0 ] && [ -z "$output" ]
        run hutch sh -c 'ls -A "$HOME" ~'
        [ "$status" -eq 0 ]
        run hutch cat "$HOME/.ssh/id_rsa"
        [ "$status" -eq 1 ] && [[ $output == *"No such file"* ]]
}

@test "ps ax shows only the box" {
        run hutch ps ax -o pid=,args=
        [ "$status" -eq 0 ]
        [ "${#lines[@]}" -le 2 ]
        [[ $output == *"ps ax"* ]]
        [[ $output != *bats* ]]
}

@test "started by root: /etc/shadow cannot be read, nothing under /proc/sys written" {
        for as in host user root; do
                run hutch --workspace none --as $as cat /etc/shadow
                [ "$status" -ne 0 ] || differs "as $as: /etc/shadow can be read"
                run hutch --workspace none --as $as find /proc/sys -writable
                [ -z "$output" ] || differs "as $as: writable: ${lines[0]}"
                run hutch --workspace none --as $as bash -c 'n=0; for f in $(find /proc/sys -type f 2>/dev/null); do
                        { v=$(<$f) && echo "$v" >$f; } 2>/dev/null && { echo $f; n=1; }; done; exit $n'
                [ "$status" -eq 0 ] || differs "as $as: could be written: $output"
        done
        agree
}

@test "a granted path gives the caller's rights to it, and no more" {
        mkdir "$T/roots" && echo keep >"$T/roots/file" && chmod 644 "$T/roots/file"
        run hutch --ro "$T/roots" sh -c "echo x > '$T/roots/file'"
        [ "$status" -ne 0 ]
        [ "$(cat "$T/roots/file")" = keep ]
        run hutch --rw "$T/roots" sh -c "echo x > '$T/roots/file'"
        [ "$status" -eq 0 ] && [ "$(stat -c %u "$T/roots/file")" = "$(id -u)" ]
        # Started by root, files of others in the workspace stay theirs.
        am_root || return 0
        install -o daemon -m 600 /dev/null ws-foreign
        run hutch sh -c 'echo x > ws-foreign'
        [ "$status" -ne 0 ]
}

@test "exit codes" {
        printf '#!/bin/sh\nexit 3\n' >not-executable
        printf 'echo from sh\n' >no-hashbang && chmod +x no-hashbang
        printf '#!/no/such/interpreter\n' >bad-interpreter && chmod +x bad-interpreter
        one() {
                local words
                eval "words=($1)"
                run hutch "${words[@]}"
                [ "$status" -eq "$2" ] || differs "$1: $status, not $2: $output"
                [ -z "$3" ] || [[ $output == *"$3"* ]] || differs "$1: '$output' does not hold '$3'"
                [ "${4:-}" != line ] || { [ "${#lines[@]}" -eq 1 ] && [[ $output == "hutch: "* ]]; } || differs "$1: not one line of hutch's: $output"
        }
        each "run -- true                 | 0
run -- false                              | 1
run -- sh -c 'exit 42'                    | 42
sh -c 'exit 124'                          | 124
sh -c 'exit 125'                          | 125
no-such-command                           | 127 | no-such-command | line
/no/such/command                          | 127 | /no/such/command | line
./missing                                 | 127 | ./missing | line
./bad-interpreter                         | 127 | ./bad-interpreter | line
./not-executable                          | 126 | ./not-executable | line
/usr                                      | 126 | /usr | line
./no-hashbang                             | 0 | from sh
run -- sh -c 'kill -9 \$\$'               | 137
run -- sh -c 'kill -TERM \$\$'            | 143
-c 'kill -9 \$\$'                         | 137
--timeout 100ms sleep 9                   | 124 | timeout | line
--no-such-option true                     | 125 | --no-such-option | line
-x true                                   | 125 | -x | line
-d /no/such/directory true                   | 125 | /no/such/directory | line
--ro /no/such/source true                 | 125 | /no/such/source | line
--rw ./no-such-source true                | 125 | no-such-source | line
-d /etc/passwd true                       | 125 | /etc/passwd | line
--stdin /no/such/file true                | 125 | /no/such/file | line
--result /no/such/directory/f true           | 125 | /no/such/directory/f | line
--env-file /no/such/env true              | 125 | /no/such/env | line
--isolation nonsense true                 | 125 | nonsense | line
--timeout soon true                       | 125 | soon | line
--net nowhere true                        | 125 | nowhere | line
--as nobody true                          | 125 | nobody | line
--workspace sideways true                 | 125 | sideways | line
--dir                                     | 125 | --dir | line
--allow-host 0x7f.1 true                  | 125 | 0x7f.1 | line
--publish x true                          | 125 | --publish | line
--json=yes true                           | 125 | --json | line
-c 'true' true                            | 125 | -c | line
''                                        | 125 | command | line" one
        agree
}

@test "no arguments: usage, 125" {
        run hutch
        [ "$status" -eq 125 ] && [[ ${lines[0]} == "usage: hutch"* ]]
        [ -z "$(hutch 2>/dev/null)" ]
        run hutch run
        [ "$status" -eq 125 ]
        run hutch --
        [ "$status" -eq 125 ]
}

@test "--help and --version" {
        run hutch --help
        [ "$status" -eq 0 ] && [[ $output == *"--workspace"* ]] && [[ $output == *"125"* ]]
        run hutch --version
        [ "$status" -eq 0 ] && [[ $output =~ ^hutch\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "a misspelt option, value or backend is answered with the nearest" {
        one() {
                local words
                eval "words=($1)"
                run hutch "${words[@]}" true
                [[ $output == *"$2"* ]] || differs "$1: $output"
        }
        each "--timout 1s     | --timeout
--workspce ro                 | --workspace
--as hst                      | host
--isolation namespaces        | namespace" one
        agree
}

@test "the first word that is no option is the command; -- forces one; reserved words are told" {
        run hutch run run
        [ "$status" -eq 127 ]
        run hutch -- run
        [ "$status" -eq 127 ] && [[ $output == *"run"* ]]
        run hutch -- explain
        [ "$status" -eq 127 ]
        run hutch batch a b
        [ "$status" -eq 125 ] && [[ $output == *"hutch -- batch"* ]]
        echo same >a
        run hutch -- diff a a
        [ "$status" -eq 0 ]
        run hutch echo --json --timeout -d
        [ "$output" = "--json --timeout -d" ]
}

@test "explain --json prints the plan and runs nothing" {
        run hutch explain --json -- touch ran
        [ "$status" -eq 0 ] && [ ! -e ran ]
        [ "$(field "$output" '.argv|join(" ")')" = "touch ran" ]
        [ "$(field "$output" '.cwd')" = "$T/ws" ]
        [ "$(field "$output" '.steps|map(.kind)|unique|index("bind")|type')" = number ]
        run hutch explain touch ran
        [ "$status" -eq 0 ] && [ ! -e ran ] && [[ $output == *"/workspace/ws"* ]]
        run hutch explain --json --ro /no/such -- true
        [ "$status" -eq 125 ] && [[ $output == *"/no/such"* ]]
}

@test "explain does not show values of variables" {
        for form in "" --json; do
                run hutch explain $form --env TOKEN=s3cret -- true
                [[ $output == *TOKEN* ]] && [[ $output != *s3cret* ]]
        done
}

@test "every failure of hutch's own is told in the JSON too" {
        one() {
                local words
                eval "words=($1)"
                out=$(hutch --json "${words[@]}" 2>/dev/null) || true
                got=$(jq -r '"\(.exit_code) \(.error.code)"' <<<"$out" 2>/dev/null)
                [ "$got" = "$2" ] || differs "$1: '$got', not '$2': $out"
        }
        each "--ro /no/such true                 | 125 path_missing
-d /no/such true                                 | 125 path_missing
-d / true                                        | 125 policy_refused
--isolation chroot true                          | 125 backend_unknown
--allow-host 127.0.0.1 true                      | 125 policy_invalid
--strict true                                    | 125 guarantee_unavailable
--strict --allow-degraded true                   | 125 policy_invalid
--net deny --allow-host example.org true         | 125 policy_invalid
no-such-command                                  | 127 path_missing
/etc/passwd                                      | 126 setup_failed
sh -c 'exit 125'                                 | 125 null
sh -c 'exit 127'                                 | 127 null
sh -c 'exit 126'                                 | 126 null
sh -c 'exit 124'                                 | 124 null
--timeout 50ms sleep 9                           | 124 null" one
        agree
}
