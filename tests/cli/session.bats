# Sessions from the command line: hutch session start, run, state, reset, list, stop. At a terminal (attach, shell): tests/tty.
load helper

more_setup() {
        unset XDG_STATE_HOME
        SESSIONS=$HOME/.local/state/hutch/sessions
        BOXES=$HOME/.local/state/hutch/boxes
}
eval "$(declare -f teardown | sed '1s/teardown/tidy/')"
teardown() { # a test that failed leaves no session behind
        local name
        for name in $(hutch session list 2>/dev/null | sed '1d; s/ .*//'); do
                hutch session stop "$name" --discard
        done
        tidy
}

begin() { hutch session start "$@" >/dev/null; }
sh_() { # sh_ NAME TEXT [OPTION…]: shell text in the session
        local name=$1 text=$2
        shift 2
        hutch session run "$name" "$@" -c "$text"
}
warden() { hutch session list | awk -v name="$1" '$1 == name {print $3}'; }
lives() { [ -d "/proc/$1" ] && [ "$(sed 's/.*) //' "/proc/$1/stat" | cut -c1)" != Z ]; }
await() { # await COMMAND…: at most 20 s
        local i
        for i in {1..400}; do
                "$@" && return
                sleep 0.05
        done
        return 1
}
dead() { ! lives "$1"; }
# ---- what persists ----

@test "what one run changes, the next one finds" {
        begin a
        one() {
                hutch session reset a
                sh_ a "$1" >/dev/null 2>&1
                expect "$1" "$(sh_ a "$2" 2>&1 | tr '\n' ' ')" "$3 "
        }
        each 'cd /tmp                              | pwd                            | /tmp
cd /tmp                                            | cd - >/dev/null; pwd           | /workspace
X=1                                                | echo $X; env|grep -c ^X=      | 1 0
export X=1                                         | env|grep ^X=                  | X=1
X=$'"'a\\nb'"'                                     | echo "$X"                      | a b
a=(1 "2 3")                                        | echo "${#a[@]}" "${a[1]}"      | 2 2 3
declare -A m=([k]=v)                               | echo "${m[k]}"                 | v
readonly R=1                                       | R=2; echo $R                   | bash: R: readonly variable
f() { echo "f:$1"; }                               | f x                            | f:x
shopt -s expand_aliases; alias hi="echo hello"     | hi                             | hello
set -o pipefail                                    | false|true; echo $?            | 1
shopt -s nullglob                                  | echo *.none                    | 
umask 027                                          | umask                          | 0027
set -- a "b c"                                     | echo "$# $2"                   | 2 b c
trap "echo caught" USR1                            | kill -USR1 $$                  | caught
exec 5>/tmp/five                                   | echo x >&5; cat /tmp/five      | x
(cd /tmp; X=1)                                     | pwd; echo "<$X>"               | /workspace <>
exec >/tmp/out                                     | echo seen                      | seen' one
        agree
}

@test "background jobs go on between runs, and history shows what was run" {
        begin a
        sh_ a "sleep $NAP & echo \$! >/tmp/pid"
        expect job "$(sh_ a 'kill -0 "$(cat /tmp/pid)" && jobs | grep -c Running')" 1
        expect history "$(sh_ a 'history | sed "s/^ *[0-9]* *//" | grep -c "^sleep"')" 1
        sh_ a 'kill %1; wait' || true
        expect "no job" "$(sh_ a 'jobs')" ""
        agree
}

@test "two sessions do not see each other, nor what they write" {
        begin a
        begin b
        sh_ a "X=1; touch /tmp/mine /workspace/mine; sleep $NAP &"
        expect variables "$(sh_ b 'echo "<$X>"')" "<>"
        expect files "$(sh_ b 'ls /tmp /workspace | grep -c mine')" 0
        expect processes "$(sh_ b "grep -c sleep /proc/[0-9]*/comm | grep -vc ':0'")" 0
        expect list "$(hutch session list | sed '1d; s/ .*//' | tr '\n' ' ')" "a b "
        agree
}

# ---- a run ----

