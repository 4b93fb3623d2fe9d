# How boxes end: timeouts, signals, and hutch itself killed at any moment. Afterwards no process and no mount is left.
load helper

@test "--timeout ends the whole tree, keeps the output" {
        out=$(hutch --json --timeout 1s -c "echo before; setsid sleep $NAP & sleep $NAP") || status=$?
        [ "$status" -eq 124 ]
        [ "$(field "$out" '[.exit_code,.killed,.kill_reason,.stdout]|@json')" = '[124,true,"timeout","before\n"]' ]
        gone "sleep $NAP"
        out=$(hutch --json --timeout 1s -c 'trap "" TERM; echo before; while :; do sleep 0.1; done') || status=$?
        [ "$(field "$out" '[.exit_code,.kill_reason,.stdout]|@json')" = '[124,"timeout","before\n"]' ]
        run hutch --timeout 5s sh -c 'exit 7'
        [ "$status" -eq 7 ]
        # A command that ends by itself in the time that is left for SIGTERM still timed out.
        run hutch --timeout 100ms sh -c 'trap "exit 0" TERM; while :; do sleep 0.02; done'
        [ "$status" -eq 124 ]
}

@test "durations" {
        for d in 50ms 0.05s; do
                run hutch --timeout $d sleep 5
                [ "$status" -eq 124 ] || differs "$d: $status"
        done
        for d in 1m 2h 30s 30; do
                run hutch --timeout $d true
                [ "$status" -eq 0 ] || [[ $d = 30 && $status -eq 125 ]] || differs "$d: $status $output"
        done
        refused "--timeout 0             | timeout
--timeout -1s                            | -1s
--timeout 1x                             | 1x
--timeout ''                             | timeout
--timeout 99999999999999999999s          | 99999999999999999999s
--output-cap 1Q                          | 1Q
--output-cap -5                          | -5"
}

# signalled SIGNAL WANT TEXT: runs TEXT in a box and sends SIGNAL to hutch when it has begun; hutch must end with WANT. A busy host may take longer
# than hutch's patience, which then kills: so it may try thrice.
signalled() {
        local attempt
        for attempt in 1 2 3; do
                rm -f begun
                # A shell without job control starts background jobs with SIGINT and SIGQUIT ignored.
                env --default-signal "$HUTCH_BUILD/hutch" -c "$3" &
                pid=$!
                appears begun
                kill -"$1" $pid
                status=0
                wait $pid || status=$?
                [ "$status" -ne "$2" ] || return 0
        done
        differs "$1: $status, not $2: $3"
}

