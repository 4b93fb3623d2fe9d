# stdin, stdout and stderr without a terminal: pipes, files, nothing, closed; --json, --capture, --result; bytes of every kind.
load helper

more_setup() {
        head -c 3000000 /dev/urandom >"$T/big"
        sum=$(sha256sum <"$T/big")
        printf 'one\ntwo\nthree\n' >"$T/lines"
}

@test "stdin from a pipe, a file, nothing" {
        [ "$(echo text | hutch cat)" = text ]
        [ "$(hutch cat <"$T/lines")" = "$(cat "$T/lines")" ]
        [ -z "$(hutch cat </dev/null)" ]
        [ -z "$(echo text | hutch --stdin none cat)" ]
        [ "$(echo text | hutch --stdin inherit cat)" = text ]
        [ "$(echo text | hutch --stdin "$T/lines" wc -l)" = 3 ]
        [ "$(cd "$T" && hutch -d ws --stdin lines wc -l)" = 3 ]
}

@test "stdin is a file that was partly read: the command goes on where the caller stopped" {
        out=$({ read -r _; hutch cat; } <"$T/lines")
        [ "$out" = $'two\nthree' ]
}

@test "stdin is closed: as if it were empty" {
        # In a shell of its own: the pipe that `run` reads from would take fd 0.
        run timeout -s KILL 10 bash -c '"$HUTCH_BUILD/hutch" cat <&-'
        [ "$status" -eq 0 ] && [ -z "$output" ]
        run timeout -s KILL 10 bash -c '"$HUTCH_BUILD/hutch" --json cat <&-'
        [ "$(field "$output" .exit_code)" = 0 ]
}

@test "stdout and stderr are closed" {
        run timeout -s KILL 10 bash -c '"$HUTCH_BUILD/hutch" echo hi >&-'
        [ "$status" -ne 137 ]
        run timeout -s KILL 10 bash -c '"$HUTCH_BUILD/hutch" sh -c "echo hi; exit 3" >&- 2>&-'
        [ "$status" -eq 3 ]
        run timeout -s KILL 10 bash -c '"$HUTCH_BUILD/hutch" sh -c "exit 3" <&- >&- 2>&-'
        [ "$status" -eq 3 ]
        timeout -s KILL 10 "$HUTCH_BUILD/hutch" --result "$T/result" echo hi >&- || true
        [ "$(jq -r .exit_code "$T/result")" = 0 ]
        timeout -s KILL 10 "$HUTCH_BUILD/hutch" --result "$T/result" cat <&- >&- 2>&- || true
        [ "$(jq -r .exit_code "$T/result")" = 0 ]
}

@test "a directory is refused as a stream" {
        run bash -c '"$HUTCH_BUILD/hutch" cat <.'
        told 125 stdin
        run hutch --stdin . cat
        told 125 stdin
        agree
}

@test "bytes survive pipes, files, --capture and --json" {
        [ "$(hutch cat <"$T/big" | sha256sum)" = "$sum" ]
        [ "$(cat "$T/big" | hutch cat | sha256sum)" = "$sum" ]
        hutch cat <"$T/big" >"$T/copy"
        [ "$(sha256sum <"$T/copy")" = "$sum" ]
        hutch cat <"$T/big" 2>"$T/none" 1>"$T/copy"
        [ "$(sha256sum <"$T/copy")" = "$sum" ]
        hutch sh -c 'cat >&2' <"$T/big" 2>"$T/copy"
        [ "$(sha256sum <"$T/copy")" = "$sum" ]
        [ "$(hutch --capture cat <"$T/big" | sha256sum)" = "$sum" ]
        hutch --json cat <"$T/big" >"$T/json"
        [ "$(jq -r .encoding.stdout "$T/json")" = base64 ]
        [ "$(jq -r .stdout "$T/json" | base64 -d | sha256sum)" = "$sum" ]
        hutch --json sh -c 'cat >&2' <"$T/big" >"$T/json"
        [ "$(jq -r .stderr "$T/json" | base64 -d | sha256sum)" = "$sum" ]
}

@test "stdout is a file with something in it: appended to, never overwritten" {
        { echo first; hutch echo second; echo third; } >"$T/log"
        [ "$(xargs <"$T/log")" = "first second third" ]
        echo first >"$T/log"
        hutch echo second >>"$T/log"
        [ "$(xargs <"$T/log")" = "first second" ]
        echo first >"$T/log"
        hutch sh -c 'echo second >&2' 2>>"$T/log"
        [ "$(xargs <"$T/log")" = "first second" ]
}