@test "run: status, streams apart, and one result object with --json" {
        begin a
        local out
        ends 3 sh_ a 'exit 3'
        ends 1 sh_ a false
        sh_ a 'echo out; echo err >&2' >"$T/out" 2>"$T/err"
        expect stdout "$(cat "$T/out")" out
        expect stderr "$(cat "$T/err")" err
        out=$(sh_ a 'echo out; echo err >&2; exit 7' --json) && differs "--json hides the status"
        expect "exit_code" "$(field "$out" .exit_code)" 7
        expect "stdout" "$(field "$out" .stdout)" out
        expect "stderr" "$(field "$out" .stderr)" err
        expect "rest" "$(field "$out" '[.killed, .kill_reason, .error, .backend, .enforced.filesystem, (.duration_ms > 0)] | map(tostring) | join(" ")')" \
                "false null null namespace enforced true"
        out=$(sh_ a no-such-command --json) || true
        expect "not found" "$(field "$out" .exit_code)" 127
        out=$(sh_ a 'printf "\377"' --json)
        expect "bytes" "$(field "$out" '.encoding.stdout + " " + .stdout')" "base64 /w=="
        agree
}

@test "run -- takes words as they are, and knows the session's functions" {
        begin a
        expect words "$(hutch session run a -- printf '<%s>' 'a b' '$X' "it's" '*' '' -c)" "<a b><\$X><it's><*><><-c>"
        sh_ a 'f() { echo "f:$#"; }'
        expect function "$(hutch session run a -- f 1 2)" f:2
        agree
}

@test "run --timeout: 124, what was printed is kept, the session goes on with its state and jobs" {
        begin a
        local out began=$SECONDS
        sh_ a "K=kept; sleep $NAP & :"
        ends 124 sh_ a 'echo before; X=new; sleep 60' --timeout 500ms
        [[ $output == $'before\nhutch: timeout: '* ]] || differs "said: $output"
        expect "state" "$(sh_ a 'echo $K $X; jobs | grep -c Running' | tr '\n' ' ')" "kept new 1 "
        ends 124 sh_ a 'while :; do :; done' --timeout 300ms
        ends 124 sh_ a 'while :; do sleep 0.01; done' --timeout 300ms
        ends 124 sh_ a 'bash -c "trap : INT TERM; while :; do sleep 0.1; done"' --timeout 300ms
        ends 124 sh_ a 'cat | (sleep 60) | cat' --timeout 300ms
        out=$(sh_ a 'sleep 60' --timeout 300ms --json) || true
        expect json "$(field "$out" '[.exit_code, .killed, .kill_reason] | map(tostring) | join(" ")')" "124 true timeout"
        expect "state at the end" "$(sh_ a 'echo $K $X; jobs | grep -c Running' | tr '\n' ' ')" "kept new 1 "
        [ $((SECONDS - began)) -lt 60 ] || differs "it took $((SECONDS - began)) s"
        agree
}

@test "limits of start hold for each run, those of run instead of them" {
        begin a --timeout 400ms --output-cap 1K
        ends 124 sh_ a 'sleep 60'
        ends 0 sh_ a 'sleep 1' --timeout 30s
        ends 137 sh_ a 'seq 10000'
        [[ $output == *"hutch: the output reached its limit: the command was ended, the session continues" ]] || differs "said: ${output: -100}"
        expect "over the cap" "$(sh_ a 'seq 1000' --output-cap 1M --timeout 30s | tail -1)" 1000
        expect "goes on" "$(sh_ a 'echo on')" on
        agree
}

@test "a limit of the box ends what runs; the session comes back with the state of the last run" {
        begin a --allow-degraded --cpu-time "${HUTCH_CPU_TIME:-1s}"
        sh_ a 'X=1; cd /tmp; touch /workspace/made'
        ends 137 sh_ a 'X=2; while :; do :; done'
        [[ $output == "hutch: a limit ended the session's box"* ]] || differs "said: $output"
        expect state "$(sh_ a 'echo $X; pwd; ls /workspace' | tr '\n' ' ')" "1 /tmp made "
        agree
}

@test "stdin: a pipe, a file, none, and a megabyte" {
        begin a
        echo piped >file
        expect pipe "$(echo data | sh_ a 'cat; cat; echo end' | tr '\n' ' ')" "data end "
        expect file "$(sh_ a cat --stdin file)" piped
        expect redirect "$(sh_ a cat <file)" piped
        expect none "$(echo data | sh_ a cat --stdin none)" ""
        expect "a part of it" "$(seq 100000 | sh_ a 'head -1')" 1
        expect "the next has its own" "$(echo other | sh_ a 'read -r x; echo $x')" other
        head -c 1000000 /dev/zero >"$T/big"
        expect big "$(sh_ a 'wc -c' <"$T/big")" 1000000
        agree
}