@test "signals to hutch reach the command" {
        for pair in TERM:143 INT:130 HUP:129 QUIT:131; do
                signalled ${pair%:*} ${pair#*:} "echo >begun; exec sleep $NAP"
                gone "sleep $NAP" || differs "$pair: still there"
        done
        signalled TERM 137 'trap "" TERM; echo >begun; while :; do sleep 0.1; done'
        agree
}

@test "a command that handles the signal ends with its own exit code" {
        signalled TERM 9 'trap "echo caught >caught; exit 9" TERM; echo >begun; while :; do sleep 0.02; done'
        [ "$(cat caught)" = caught ] || differs "it was not caught"
        agree
}

@test "a cancelled run says so in the result" {
        "$HUTCH_BUILD/hutch" --json -c "echo before; echo >begun; sleep $NAP" >"$T/json" &
        pid=$!
        appears begun
        kill -TERM $pid
        wait $pid || status=$?
        [ "$status" -eq 143 ] || [ "$status" -eq 137 ] # 137: a busy host
        [ "$(jq -c '[.exit_code,.signal + 128,.killed,.kill_reason,.stdout]' "$T/json")" = "[$status,$status,true,\"cancelled\",\"before\\n\"]" ]
}

@test "signals that the caller ignores" {
        run timeout -s KILL 5 env --ignore-signal=CHLD "$HUTCH_BUILD/hutch" sh -c 'exit 5'
        [ "$status" -eq 5 ] || differs "SIGCHLD ignored: $status"
        run timeout -s KILL 5 env --ignore-signal=PIPE "$HUTCH_BUILD/hutch" sh -c 'exit 5'
        [ "$status" -eq 5 ] || differs "SIGPIPE ignored: $status"
        run timeout -s KILL 5 env --block-signal=TERM,CHLD,INT "$HUTCH_BUILD/hutch" sh -c 'exit 5'
        [ "$status" -eq 5 ] || differs "blocked: $status"
        run timeout -s KILL 5 env --block-signal=TERM,USR1 "$HUTCH_BUILD/hutch" grep SigBlk /proc/self/status
        [[ $output == *0000000000000000 ]] || differs "the command starts with blocked signals: $output"
        agree
}

@test "the command's end ends what it left behind" {
        hutch -c "setsid sleep $NAP & (sleep $NAP &) ; disown -a; echo x"
        gone "sleep $NAP"
}

@test "kill -9 of hutch while the command runs: nothing is left" {
        for form in "" --json --capture; do
                rm -f begun
                "$HUTCH_BUILD/hutch" $form -c "setsid sleep $NAP & echo >begun; sleep $NAP" >/dev/null 2>&1 &
                pid=$!
                appears begun
                kill -9 $pid
                wait $pid 2>/dev/null || true
                gone "sleep $NAP" || differs "form '$form'"
        done
        agree
}

# Processes of hutch that lost their parent, and are not another person's. The id of a box of root's has no name.
orphans() {
        local pid owner
        for pid in $(pgrep -P 1 hutch); do
                owner=$(stat -c %U "/proc/$pid" 2>/dev/null)
                [ "$owner" != "$(id -un)" ] && [ "$owner" != UNKNOWN ] || echo "$pid"
        done
}

@test "kill -9 of hutch at any moment leaves no process and no mount" {
        before=" $(orphans | xargs) "
        for i in {1..60}; do
                "$HUTCH_BUILD/hutch" --ro "$HOME/.ssh:/srv/s" --tmpfs /srv/t --env "MARK=kill9-$NAP" -c "sleep $NAP" >/dev/null 2>&1 &
                pid=$!
                # 0 to 12 ms: from before main() to the running command
                sleep "0.0$(printf %02d $((i % 13)))$((RANDOM % 10))"
                kill -9 $pid
                wait $pid 2>/dev/null || true
        done
        gone "sleep $NAP"
        # A process that never got as far as the command still has hutch's arguments, or is named after it.
        gone "MARK=kill9-$NAP"
        for pid in $(orphans); do
                [[ $before != *" $pid "* ]] || continue
                for i in {1..400}; do
                        [ -d "/proc/$pid" ] || break
                        sleep 0.05
                done
                [ ! -d "/proc/$pid" ] || differs "$(ps -o pid,args -p "$pid")"
        done
        ! grep -F "$T" /proc/self/mountinfo || differs "a mount is left"
        agree
}

@test "nothing is left in the host's directories" {
        mkdir "$T/tmp" "$T/run"
        before=$(find "$T" | sort)
        export TMPDIR=$T/tmp XDG_RUNTIME_DIR=$T/run
        hutch true
        hutch --json --timeout 50ms sleep 5 >/dev/null || true
        hutch --json no-such-command >/dev/null || true
        [ "$(find "$T" | sort)" = "$before" ]
}

@test "--die-with-parent: the box ends with the process that started hutch, however that ends" {
        local option started
        for option in --die-with-parent --quiet; do
                sh -c '"$0" run "$1" -- sh -c "echo up; exec sleep $2"; :' "$HUTCH_BUILD/hutch" "$option" "$NAP" >up &
                started=$!
                for ((i = 0; i < 300; i++)); do [ ! -s up ] || break; sleep 0.1; done
                kill -9 "$started"
                [ "$option" = --quiet ] || for ((i = 0; i < 300; i++)); do pgrep -f "sleep $NAP" >/dev/null || break; sleep 0.1; done
                if [ "$option" = --quiet ]; then # the control: it goes on
                        sleep 0.5
                        pgrep -f "sleep $NAP" >/dev/null || differs "ended without the option"
                        pkill -9 -f "run --quiet -- sh -c echo up; exec sleep $NAP" || true
                else
                        ! pgrep -f "sleep $NAP" >/dev/null || differs "still runs"
                fi
                : >up
        done
        agree
}

@test "many boxes at once" {
        for i in {1..30}; do
                "$HUTCH_BUILD/hutch" -c "echo $i; exit $i" >"$T/out.$i" &
                pids[i]=$!
        done
        for i in {1..30}; do
                s=0
                wait "${pids[i]}" || s=$?
                [ $s -eq "$i" ] && [ "$(cat "$T/out.$i")" = "$i" ] || differs "$i: $s"
        done
        agree
}

@test "a fork bomb's children end with the box" {
        run hutch --timeout 1s bash -c 'for i in {1..200}; do (trap "" TERM; sleep $0) & done; wait' "$NAP"
        [ "$status" -eq 124 ]
        gone "sleep $NAP"
}