@test "stdout and stderr are one file: both are in it" {
        hutch -c 'for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done' >"$T/log" 2>&1
        [ "$(sort "$T/log" | xargs)" = "err1 err2 err3 err4 err5 out1 out2 out3 out4 out5" ]
}

@test "a file that cannot take the output is an error, not silence" {
        run bash -c '"$HUTCH_BUILD/hutch" echo hi >/dev/full'
        [ "$status" -ne 0 ]
        run bash -c '"$HUTCH_BUILD/hutch" --json echo hi >/dev/full'
        [ "$status" -eq 125 ]
        run bash -c '"$HUTCH_BUILD/hutch" --capture echo hi >/dev/full'
        [ "$status" -ne 0 ]
}

@test "a reader that goes away ends the writer: hutch yes | head -1" {
        run timeout -s KILL 20 bash -c '"$HUTCH_BUILD/hutch" yes | head -1; echo ${PIPESTATUS[0]}'
        [ "$output" = $'y\n141' ]
        run timeout -s KILL 20 bash -c '"$HUTCH_BUILD/hutch" --output-cap 100M yes | head -1; echo ${PIPESTATUS[0]}'
        [[ $output == $'y\n'* ]]
        run timeout -s KILL 20 bash -c '"$HUTCH_BUILD/hutch" -c "yes | head -1"'
        [ "$output" = y ]
}

@test "a writer that goes on after its reader is gone does not hold hutch" {
        run timeout -s KILL 20 bash -c 'yes | "$HUTCH_BUILD/hutch" head -1'
        [ "$output" = y ]
        run timeout -s KILL 20 bash -c '"$HUTCH_BUILD/hutch" head -c 1 </dev/zero | wc -c'
        [ "$output" = 1 ]
        run timeout -s KILL 10 "$HUTCH_BUILD/hutch" true < <(exec sleep 11 3>&-)
        [ "$status" -eq 0 ]
}

@test "a command that does not read its stdin is not the end of hutch" {
        for i in {1..120}; do
                s=0
                hutch sh -c 'exit 4' <"$T/big" || s=$?
                [ $s -eq 4 ] || differs "run $i: $s"
        done
        agree
}

@test "a background process that keeps stdout does not hold hutch" {
        run timeout -s KILL 10 "$HUTCH_BUILD/hutch" -c 'sleep 60 & echo done'
        [ "$status" -eq 0 ] && [ "$output" = done ]
        out=$(timeout -s KILL 10 "$HUTCH_BUILD/hutch" --json -c 'sleep 60 & echo done')
        [ "$(field "$out" .stdout)" = done ]
}

@test "--json: text is text, everything else base64" {
        one() {
                out=$(hutch --json -c "$1")
                got=$(trim "$(field "$out" '"\(.encoding.stdout) \(.stdout)"')")
                [ "$got" = "$2" ] || differs "$1: $got"
        }
        each "printf abc                  | utf-8 abc
printf 'ä€😀'                             | utf-8 ä€😀
printf '\\377'                            | base64 /w==
printf 'a\\303'                           | base64 YcM=
printf '\\355\\240\\200'                  | base64 7aCA
printf '\\300\\200'                       | base64 wIA=
printf '\\033[31m'                        | utf-8 $(printf '\033[31m')
true                                      | utf-8" one
        out=$(hutch --json -c 'printf "a\0b"')
        [ "$(field "$out" '.stdout|@json')" = '"a\u0000b"' ] || differs "NUL: $out"
        agree
}

@test "--json prints one object on stdout and nothing else" {
        hutch --json -c 'echo out; echo err >&2; exit 3' >"$T/json" 2>"$T/err" || status=$?
        [ "$status" -eq 3 ] && [ ! -s "$T/err" ] && [ "$(wc -l <"$T/json")" = 1 ]
        [ "$(jq -r .exit_code "$T/json")" = 3 ]
        hutch --json -c 'kill -SEGV $$' >"$T/json" || status=$?
        [ "$status" -eq 139 ] && [ "$(jq -c '[.exit_code,.signal,.killed,.kill_reason]' "$T/json")" = '[139,11,true,"signal"]' ]
}

@test "--result writes the object to a file, streams as usual" {
        run hutch --result "$T/result" sh -c 'echo out; echo err >&2; exit 5'
        [ "$status" -eq 5 ] && [ "$output" = $'out\nerr' ]
        [ "$(jq -c '[.exit_code,.stdout,.error]' "$T/result")" = '[5,"",null]' ]
        run hutch --result "$T/result" --ro /no/such true
        [ "$status" -eq 125 ] && [ "$(jq -r .error.code "$T/result")" = path_missing ]
        run hutch --result "$T/result" no-such-command
        [ "$(jq -r '"\(.exit_code) \(.error.code)"' "$T/result")" = "127 path_missing" ]
}