@test "a megabyte of text, here-documents, unbalanced quotes, bytes that are no UTF-8: in step" {
        begin a
        local text
        text=": '$(head -c 100000 /dev/zero | tr '\0' x)'; echo long"
        expect long "$(sh_ a "$text")" long
        seq -f 'n=%.0f' 150000 >"$T/script"
        echo 'f() { echo "f:$n"; }' >>"$T/script"
        [ "$(stat -c %s "$T/script")" -gt 1000000 ] || differs "the script is short"
        ends 0 sh_ a '. /dev/stdin' --stdin "$T/script"
        expect "a megabyte, by stdin" "$(sh_ a f)" f:150000
        # shellcheck disable=SC2046
        expect "a megabyte of words" "$(hutch session run a -- printf '%s\n' $(seq -f %012.0f 70000) | tail -1)" 000000070000
        expect here "$(sh_ a $'cat <<E\none\ntwo\nE\necho three' | tr '\n' ' ')" "one two three "
        ends 2 sh_ a 'echo "'
        expect "after a quote" "$(sh_ a 'echo on')" on
        sh_ a 'echo $(echo (' 2>/dev/null && differs "an open parenthesis ended well"
        expect "after an open parenthesis" "$(sh_ a 'echo on')" on
        expect bytes "$(sh_ a $'printf %s \xff\xfe | od -An -tx1')" " ff fe"
        expect "NUL bytes in and out" "$(printf 'a\0b' | sh_ a 'od -An -tx1; printf "x\0y"' | od -An -c | tr -s ' \n' ' ')" ' 6 1 0 0 6 2 \n x \0 y '
        printf 'echo one\0two\n' | sh_ a '. /dev/stdin' >/dev/null 2>&1 || true
        expect "after a text with a NUL byte" "$(sh_ a 'echo on')" on
        expect "it prints what an answer looks like" "$(sh_ a "printf 'R99 7\\0'; echo; false || echo on" | tail -1)" on
        agree
}

@test "--env is for one run" {
        begin a --env PRE=1
        expect given "$(sh_ a 'echo "$A|$B|$PRE"; env | grep -c "^[AB]="' --env 'A=it'\''s $X' --env B=2 | tr '\n' ' ')" "it's \$X|2|1 2 "
        expect after "$(sh_ a 'echo "$A|$B|$PRE"')" "||1"
        ends 125 sh_ a true --env 'A B=1'
        ends 125 sh_ a true --env '1A=s3cret'
        [[ $output != *s3cret* ]] || differs "said: $output"
        agree
}

@test "--env NAME passes the caller's value, as run does; what is blocked stays out" {
        begin a --env-block BLOCKED
        export PASSED="it's \$X
two" EMPTY= BLOCKED=b LD_LIBRARY_PATH=/x
        unset UNSET
        local all=(--env PASSED --env EMPTY --env UNSET --env BLOCKED --env LD_LIBRARY_PATH)
        local text='echo "$PASSED|${EMPTY-none}|${UNSET-none}|${BLOCKED-none}|${LD_LIBRARY_PATH-none}"'
        expect given "$(sh_ a "$text; env | grep -c ^PASSED=" "${all[@]}")" $'it\'s $X\ntwo||none|none|none\n1'
        expect "as run" "$(sh_ a "$text" "${all[@]}")" "$(hutch run --env-block BLOCKED "${all[@]}" -c "$text")"
        expect "the last wins" "$(sh_ a 'echo "$EMPTY"' --env EMPTY --env EMPTY=2)" 2
        expect after "$(sh_ a 'echo "${PASSED-none}"')" none
        [[ $(field "$(sh_ a true --json --env LD_LIBRARY_PATH)" '.notices[].text') == *"LD_LIBRARY_PATH was not passed into the box"* ]] || differs "no notice"
        expect "no notice without" "$(field "$(sh_ a true --json --env PASSED)" '.notices | length')" 0
        agree
}

# ---- how a run ends ----

