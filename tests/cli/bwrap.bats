# The bwrap backend: bubblewrap builds the box, init checks it from inside. What a box is, is the conformance suite's subject.
load helper

more_setup() {
        am_root || command -v bwrap >/dev/null || skip 'bwrap is not installed'
        box=("$HUTCH_BUILD/hutch" --isolation bwrap)
}


@test "bwrap: refused to root, whose box would be root" {
        am_root || return 0
        run "${box[@]}" true
        told 125 'run hutch as an ordinary user'
        agree
}

# An engine that builds less than it was told: a program of that name that calls the real one with other arguments.
liar() { # liar ARGUMENTS…
        mkdir -p "$T/bin"
        printf '#!/bin/sh\nPATH=%q exec %s\n' "$PATH" "$*" >"$T/bin/bwrap"
        chmod +x "$T/bin/bwrap"
}

@test "bwrap: walls that were not built are found before the command starts" {
        ! am_root || return 0 # for an ordinary user only
        local real init='/proc/self/fd/4 fd' all='--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --as-pid-1'
        real=$(command -v bwrap)
        each "
        $init                                                   | mnt namespace is not the box's own
        unshare -U $init                                        | mnt namespace is not the box's own
        unshare -Um $init                                       | pid namespace is not the box's own
        unshare -Ufmp $init                                     | net namespace is not the box's own
        unshare -Ufmpn $init                                    | ipc namespace is not the box's own
        unshare -Ufmpni $init                                   | / is writable
        $real $all --bind / / --dev /dev --proc /proc $init     | / is writable
        $real $all --ro-bind / / --dev /dev --proc /proc $init  | is in the box, and not in its plan
        $real --args \$2 --bind /usr /usr $init                | /usr is writable
        $real --args \$2 --bind $HOME $HOME $init              | is not a file system of the box's own
        $real --args \$2 --dir /tmp/y $init                    | /tmp/y is in the box, and not in its plan
        $real --args \$2 --bind /usr $T/ws $init               | is not what the plan attaches there
        " lie
        agree
}
lie() {
        liar "$1"
        PATH=$T/bin:$PATH run "${box[@]}" touch "$T/ws/ran"
        told 125 "$2"
        [ ! -e ran ] || differs "$1: the command ran"
}

@test "bwrap: an engine that fails is named with its reason" {
        ! am_root || return 0 # for an ordinary user only
        liar 'sh -c "echo nothing; echo no such option >&2; exit 1"'
        PATH=$T/bin:$PATH run "${box[@]}" true
        told 125 "'bwrap' started no box: no such option"
        liar 'true'
        PATH=$T/bin:$PATH run "${box[@]}" true
        told 125 'its program ended without a message'
        agree
}

@test "bwrap: no argument and no environment of another process shows the command or a value" {
        ! am_root || return 0 # for an ordinary user only
        SECRET=value-$NAP "${box[@]}" --env SECRET --env OTHER="other-$NAP" sh -c 'echo up; sleep '"$NAP" >up &
        until [ -s up ]; do sleep 0.05; done
        local hutch=$! pid seen=0
        for pid in $(pgrep -P $hutch); do
                seen=1
                tr '\0' '\n' <"/proc/$pid/cmdline" >"$T/shown"
                tr '\0' '\n' <"/proc/$pid/environ" >>"$T/shown"
                grep -q -- "$NAP" "$T/shown" && differs "$(cat "$T/shown")"
        done
        kill $hutch
        wait $hutch || true
        [ $seen = 1 ]
        agree
}

@test "bwrap: a program that uses the library starts it itself" {
        ! am_root || return 0 # for an ordinary user only
        touch hidden
        printf 'isolation: bwrap\nfilesystem: {hide: [%s]}\nnetwork: {allow: [192.0.2.1]}\n' "$PWD/hidden" >"$T/runner.yaml"
        run "$HUTCH_BUILD/tests/conformance/runner" "$T/runner.yaml"
        [ "$(grep -c '^ok' <<<"$output")" = 4 ] || differs "$output"
        [ "$(grep -c '^not ok' <<<"$output")" = 0 ]
        agree
}

