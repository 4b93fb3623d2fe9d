# Events: notices as records, what a terminal sees of them, --quiet, --json-lines, and where --result goes.
load helper

@test "a plain run prints nothing of hutch's own, at a terminal either" {
        need script
        expect "no terminal" "$(hutch true 2>&1)" ""
        # Its input stays open: at the end of it script(1) types a NUL, which the terminal shows.
        expect "a terminal" "$(script -qec "$HUTCH_BUILD/hutch true" /dev/null < <(exec sleep 5 2>/dev/null 3>&-))" ""
        agree
}

@test "notices are objects with a stable code" {
        out=$(hutch --json --env LD_PRELOAD --env PYTHONPATH true)
        expect keys "$(field "$out" '[.notices[]|keys_unsorted|join(" ")]|unique|join("|")')" "code severity subject text fix"
        expect codes "$(field "$out" '[.notices[]|select(.code == "variable_blocked")|.subject]|join(" ")')" "LD_PRELOAD PYTHONPATH"
        expect fix "$(field "$out" '[.notices[]|select(.code == "variable_blocked")|.fix][0]')" "--env LD_PRELOAD=VALUE"
        expect severities "$(field "$out" '[.notices[].severity]|unique|join(" ")')" info
        expect empty "$(field "$out" '[.denials, .findings, .published]|@json')" "[[],[],[]]"
        agree
}

@test "a warning is printed anywhere, and not with --quiet" {
        run hutch -c '{ echo; } 2>/dev/null >/dev/tcp/203.0.113.7/80'
        expect plain "$output" "hutch: warning: the command failed, and it tried to reach a network that the box does not have (try: --allow-host NAME, or --net open)"
        run hutch --quiet -c '{ echo; } 2>/dev/null >/dev/tcp/203.0.113.7/80'
        expect quiet "$status:$output" "1:"
        run hutch --quiet --workspace cow -c 'echo new >file'
        expect "quiet about what is kept" "$output" ""
        run hutch --quiet --ro /no/such true
        [[ $status -eq 125 && $output == "hutch: "*"/no/such"* ]] || differs "an error is not quiet: $output"
        agree
}

@test "--json-lines: output, notices and the result, one object a line" {
        hutch --json-lines --env LD_PRELOAD -c 'echo one; sleep 0.3; echo two >&2; printf "\303"; sleep 0.2; printf "\251\377"; exit 3' >"$T/lines" || expect status $? 3
        expect valid "$(jq -c . "$T/lines" | wc -l)" "$(wc -l <"$T/lines")"
        expect types "$(jq -r .type "$T/lines" | uniq | xargs)" "notice output result"
        expect stdout "$(jq -r 'select(.type == "output" and .stream == "stdout" and .encoding == "utf-8").data' "$T/lines" | head -1)" one
        expect stderr "$(jq -r 'select(.stream == "stderr").data' "$T/lines")" two
        expect bytes "$(jq -r 'select(.encoding == "base64").data' "$T/lines" | base64 -d | od -An -tx1 | xargs)" "c3 a9 ff"
        expect notice "$(jq -r 'select(.code == "variable_blocked").subject' "$T/lines")" LD_PRELOAD
        expect last "$(tail -1 "$T/lines" | jq -c '[.type, .exit_code, .stdout, .error]')" '["result",3,"",null]'
        hutch --json-lines --ro /no/such true >"$T/lines" 2>/dev/null || expect refused $? 125
        expect "the refusal" "$(jq -r '"\(.type) \(.error.code)"' "$T/lines")" "result path_missing"
        agree
}

@test "--json-lines are printed when they happen" {
        "$HUTCH_BUILD/hutch" --json-lines -c 'echo begun; while [ ! -e go ]; do sleep 0.05; done' >"$T/lines" &
        pid=$!
        for _ in $(seq 200); do grep -q begun "$T/lines" && break; sleep 0.05; done
        grep -q '"data":"begun' "$T/lines" || differs "nothing before the end"
        ! grep -q '"type":"result"' "$T/lines" || differs "the result before the end"
        : >go
        wait $pid
        grep -q '"type":"result"' "$T/lines" || differs "no result"
        agree
}