@test "exit, set -e, exec, kill -9, an EXIT trap: the run ends, the session does not" {
        begin a
        sh_ a 'K=kept'
        ends 4 sh_ a 'X=1; exit 4; echo no'
        expect "after exit" "$(sh_ a 'echo $K $X')" "kept 1"
        ends 1 sh_ a 'set -e; Y=1; false; echo no'
        expect "after set -e" "$(sh_ a 'echo $K $Y; [[ $- == *e* ]] && echo e; set +e' | tr '\n' ' ')" "kept 1 e "
        ends 2 sh_ a 'f() { exit 2; }; f; echo no'
        ends 5 sh_ a '(exit 5)'
        expect exec "$(sh_ a 'Z=1; exec echo replaced')" replaced
        expect "after exec" "$(sh_ a 'echo $K $X $Y "<$Z>"')" "kept 1 1 <>"
        local out
        out=$(sh_ a 'Z=1; kill -9 $$' --json) || true
        expect "killed" "$(field "$out" .exit_code)" 137
        [[ $(field "$out" '.notices[0].text') == "the shell was ended and started again, with the last state that it reported" ]] || differs "notices: $out"
        expect "after kill" "$(sh_ a 'echo $K $X $Y "<$Z>"')" "kept 1 1 <>"
        sh_ a 'trap "echo bye" EXIT'
        ends 6 sh_ a 'echo last; exit 6'
        expect trap "$output" $'last\nbye'
        ends 0 sh_ a 'exit'
        expect "no trap any more" "$output" ""
        agree
}

@test "a caller that goes away ends its command, and no other" {
        begin a
        sh_ a "K=kept; sleep $NAP & :"
        "$HUTCH_BUILD/hutch" session run a -c "sleep 8$NAP; echo no >/tmp/no" &
        await pgrep -f "^sleep 8$NAP" >/dev/null
        kill -9 $!
        wait $! || true
        expect state "$(timeout 20 "$HUTCH_BUILD/hutch" session run a -c 'echo $K; ls /tmp/no 2>&1 | grep -c "No such"; jobs | grep -c Running' | tr '\n' ' ')" "kept 1 1 "
        agree
}

@test "commands that come at the same time are run one after the other" {
        begin a
        local i pids=()
        for i in {1..8}; do
                sh_ a "printf '%s' '<$i'; sleep 0.05; echo '$i>'; echo $i >>/tmp/all" >"$T/out.$i" &
                pids+=($!)
        done
        wait "${pids[@]}"
        for i in {1..8}; do
                expect "output of $i" "$(cat "$T/out.$i")" "<$i$i>"
        done
        expect all "$(sh_ a 'sort /tmp/all | tr -d "\n"')" 12345678
        agree
}

# ---- state ----

@test "state is one JSON object with what the shell remembers" {
        begin a
        sh_ a "cd /tmp; umask 027; V='a b'; export E=\$'\\377'; arr=(1 2); f() { echo x; }; alias l=ls; sleep $NAP & :"
        local state
        state=$(hutch session state a)
        expect valid "$(jq -r type <<<"$state")" object
        expect scalars "$(field "$state" '[.cwd, .previous, .umask, .variables.V] | join("|")')" "/tmp|/workspace|0027|a b"
        expect bytes "$(field "$state" .exported.E.base64)" "/w=="
        expect array "$(field "$state" .arrays.arr)" 'declare -a arr=([0]="1" [1]="2")'
        expect names "$(field "$state" '(.functions.f | gsub("\\s+"; " ")) + "|" + .aliases.l')" "f () { echo x }|ls"
        expect jobs "$(field "$state" '.jobs | length')" 1
        [[ $(field "$state" '.jobs[0]') == *"sleep $NAP"* ]] || differs "jobs: $state"
        expect "nothing late" "$(field "$state" '.late_output | length')" 0
        agree
}

@test "what a background job prints after its run is kept apart, and told" {
        begin a
        local out
        sh_ a '(sleep 0.5; echo late; echo fault >&2) & echo now' >"$T/out"
        expect "its own run" "$(cat "$T/out")" now
        out=$(sh_ a 'sleep 2; echo mine' --json)
        expect "the next run" "$(field "$out" .stdout)" mine
        [[ $(field "$out" '.notices[].text') == *"background jobs of earlier runs printed"* ]] || differs "notices: $out"
        expect state "$(field "$(hutch session state a)" '[.late_output[] | .stream + ":" + .text] | sort | join("")')" $'stderr:fault\nstdout:late'
        agree
}

# ---- reset ----