@test "bwrap: nothing is left after kill -9, a timeout and a refusal" {
        ! am_root || return 0 # for an ordinary user only
        "${box[@]}" sleep "$NAP" &
        local hutch=$!
        until pgrep -f "^sleep $NAP" >/dev/null; do sleep 0.05; done
        kill -9 "$hutch"
        for _ in {1..200}; do pgrep -f "^sleep $NAP" >/dev/null || break; sleep 0.05; done
        [ -z "$(pgrep -f "^sleep $NAP")" ]
        run "${box[@]}" --timeout 300ms sleep "$NAP"
        [ "$status" = 124 ]
        [ -z "$(pgrep -f "^sleep $NAP")" ]
        [ -z "$(ls -A)" ]
}

@test "bwrap: nothing is made on the host to attach something at" {
        ! am_root || return 0 # for an ordinary user only
        run "${box[@]}" --tmpfs "$T/ws/none" true
        told 125 "cannot attach anything at $T/ws/none on 'bwrap': it does not exist"
        ln -s /etc link
        run "${box[@]}" --ro "/usr:$T/ws/link" true
        told 125 'a symbolic link leads to it'
        [ ! -e none ]
        agree
}

@test "bwrap: streams, exit status, limits and the network are as on other backends" {
        ! am_root || return 0 # for an ordinary user only
        [ "$(echo hello | "${box[@]}" cat)" = hello ]
        run "${box[@]}" sh -c 'exit 7'
        [ "$status" = 7 ]
        run "${box[@]}" --json --pids 8 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 9 & done; wait'
        [[ $output = *'"kill_reason":"pids"'* ]]
        run "${box[@]}" --json --net allowlist --allow-host 203.0.113.7:80 bash -c 'exec 3<>/dev/tcp/203.0.113.8/80'
        [[ $output = *'"target":"203.0.113.8:80"'* ]]
        run "${box[@]}" --json --disk 1M true
        [[ $output = *guarantee_unavailable* ]]
}

@test "bwrap: a session keeps its shell and its jobs, and cannot change the channel; a shell runs" {
        ! am_root || return 0 # for an ordinary user only
        run "${box[@]:0:1}" session start --isolation bwrap --workspace rw s
        [ "$status" -eq 0 ] || differs "$output"
        mkdir d
        hutch session run s -c 'x=5; f() { echo F; }; cd d; sleep 1000 & true'
        run hutch session run s -c 'echo $x $(basename $PWD); f; jobs; cat <(echo pipe); touch made'
        [[ $output == $'5 d\nF\n'*Running*$'\npipe' ]] || differs "$output"
        run hutch session run --timeout 500ms s -c "sleep $NAP"
        [ "$status" -eq 124 ] || differs "$output"
        run hutch session run s -c 'c=/.hutch/session; for f in run prelude; do echo x >"$c/$f"; rm "$c/$f"; mv "$c/$f" "$c/x"; chmod 700 "$c/$f"; done 2>/dev/null; touch $c/fresh; ls $c; echo $x'
        [[ $output != *fresh$'\n'* && $output != *$'\nx\n'* && $output == *prelude$'\n'run$'\n5' ]] || differs "$output"
        run hutch session run --json s -- true
        [[ $output == *'"backend":"bwrap"'* ]] || differs "$output"
        hutch session stop s
        [ -e d/made ] || differs "the workspace was not written to"
        ! pgrep -f "sleep $NAP" || differs "a process is left"
        run hutch session start --isolation bwrap s
        told 125 "--workspace rw"
        run "${box[@]:0:1}" shell --isolation bwrap --workspace rw <<<'echo in; exit 3'
        [ "$status" -eq 3 ] && [ "$output" = in ] || differs "$output"
        agree
}

@test "doctor: tries a box of each backend that another program builds" {
        run hutch doctor --json
        [ "$(jq -r '.trials[] | .backend' <<<"$output" | xargs)" = 'bwrap systemd-run container' ]
        if am_root; then
                [ "$(jq -r '.trials[0].reason' <<<"$output")" = 'a box built by bwrap for root would run as root: run hutch as an ordinary user' ]
        else
                [ "$(jq -c '.trials[0] | [.works, .reason]' <<<"$output")" = '[true,null]' ]
                [[ $(jq -r '.trials[0].version' <<<"$output") = bubblewrap* ]]
        fi
        [ "$(jq '[.trials[] | .works == (.reason == null)] | all' <<<"$output")" = true ]
}