@test "--capture prints stdout whole at the end, stderr at once" {
        run hutch --capture -c 'echo out; echo err >&2; exit 6'
        [ "$status" -eq 6 ] && [[ $output == *out* ]] && [[ $output == *err* ]]
        [ "$(hutch --capture -c 'printf "a\0b"' | od -An -tx1 | xargs)" = "61 00 62" ]
        "$HUTCH_BUILD/hutch" --capture -c 'echo out; echo err >&2; while [ ! -e go ]; do sleep 0.05; done' >"$T/out" 2>"$T/err" &
        pid=$!
        appears "$T/err"
        [ ! -s "$T/out" ] || differs "stdout came early"
        touch go
        wait $pid
        agree
        [ "$(cat "$T/out")" = out ]
}

@test "--json, --capture and --result exclude one another where they contradict" {
        refused "--json --capture        | --json
--json --result x                        | --json"
        [ ! -e x ]
}

@test "sockets are relayed" {
        need python3
        cat >"$T/sock.py" <<'PY'
import os, socket, subprocess, sys
a, b = socket.socketpair()
p = subprocess.Popen([os.environ["HUTCH_BUILD"] + "/hutch", "cat"], stdin=b, stdout=b)
b.close()
a.sendall(b"hello"); a.shutdown(socket.SHUT_WR)
data = b""
while True:
    d = a.recv(100)
    if not d: break
    data += d
print(data.decode(), p.wait())
PY
        run timeout -s KILL 20 /usr/bin/python3 "$T/sock.py"
        [ "$output" = "hello 0" ]
}

@test "the box cannot reopen a host file that is its stdin or stdout" {
        echo keep >"$T/log"
        hutch sh -c 'echo x >/proc/self/fd/0; timeout 1 cat /proc/self/fd/1; ls -l /proc/self/fd >&2' <"$T/lines" >>"$T/log" 2>"$T/err" || true
        [ "$(cat "$T/lines")" = $'one\ntwo\nthree' ]
        [ "$(head -1 "$T/log")" = keep ]
        ! grep -F "$T" "$T/err"
}

@test "fds that the caller leaks do not reach the box" {
        run hutch ls /proc/self/fd 5<"$T/lines" 9>"$T/x"
        [ "$(xargs <<<"$output")" = "0 1 2 3" ]
        run hutch --stdin none sh -c 'ls -l /proc/self/fd | grep -cv -e total -e " [0123] -> "'
        [ "$output" = 0 ]
}

@test "the output cap kills, or drops the middle" {
        hutch --output-cap 1000 yes >"$T/out" 2>"$T/err" || status=$?
        [ "$status" -eq 137 ] && [ "$(wc -c <"$T/out")" = 1000 ] && grep -qx "hutch: the output reached its limit: the box was ended" "$T/err"
        out=$(hutch --json --output-cap 1000 yes) || true
        [ "$(field "$out" '[.exit_code,.killed,.kill_reason,(.stdout|length)]|@json')" = '[137,true,"output",1000]' ]
        out=$(hutch --json --output-cap 1000 --output-overflow truncate -c 'echo first; yes | head -100000; echo last')
        [ "$(field "$out" '[.exit_code,.killed,(.stdout|length <= 1030),(.stdout|startswith("first")),(.stdout|endswith("last\n")),.truncated.stdout > 0]|@json')" = \
                '[0,false,true,true,true,true]' ]
        [ "$(field "$out" '(.stdout|gsub("\\[… [0-9,]+ bytes dropped …\\]\n"; "")|length) + .truncated.stdout|. == 200011 or . == 200012')" = true ]
        # One counter for both streams, and a character is never cut.
        out=$(hutch --json --output-cap 1000 -c 'while :; do echo out; echo err >&2; done') || true
        [ "$(field "$out" '(.stdout|length)+(.stderr|length)')" = 1000 ]
        out=$(hutch --json --output-cap 10 -c 'printf "aäöüäöü€€"') || true
        [ "$(field "$out" .encoding.stdout)" = utf-8 ]
        [ "$(hutch --output-cap 1K head -c 1024 /dev/zero | wc -c)" = 1024 ]
        run hutch --output-cap 0 true
        told 125 output-cap
        agree
}

@test "a shared stdin: what hutch leaves, the caller reads on" {
        out=$(printf 'a\nb\n' | { hutch sh -c 'read x; echo box $x'; cat; })
        [[ $out == "box a"* ]]
}