@test "reset: files, variables, functions, directory and jobs are those of the beginning; the name stays" {
        echo host >file
        begin a --env PRE=1
        sh_ a "X=1; f() { :; }; cd /tmp; touch /tmp/t; echo box >/workspace/file; touch /workspace/new; PRE=2; sleep $NAP &"
        hutch session reset a
        gone "sleep $NAP"
        expect state "$(sh_ a 'echo "<$X>$PRE"; type -t f; pwd; ls /tmp; cat /workspace/file; ls /workspace' | tr '\n' ' ')" "<>1 /workspace host file "
        expect list "$(hutch session list | sed '1d; s/ .*//')" a
        hutch session stop a
        expect "nothing to review" "$(ls "$BOXES" 2>/dev/null)" ""
        agree
}

# ---- beginning and end ----

@test "start: a name that is taken is refused, the name is 'default' if none is given, and a bad one says what can be" {
        begin
        run hutch session start
        told 125 "session 'default' already exists (end it with 'hutch session stop default')"
        run hutch session start default
        told 125 "session 'default' already exists"
        expect "the first one lives" "$(sh_ default 'echo on')" on
        for name in ../x .x -x 'a b' a/b '' "$(printf 'x%.0s' {1..65})"; do
                run hutch session start -- "$name"
                [ "$status" -eq 125 ] || differs "'$name' was taken"
                [ -z "$name" ] || [ "${name:0:1}" = - ] || {
                        run hutch session start "$name"
                        told 125 "cannot name a session"
                }
        done
        run hutch session run nobody -c true
        told 125 "no such session: 'nobody'"
        expect list "$(hutch session list | awk 'NR == 2 {print $1, $NF}')" "default $T/ws"
        agree
}

@test "options that a session was not started with are refused, not passed over" {
        begin a
        one() {
                local words
                eval "words=($1)"
                run hutch session "${words[@]}"
                told 125 "$2"
        }
        each "run a --net open -c true | option '--net' is not valid
run a --rw . -c true                   | option '--rw' is not valid
run a --memory 1G -c true              | option '--memory' is not valid
run a --shell /bin/sh -c true          | option '--shell' is not valid
run a --result f -c true               | option '--result' is not valid
run a --discard -c true                | option '--discard' is not valid
stop a --json                          | option '--json' is not valid
state a --timeout 1s                   | option '--timeout' is not valid
start b --discard                      | option '--discard' is not valid
start b --isolation none                | copy-on-write is not supported with --isolation none
start b --shell /no/such               | /no/such: command not found in the box
start b --idle-timeout soon            | is not a duration" one
        expect "only the first is there" "$(hutch session list | sed '1d; s/ .*//')" a
        expect "no box is left" "$(ls "$BOXES" | wc -l)" 1
        agree
}

@test "stop keeps changes for a review; nothing else is left" {
        echo host >file
        begin a --pids 100
        local pid box
        pid=$(warden a)
        box=$(hutch session list | awk 'NR == 2 {print $4}')
        sh_ a "echo box >/workspace/file; echo new >/workspace/new; sleep $NAP & :"
        [ -S "$SESSIONS/a/socket" ] || differs "no socket to lose"
        run hutch diff --box "$box"
        told 125 "in use"
        run hutch session stop a
        told 0 "kept its changes in box $box"
        gone "sleep $NAP"
        dead "$pid" || differs "its warden lives"
        expect directory "$(ls -A "$SESSIONS")" ""
        expect cgroups "$(find /sys/fs/cgroup -name "hutch-$pid-*" 2>/dev/null)" ""
        expect list "$(hutch session list)" ""
        expect host "$(cat file; ls)" $'host\nfile'
        expect diff "$(hutch diff --name-only | sed 's|.*/||' | tr '\n' ' ')" "file new "
        hutch apply new >/dev/null
        expect applied "$(cat new)" new
        hutch discard
        expect boxes "$(ls "$BOXES")" ""
        run hutch session stop a
        told 125 "no such session: 'a'"
        agree
}

@test "stop --discard drops the changes; one that changed nothing leaves nothing" {
        begin a
        sh_ a 'echo new >/workspace/new'
        run hutch session stop a --discard
        expect said "$output" ""
        expect boxes "$(ls "$BOXES")" ""
        begin a
        sh_ a 'X=1; touch /tmp/x'
        run hutch session stop a
        expect said "$output" ""
        expect boxes "$(ls "$BOXES")" ""
        expect workspace "$(ls)" ""
        agree
}

@test "stop ends a command that runs, and its caller hears of it" {
        begin a
        "$HUTCH_BUILD/hutch" session run a -c "echo on; sleep $NAP" >"$T/out" 2>"$T/said" &
        appears "$T/out"
        hutch session stop a
        wait $! && differs "the run ended well"
        expect said "$(cat "$T/said")" "hutch: the session was closed"
        gone "sleep $NAP"
        agree
}