@test "--result to a FIFO and to a descriptor" {
        mkfifo pipe
        timeout 20 cat pipe >"$T/read" &
        hutch --result pipe sh -c 'exit 4' || expect status $? 4
        wait $!
        expect fifo "$(jq .exit_code "$T/read")" 4
        hutch --result fd:7 sh -c 'ls /proc/self/fd | grep -x 7; exit 5' 7>"$T/fd" || expect status $? 5
        expect fd "$(jq .exit_code "$T/fd")" 5
        expect "a process substitution" "$(hutch --result >(cat >"$T/sub") true; sleep 0.3; jq .exit_code "$T/sub")" 0
        agree
}

@test "W4e: a --result file in the workspace cannot be replaced silently" {
        run hutch --result result sh -c 'rm result; echo "{\"exit_code\":0,\"fake\":1}" >result; exit 9'
        expect status "$status" 9
        [[ $output == *"hutch: warning: --result result: the file was replaced while the command ran"* ]] || differs "silent: $output"
        expect "the true result" "$(jq -c '[.exit_code,.fake]' result)" "[9,null]"
        hutch --result result sh -c 'yes >result & sleep 0.1; kill $!; exit 9' || true
        expect "written into" "$(jq -c .exit_code result)" 9
        run hutch --result result sh -c 'rm result; ln -s /etc/passwd result; exit 9'
        expect "a link" "$status $(test -L result && echo link) $(jq -c .exit_code result)" "9  9"
        mkdir d
        run hutch --result d/result sh -c 'mv d e; mkdir d; echo fake >d/result; exit 0'
        expect "the directory" "$status:$output" "125:hutch: --result d/result: its directory was replaced while the command ran: the result is not written"
        run hutch --result d/other sh -c 'mv d f; ln -s f d; exit 0'
        expect "a link to the directory" "$status:$(jq .exit_code d/other)" "0:0"
        agree
}

@test "a cut in truncated output is marked, between characters" {
        out=$(hutch --json --output-cap 1000 --output-overflow truncate -c 'yes é | head -c 90000')
        expect encoding "$(field "$out" .encoding.stdout)" utf-8
        dropped=$(field "$out" .truncated.stdout)
        [[ $(field "$out" .stdout) == *"[… ${dropped:0:2},${dropped:2} bytes dropped …]"* ]] || differs "no mark: $out"
        expect plain "$(hutch --output-cap 10 --output-overflow truncate -c 'echo abcdefghij; echo klmnopqrst' 2>/dev/null)" $'abcde\n[… 12 bytes dropped …]\nqrst'
        expect "all fits" "$(hutch --output-cap 10 --output-overflow truncate -c 'echo abcdefghi' 2>&1)" abcdefghi
        agree
}

@test "W5d: a flood of stops does not turn a run into 125" {
        "$HUTCH_BUILD/hutch" -c 'echo 1 >begun; while [ ! -e go ]; do sleep 0.02; done; (for i in $(seq 40); do kill -STOP $$; kill -CONT $$; sleep 0.01; done) & wait; echo 1 >over; exit 3' &
        pid=$!
        appears begun
        kill -STOP $pid # so that all of them wait to be read at the end
        touch go
        appears over
        sleep 0.5
        kill -CONT $pid
        wait $pid || expect status $? 3
        agree
}

@test "W4h: --cpu-time counts children that nobody waits for, or is not called enforced" {
        need python3
        cat >spin.py <<'PY'
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
end = time.monotonic() + 6
while time.monotonic() < end:
    pid = os.fork()
    if pid == 0:
        t = time.process_time()
        while time.process_time() - t < 0.05:
            pass
        os._exit(0)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
PY
        out=$(hutch --json --allow-degraded --cpu-time 1s python3 spin.py) || true
        case $(field "$out" .enforced.cpu) in
        enforced)
                expect "ended" "$(field "$out" .kill_reason)" cpu
                [ "$(field "$out" '.cpu_ms >= 900')" = true ] || differs "cpu_ms: $(field "$out" .cpu_ms)" ;;
        degraded) ;;
        *) differs "$out" ;;
        esac
        agree
}