@test "a session outlives the shell and the terminal that started it, and holds none of its streams" {
        local out
        out=$(timeout 20 bash -c "$HUTCH_BUILD/hutch session start a 2>&1") # ends only if nobody holds the pipe
        [[ $out == "started session 'a'"* ]] || differs "said: $out"
        script -qec "$HUTCH_BUILD/hutch session start b >/dev/null; $HUTCH_BUILD/hutch session run b -c 'X=1'" /dev/null </dev/null >/dev/null
        expect "after its terminal" "$(sh_ b 'echo $X')" 1
        expect session "$(ps -o sid= -p "$(warden a)" | tr -d ' ')" "$(warden a)"
        expect streams "$(for i in 0 1 2; do readlink "/proc/$(warden a)/fd/$i"; done | sort -u)" /dev/null
        setsid bash -c "$HUTCH_BUILD/hutch session start c; kill -9 -\$\$" >/dev/null 2>&1 || true
        expect "after a killed group" "$(sh_ c 'echo on')" on
        agree
}

@test "--idle-timeout ends a session that nobody uses, not one at work; changes are kept" {
        begin a --idle-timeout 1s
        local pid
        pid=$(warden a)
        sh_ a 'sleep 2; echo new >/workspace/new'
        lives "$pid" || differs "ended while it ran a command"
        await dead "$pid" || differs "lives on"
        run hutch session run a -c true
        told 125 "no such session: 'a'"
        expect directory "$(ls -A "$SESSIONS")" ""
        expect kept "$(hutch diff --name-only | sed 's|.*/||')" new
        agree
}

@test "kill -9 of its warden: nothing runs on, the name is free, changes are kept" {
        begin a
        local pid
        pid=$(warden a)
        sh_ a "echo new >/workspace/new; sleep $NAP & :"
        kill -9 "$pid"
        gone "sleep $NAP"
        run hutch session run a -c true
        told 125 "no such session: 'a'"
        expect list "$(hutch session list)" ""
        begin a
        expect "the name is free" "$(sh_ a 'ls /workspace; echo on')" on
        hutch session stop a
        expect kept "$(hutch diff --name-only | sed 's|.*/||')" new
        hutch discard
        expect boxes "$(hutch boxes >/dev/null 2>&1; ls "$BOXES")" ""
        expect directory "$(ls -A "$SESSIONS")" ""
        agree
}

@test "nobody but the owner gets at a session" {
        begin a
        expect "mode of the directories" "$(stat -c %a "$SESSIONS" "$SESSIONS/a" | tr '\n' ' ')" "700 700 "
        expect "mode of the files" "$(stat -c %a "$SESSIONS/a/meta" "$SESSIONS/a/plan" | sort -u)" 600
        am_root || { agree; return; } # it takes root to become another user
        # Even where directories and socket let it pass, the warden looks at who it is.
        connects() { # connects [SETPRIV OPTION…]: as that user, is a question answered?
                setpriv "$@" /usr/bin/python3 - "$SESSIONS/a/socket" <<'EOF'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    s.connect(sys.argv[1])
except PermissionError:
    sys.exit("refused")
s.settimeout(1)
try:
    sys.exit("hung up on" if s.recv(1) == b"" else "answered")
except socket.timeout:
    sys.exit(0)  # it waits for a request
except ConnectionError:
    sys.exit("hung up on")
EOF
        }
        run connects --reuid 65534 --regid 65534 --clear-groups
        expect "by the directory" "$output" refused
        chmod 755 "$T" "$HOME" "$HOME/.local" "$HOME/.local/state" "$HOME/.local/state/hutch" "$SESSIONS" "$SESSIONS/a"
        chmod 777 "$SESSIONS/a/socket"
        run connects --reuid 65534 --regid 65534 --clear-groups
        expect "by the warden" "$output" "hung up on"
        run connects --reuid 0
        expect "the owner" "$status" 0
        expect "it lives" "$(sh_ a 'echo on')" on
        agree
}

@test "in the box: user, uid 1000, /home/user, sandbox; /dev/hutch cannot be changed" {
        begin a --workspace none
        expect world "$(sh_ a 'id -un; id -u; echo $HOME; hostname; pwd; ls -A /workspace' | tr '\n' ' ')" "user 1000 /home/user sandbox /workspace "
        ends 1 sh_ a 'echo x >/dev/hutch/run'
        ends 1 sh_ a 'rm -f /dev/hutch/prelude'
        ends 1 sh_ a 'touch /dev/hutch/new'
        expect "the answers are not a command's" "$(sh_ a 'ls /proc/self/fd | grep -c 198')" 0
        agree
}

@test "a plain sh: what persists, and what its end leaves" {
        begin a --shell /bin/sh
        sh_ a 'X="a
b"; export E=1; f() { echo f; }; alias hi="echo hello"; cd /tmp; umask 027'
        expect "from run to run" "$(sh_ a 'echo "$X"; env | grep ^E=; f; hi; pwd; umask' | tr '\n' ' ')" "a b E=1 f hello /tmp 0027 "
        ends 124 sh_ a 'while :; do :; done' --timeout 300ms
        ends 5 sh_ a 'exit 5'
        expect "after exit" "$(sh_ a 'echo "$X"; env | grep ^E=; hi; pwd; umask' | tr '\n' ' ')" "a b E=1 hello /tmp 0027 "
        ends 137 sh_ a 'kill -9 $$'
        expect "after a kill" "$(sh_ a 'echo "$X"; env | grep ^E=; hi; pwd; umask' | tr '\n' ' ')" "a b E=1 hello /tmp 0027 "
        expect state "$(field "$(hutch session state a)" '[.cwd, .umask, .exported.E] | join(" ")')" "/tmp 0027 1"
        agree
}

@test "a command that fails and missed the network: the option is named, by the box's own counters" {
        hint="hutch: warning: the command failed, and it tried to reach a network that the box does not have"
        begin a
        ends 1 sh_ a 'echo >/dev/tcp/203.0.113.7/80' 2>/dev/null
        [[ $output == *"$hint (try: hutch session start --net open)" ]] || differs "session: $output"
        [[ $(field "$(sh_ a 'echo >/dev/udp/203.0.113.7/53' --json || true)" '.notices[] | select(.code == "network_missing").fix') == *"--net open"* ]] || differs "no notice in JSON"
        ends 1 sh_ a false
        expect "another command" "$output" ""
        ends 0 sh_ a 'echo >/dev/tcp/203.0.113.7/80 || true' 2>/dev/null
        [[ $output != *"$hint"* ]] || differs "one that ends well: $output"
        ends 1 sh_ a false
        expect "one after it" "$output" ""
        ends 1 hutch run -c 'echo >/dev/tcp/203.0.113.7/80'
        [[ $output == *"$hint (try: --allow-host NAME, or --net open)" ]] || differs "run: $output"
        ends 1 hutch run -c 'pip() { false; }; pip install x; echo npm; curl() { false; }; curl'
        [[ $output != *"$hint"* ]] || differs "words are no reason: $output"
        ends 1 hutch run -c '{ echo; } 2>/dev/null >/dev/tcp/127.0.0.1/1'
        expect "the box's own loopback" "$output" ""
        agree
}

@test "a session with limits tells them as the machine's own" {
        begin a --memory 256M --cpu 100% --allow-degraded
        expect memory "$(sh_ a 'awk "/MemTotal/ {print \$2}" /proc/meminfo')" 262144
        expect processors "$(sh_ a 'grep -c ^processor /proc/cpuinfo; nproc' | tr '\n' ' ')" "1 1 "
        expect free "$(sh_ a 'free -m' | awk '/^Mem:/ {print $2}')" 256
        agree
}

@test "few open files: bash says what it needs, sh does with less" {
        begin sh --shell /bin/sh # what it needs once, with more at hand
        hutch session stop sh
        ends 125 bash -c "ulimit -n 198; $HUTCH_BUILD/hutch session start a"
        [[ $output == *"needs 199 open files, and 198 are allowed"* ]] || differs "said: $output"
        ends 0 bash -c "ulimit -n 150; $HUTCH_BUILD/hutch session start a --shell /bin/sh"
        expect "a plain sh" "$(sh_ a 'echo on; ulimit -n' | tr '\n' ' ')" "on 150 "
        ends 0 bash -c "ulimit -n 199; $HUTCH_BUILD/hutch session start b"
        expect "just enough" "$(sh_ b 'echo on; ulimit -n' | tr '\n' ' ')" "on 199 "
        agree
}

@test "each run tells what it changed itself" {
        echo 1 >a
        echo 2 >b
        begin c
        changed() { sh_ c "$1" --json | jq -c .changes; }
        expect first "$(changed 'echo new >n; echo x >a')" '{"created":["/workspace/n"],"modified":["/workspace/a"],"deleted":[]}'
        expect nothing "$(changed true)" '{"created":[],"modified":[],"deleted":[]}'
        expect third "$(changed 'rm b; echo more >>n')" '{"created":[],"modified":["/workspace/n"],"deleted":["/workspace/b"]}'
        expect touched "$(changed 'touch n a')" '{"created":[],"modified":[],"deleted":[]}'
        hutch session stop c --discard
        agree
}

@test "a session travels as a file, its shell with it, what is blocked without" {
        mkdir src
        begin one --cow / --env-block SECRET
        sh_ one 'cd src; export TOKEN=abc SECRET=xyz; greet() { echo "hello $1"; }; echo new >b; ln -s /etc/passwd out; echo home >~/h; echo tmp >/tmp/t'
        sh_ one 'echo system >/usr/local/s; rm /usr/bin/yes; ln -s /etc/passwd ~/out'
        ends 0 hutch export --session one "$T/x.tar.zst"
        ends 0 hutch export --session one --workspace-only "$T/w.tar.zst"
        expect "it goes on" "$(sh_ one 'greet you; pwd' | tr '\n' ' ')" "hello you /workspace/src "
        hutch session stop one --discard
        ends 125 hutch import "$T/x.tar.zst"
        [[ $output == *"a link that leads out"* ]] || differs "said: $output"
        ends 0 hutch import --force "$T/x.tar.zst"
        begin two --box "$(hutch boxes | awk 'NR == 2 {print $1}')"
        expect "the other" "$(sh_ two 'greet two; pwd; cat b; echo "$TOKEN[$SECRET]"' | tr '\n' ' ')" "hello two /workspace/src new abc[] "
        expect "U j: home, /tmp, system" "$(sh_ two 'cat ~/h /tmp/t /usr/local/s; readlink ~/out; ls /usr/bin/yes' 2>/dev/null | tr '\n' ' ')" "home tmp system /etc/passwd "
        hutch session stop two --discard
        for options in "$T/w.tar.zst" "--workspace-only $T/x.tar.zst"; do
                # shellcheck disable=SC2086 # words
                ends 0 hutch import --force $options
                begin three --box "$(hutch boxes | awk 'NR == 2 {print $1}')"
                expect "$options" "$(sh_ three 'cat b; ls ~/h /tmp/t /usr/local/s; ls /usr/bin/yes' 2>/dev/null | tr '\n' ' ')" "new /usr/bin/yes "
                hutch session stop three --discard
        done
        agree
}

@test "a snapshot of a session holds files, home and shell; a fork has them too" {
        echo 1 >a
        begin one
        sh_ one 'cd /tmp; declare -A m=([k]=v); f() { echo "f $1"; }; alias q=echo; umask 027; echo home >~/h; echo tmp >t; echo ws >/workspace/w'
        look() { sh_ "$1" 'pwd; echo ${m[k]}; f x; q al; umask; cat ~/h t /workspace/w' 2>&1 | tr '\n' ' '; }
        before=$(look one)
        expect "as made" "$before" "/tmp v f x al 0027 home tmp ws "
        ends 0 hutch snapshot --session one good
        expect "after the snapshot" "$(look one)" "$before"
        ends 0 hutch fork --session one twin
        sh_ one 'rm -rf /workspace/* ~/h /tmp/t; unset m; unset -f f; cd /'
        expect "the fork" "$(look twin)" "$before"
        ends 0 hutch restore --session one good
        expect "restored" "$(look one)" "$before"
        sh_ one 'sleep 300 & sleep 0.3'
        ends 125 hutch snapshot --session one
        [[ $output == *"(sleep)"* ]] || differs "said: $output"
        ends 0 hutch snapshot --session one --stop second
        expect "nothing runs" "$(sh_ one 'pgrep -c sleep')" 0
        hutch session stop twin --discard
        hutch session stop one --discard
        ends 0 hutch snapshot --remove good
        ends 0 hutch snapshot --remove second
        [ -z "$(ls "$HOME/.local/state/hutch/layers" "$BOXES" 2>/dev/null | grep -v :)" ] || differs "left: $(ls -R "$HOME/.local/state/hutch" | head -20)"
        agree
}
