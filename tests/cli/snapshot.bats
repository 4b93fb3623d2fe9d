# Snapshots and forks: the state of a box's copy-on-write directories, kept, taken back, branched off.
load helper

more_setup() {
        unset XDG_STATE_HOME
        STATE=$HOME/.local/state/hutch
        mkdir -p src/deep
        echo host >src/main.c
        echo deep >src/deep/file
        ln -s main.c src/link
}

eval "$(declare -f teardown | sed '1s/teardown/tidy/')"
teardown() { # a test that failed leaves no session behind
        local name
        for name in $(hutch session list 2>/dev/null | sed '1d; s/ .*//'); do hutch session stop "$name" --discard; done
        tidy
}

first() { # first TEXT: a box that ran it
        hutch --workspace cow -c "$1" 2>"$T/said" || differs "the box ended with $?: $(cat "$T/said")"
        BOX=$(sed -n 's/.*hutch: kept .* in box \([^ ]*\) .*/\1/p' "$T/said")
        [ -n "$BOX" ] || differs "no box was kept: $(cat "$T/said")"
}
in_box() { hutch run --box "$BOX" -c "$1" 2>"$T/said" || differs "[$1] ended with $?: $(cat "$T/said")"; }
# All that a box sees of its workspace: names, types, modes, times of files, targets, contents.
PICTURE='find . -mindepth 1 ! -type d -printf "%p %y %m %s %T@ %l %n\n" | sort; find . -mindepth 1 -type d -printf "%p %y %m\n" | sort
        find . -type f -readable -exec sha256sum {} + | sort'
picture() { hutch run --box "${1:-$BOX}" -c "$PICTURE" 2>/dev/null; }
# Everything that is kept is gone.
traceless() {
        hutch boxes >/dev/null
        local left
        left=$(find "$STATE" -mindepth 2 ! -path "$STATE/empty/*" ! -path "$STATE/seen/*" 2>/dev/null) # seen: what is shown once at a terminal
        [ -z "$left" ] || differs "left in the state: $left"
}
all_gone() { # of boxes and snapshots
        local id
        for id in $(ls "$STATE/boxes"); do hutch discard --box "$id"; done
        for id in $(ls "$STATE/snapshots" 2>/dev/null); do hutch snapshot --remove "$id"; done
        traceless
}

@test "snapshot, wreck everything, restore: the same tree" {
        first 'echo new >new; chmod 640 new; touch -d @1000000000 new; ln -s new to-new; ln new hard; mkfifo pipe; mkdir -m 1777 wide; rm src/main.c
                echo x >"odd
name"; truncate -s 10M sparse; chmod 000 src/deep/file; mkdir -m 711 src/own; echo y >src/own/y'
        before=$(picture)
        snap=$(hutch snapshot before)
        [[ $snap =~ ^[0-9a-z]{16}$ ]] || differs "no id: $snap"
        [ "$(picture)" = "$before" ] || differs "after the snapshot: $(diff <(picture) <(echo "$before"))"
        in_box 'chmod -R u+rwX .; rm -rf ./* ; echo wreck >new; mkdir src; echo other >src/main.c'
        [ "$(hutch run --box "$BOX" -c 'ls' 2>/dev/null)" = $'new\nsrc' ] || differs "not wrecked"
        [ "$(hutch restore before)" = "$BOX" ] || differs "another box was restored"
        [ "$(picture)" = "$before" ] || differs "by name: $(diff <(picture) <(echo "$before"))"
        in_box 'rm -rf ./*'
        hutch restore --box "$BOX" "$snap" >/dev/null
        [ "$(picture)" = "$before" ] || differs "by id: $(diff <(picture) <(echo "$before"))"
        # The box may go; the snapshot makes another one.
        hutch discard --box "$BOX"
        BOX=$(hutch restore before)
        [ "$(picture)" = "$before" ] || differs "in a new box: $(diff <(picture) <(echo "$before"))"
        [ "$(cat src/main.c)" = host ] && [ ! -e new ] || differs "the host was changed"
        all_gone
        agree
}

@test "the top of the workspace: its mode and attributes are part of it" {
        first 'chmod 711 .; echo x >x'
        hutch snapshot top >/dev/null
        [ "$(hutch run --box "$BOX" -c 'stat -c %a .' 2>/dev/null)" = 711 ] || differs "after the snapshot"
        in_box 'chmod 755 .'
        hutch restore top >/dev/null
        [ "$(hutch run --box "$BOX" -c 'stat -c %a .' 2>/dev/null)" = 711 ] || differs "after going back"
        in_box 'chmod 500 .'
        hutch snapshot shut >/dev/null
        [ "$(hutch run --box "$BOX" -c 'stat -c %a .; cat x' 2>/dev/null)" = $'500\nx' ] || differs "a top that cannot be written"
        all_gone
        agree
}

@test "ten forks: no one sees another's, and they share their disk" {
        first 'head -c 20M /dev/urandom >large; echo all >shared'
        used=$(du -sm "$STATE" | cut -f1)
        boxes=()
        for i in 0 1 2 3 4 5 6 7 8 9; do boxes+=("$(hutch fork --box "$BOX")"); done
        [ "$(($(du -sm "$STATE" | cut -f1) - used))" -le 2 ] || differs "$used MB became $(du -sm "$STATE" | cut -f1)"
        for i in 0 1 2 3 4 5 6 7 8 9; do
                hutch run --box "${boxes[i]}" -c "echo $i >own-$i; echo $i >shared; rm src/main.c" 2>/dev/null || differs "fork $i"
        done
        for i in 0 1 2 3 4 5 6 7 8 9; do
                got=$(hutch run --box "${boxes[i]}" -c 'cat shared; ls; wc -c <large' 2>/dev/null | tr '\n' ' ')
                [ "$got" = "$i large own-$i shared src 20971520 " ] || differs "fork $i: $got"
        done
        [ "$(hutch run --box "$BOX" -c 'cat shared; ls' 2>/dev/null | tr '\n' ' ')" = "all large shared src " ] || differs "the first"
        [ "$(($(du -sm "$STATE" | cut -f1) - used))" -le 4 ] || differs "in the end $(du -sm "$STATE" | cut -f1) MB"
        # Its files stay as long as one of them does.
        for id in "$BOX" "${boxes[@]:0:9}"; do hutch discard --box "$id"; done
        [ "$(hutch run --box "${boxes[9]}" -c 'wc -c <large' 2>/dev/null)" = 20971520 ] || differs "the last one lost its files"
        all_gone
        agree
}

@test "names: listed, unique in a workspace, removed" {
        first 'echo x >x'
        hutch snapshot one >/dev/null
        hutch snapshot 'two words' >/dev/null
        run hutch snapshot one
        told 125 "snapshot 'one' already exists"
        run hutch snapshot --list
        [ "${#lines[@]}" -eq 3 ] && [[ $output == *" one "* && $output == *"two words"*"$T/ws" ]] || differs "$output"
        # Another workspace has names of its own.
        mkdir "$T/other"
        hutch -d "$T/other" --workspace cow touch y 2>/dev/null
        hutch snapshot -d "$T/other" one >/dev/null || differs "the name is taken elsewhere"
        in_box 'rm x'
        hutch restore one >/dev/null
        [ "$(hutch run --box "$BOX" -c ls 2>/dev/null)" = $'src\nx' ] || differs "the wrong one was taken"
        hutch snapshot --remove one
        run hutch restore one
        told 125 "no such snapshot: 'one'"
        [ "$(hutch snapshot --list | wc -l)" -eq 3 ] || differs "$(hutch snapshot --list)"
        all_gone
        run hutch snapshot --list
        [ "$output" = "no snapshots" ] || differs "$output"
        agree
}

@test "U o: --older-than removes old snapshots without a name, and no other" {
        hutch --workspace cow -c 'echo 1 >one' 2>/dev/null
        local named plain recent
        named=$(hutch snapshot kept)
        plain=$(hutch snapshot)
        recent=$(hutch snapshot)
        for id in "$named" "$plain"; do sed -i 's/"created": *[0-9]*/"created": 1000/' "$HOME/.local/state/hutch/snapshots/$id/meta"; done
        run hutch snapshot --older-than 7d
        [ "$output" = "1 snapshot removed" ] || differs "$output"
        run hutch snapshot --list
        [[ $output == *"$recent"* && $output == *"$named"* && $output != *"$plain"* ]] || differs "$output"
        run hutch snapshot --older-than 7d --list
        told 125 "take no further arguments"
        run hutch snapshot --older-than soon
        told 125 "soon"
        agree
}

@test "review of a box with snapshots: all of its changes, and the snapshots stay as they are" {
        first 'echo one >a; echo one >b; rm src/main.c'
        hutch snapshot first >/dev/null
        in_box 'echo two >a; mkdir new; echo n >new/n; rm -r src/deep; mkdir src/deep; echo z >src/deep/z'
        [ "$(hutch diff --name-only | tr '\n' ' ')" = "a b new new/n src/deep/file src/deep/z src/main.c " ] || differs "$(hutch diff --name-only)"
        # The box goes on after a review, and writes through to nobody.
        in_box 'echo three >>a; echo four >>b'
        [ "$(hutch run --box "$BOX" -c 'cat a b' 2>/dev/null | tr '\n' ' ')" = "two three one four " ] || differs "after the review"
        hutch restore first >/dev/null
        [ "$(hutch run --box "$BOX" -c 'cat a b; ls src/deep' 2>/dev/null | tr '\n' ' ')" = "one one file " ] || differs "the snapshot was changed"
        hutch apply a src >/dev/null || differs "apply: $?"
        [ "$(cat a)" = one ] && [ ! -e src/main.c ] && [ -e src/deep/file ] && [ ! -e b ] || differs "not applied"
        [ "$(hutch diff --name-only)" = b ] || differs "$(hutch diff --name-only)"
        all_gone
        agree
}

@test "what the host changed is noticed across snapshots, restores and forks" {
        first 'echo box >src/main.c'
        hutch snapshot s >/dev/null
        twin=$(hutch fork)
        in_box 'echo again >src/main.c'
        hutch restore --box "$BOX" s >/dev/null
        sleep 0.05
        echo changed >src/main.c
        for id in "$BOX" "$twin"; do
                run hutch apply --box "$id"
                [ "$status" -eq 1 ] && [[ $output == *"the host changed it since"* ]] || differs "$id: $status $output"
        done
        [ "$(cat src/main.c)" = changed ] || differs "the host's edit was lost"
        all_gone
        agree
}

# Chains are merged when they are long, which a few more than a hundred show as well.
@test "hundreds of snapshots in a row" {
        local many=${HUTCH_SNAPSHOTS:-300}
        first 'echo 0 >count; echo keep >kept'
        # As cheap as runs are, a box for each would take long: what a run would write is put into the layer.
        for ((i = 1; i <= many; i++)); do
                echo $i >"$STATE/boxes/$BOX/0/upper/count"
                echo $i >"$STATE/boxes/$BOX/0/upper/file-$i"
                hutch snapshot "s$i" >/dev/null || { differs "snapshot $i"; break; }
        done
        [ "$(hutch run --box "$BOX" -c 'cat count kept; ls | wc -l' 2>/dev/null | tr '\n' ' ')" = "$many keep $((many + 3)) " ] || differs "in the end"
        for i in 1 99 100 101 102 $((many - 1)) $many; do
                hutch restore "s$i" >/dev/null || differs "restore $i"
                got=$(hutch run --box "$BOX" -c 'cat count kept; ls | wc -l' 2>/dev/null | tr '\n' ' ')
                [ "$got" = "$i keep $((i + 3)) " ] || differs "snapshot $i: $got"
        done
        all_gone
        agree
}

@test "killed at random moments: nothing is lost, and what is left is swept" {
        first 'echo 0 >count'
        hutch snapshot base >/dev/null
        last=0
        for ((i = 1; i <= 50; i++)); do
                echo $i >"$STATE/boxes/$BOX/0/upper/count"
                case $((i % 3)) in
                0) "$HUTCH_BUILD/hutch" fork --box "$BOX" >/dev/null 2>&1 & ;;
                *) "$HUTCH_BUILD/hutch" snapshot --box "$BOX" >/dev/null 2>&1 & ;;
                esac
                pid=$!
                read -rt "0.00$((RANDOM % 8))" <> <(:) || :
                kill -9 $pid 2>/dev/null || :
                wait $pid 2>/dev/null || :
                # Whoever opens the box next finishes what was begun.
                hutch snapshot --box "$BOX" >/dev/null || { differs "round $i: the box cannot be opened"; break; }
                below=$(jq -r '.chain | reverse[]' "$STATE/boxes/$BOX/meta")
                got=$(cat "$STATE/boxes/$BOX/0/upper/count" 2>/dev/null || for layer in $below; do cat "$STATE/layers/$layer/0/upper/count" 2>/dev/null && break; done)
                [ "$got" = $i ] || { differs "round $i: count is '$got'"; break; }
        done
        # As if it were long ago.
        find "$STATE" -exec touch -hd '1 hour ago' {} +
        hutch boxes >/dev/null
        hutch snapshot --list >/dev/null
        hutch boxes >/dev/null
        for layer in "$STATE"/layers/*; do
                for owner in "$layer"/refs/*; do
                        grep -qs "${layer##*/}" "$STATE"/{boxes,snapshots}/"${owner##*/}"/meta || differs "$layer belongs to nobody: $owner"
                done
        done
        hutch restore --box "$BOX" base >/dev/null
        [ "$(hutch run --box "$BOX" -c 'cat count' 2>/dev/null)" = 0 ] || differs "the first snapshot is lost"
        all_gone
        agree
}

@test "a box that runs is not touched; one of no copy-on-write directories goes on as before" {
        first 'echo x >x'
        "$HUTCH_BUILD/hutch" run --box "$BOX" -c "echo started; sleep $NAP" >"$T/out" 2>/dev/null &
        pid=$!
        appears "$T/out"
        run hutch snapshot --box "$BOX"
        told 125 "is in use"
        run hutch fork --box "$BOX"
        told 125 "is in use"
        kill $pid
        wait $pid || :
        run hutch run --box nothing true
        told 125 "no such box"
        all_gone
        agree
}

@test "further copy-on-write directories, and one that comes later" {
        mkdir "$T/extra" "$T/later"
        echo host >"$T/extra/f"
        hutch --workspace cow --cow "$T/extra:/mnt/extra" -c 'echo box >/mnt/extra/f; echo w >w' 2>"$T/said"
        BOX=$(sed -n 's/.*hutch: kept .* in box \([^ ]*\) .*/\1/p' "$T/said")
        hutch snapshot two >/dev/null
        in_box 'cat /mnt/extra/f w; rm /mnt/extra/f w' >"$T/out"
        [ "$(cat "$T/out")" = $'box\nw' ] || differs "$(cat "$T/out")"
        hutch run --box "$BOX" --cow "$T/later" -c "echo l >$T/later/l" 2>/dev/null || differs "a later directory"
        [ ! -e "$T/later/l" ] || differs "the host was written to"
        hutch restore two >/dev/null
        in_box "cat /mnt/extra/f w; ls -A $T/later" >"$T/out"
        [ "$(cat "$T/out")" = $'box\nw' ] || differs "after going back: $(cat "$T/out")"
        [ "$(cat "$T/extra/f")" = host ] || differs "the host"
        all_gone
        agree
}

# ---- sessions in which something runs, copied as they are ----

inside() { hutch session run "$1" -c "$2"; } # inside SESSION TEXT
# Of every kind of thing one, and two writers: one with an open file, one that sits in a directory. What the second writes last is
# copied long after what it writes first.
BUSY='rm src/main.c; rm -r src/deep; mkdir src/deep; echo mine >src/deep/mine; rm src/link
        echo one >file; chmod 640 file; touch -d @1000000000 file; ln file hard; ln -s file link; mkfifo -m 604 pipe; mkdir -m 1777 wide; python3 -c "import os; os.setxattr(\"file\", \"user.note\", b\"kept\")"
        mkdir -p wide/inner; ln file wide/inner/third; echo x >"odd
name"; printf y >"$(printf "bad\\377name")"; truncate -s 8M sparse; echo end >>sparse; echo secret >shut; chmod 000 shut; mkdir shut.d; echo in >shut.d/in; chmod 000 shut.d
        python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")"; d=deep; for i in $(seq 60); do d=$d/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done; mkdir -p "$d"; touch "$d/bottom"
        touch -h -d @1000000000 link; touch -d @1100000000 src wide; cp -p file set; chmod 751 set; VALUE="kept here"
        mkdir busy; ( exec 9>busy/open; while :; do echo tick >&9; sleep 0.01; done ) & ( cd busy; head -c 30M /dev/urandom >m-large; while :; do echo x >>a-first; echo x >>z-second; done ) &
        sleep 1000 & STOPPED=$!; kill -STOP $STOPPED; while [ ! -s busy/z-second ]; do sleep 0.02; done'
STILL='find . -path ./busy -prune -o -mindepth 1 ! -type d -printf "%p %y %m %s %b %T@ %l %n\n" | sort; find . -mindepth 1 -path ./busy -prune -o -type d -printf "%p %y %m %T@\n" | sort
        find . -path ./busy -prune -o -type f -readable -exec sha256sum {} + | sort; stat -c "%h" file; find . -samefile file | sort; python3 -c "import os; print(os.getxattr(\"file\", \"user.note\"))"'
goes_on() { # goes_on SESSION WHAT
        local before
        before=$(inside "$1" 'wc -l <busy/a-first; wc -l <busy/open')
        sleep 0.3
        inside "$1" 'wc -l <busy/a-first; wc -l <busy/open' | paste - <(echo "$before") | while read -r now then; do [ "$now" -gt "$then" ] || exit 1; done ||
                differs "$2: a writer stands still: $before"
        [ "$(inside "$1" 'sed "s/.*) //" /proc/$STOPPED/stat | cut -c1')" = T ] || differs "$2: what was stopped was let go"
        [ "$(inside "$1" 'jobs -rp | wc -l')" = 2 ] || differs "$2: jobs: $(inside "$1" jobs)"
}
consistent() { # consistent FIRST SECOND WHAT: lines of both files
        [ "$1" -gt 0 ] && [ "$(($1 - $2))" -ge 0 ] && [ "$(($1 - $2))" -le 1 ] || differs "$3: not of one moment: $1 lines, then $2"
}

@test "--copy: a session in which something writes, as it was at one moment, and it goes on" {
        hutch session start s >/dev/null
        inside s "$BUSY"
        run hutch snapshot --session s no
        told 125 "--stop"
        [[ $output == *"--copy"* ]] || differs "no way out: $output"
        before=$(inside s "$STILL" 2>/dev/null)
        [[ $before == *"./wide/inner/third"*"./hard"* && $before == *sock* ]] || differs "the scene: $before"
        for round in 1 2; do
                run hutch snapshot --session s --copy "copy $round"
                [ "$status" -eq 0 ] && [[ $output =~ [0-9a-z]{16} && $output =~ "hutch: snapshot: copied "3[0-9.]*" MB in " ]] || differs "$status: $output"
                goes_on s "round $round"
        done
        [ "$(inside s "$STILL" 2>/dev/null)" = "$before" ] || differs "the session itself: $(diff <(inside s "$STILL" 2>/dev/null) <(echo "$before"))"
        # Restored in another box, and in the session itself.
        for round in 1 2; do
                box=$(hutch restore "copy $round")
                got=$(hutch run --box "$box" -c "$STILL" 2>/dev/null)
                [ "$got" = "$before" ] || differs "restored: $(diff <(echo "$got") <(echo "$before"))"
                consistent $(hutch run --box "$box" -c 'wc -l <busy/a-first; wc -l <busy/z-second' 2>/dev/null) "round $round"
                hutch discard --box "$box"
        done
        inside s 'chmod 700 shut.d; rm -rf src file wide deep; VALUE=gone' 2>/dev/null
        hutch restore --session s "copy 2" || differs "restore: $?"
        [ "$(inside s "$STILL" 2>/dev/null)" = "$before" ] || differs "the session restored: $(diff <(inside s "$STILL" 2>/dev/null) <(echo "$before"))"
        [ "$(inside s 'echo $VALUE')" = "kept here" ] || differs "the shell"
        [ "$(inside s 'jobs | wc -l')" = 0 ] || differs "jobs came back"
        [ "$(cat src/main.c)" = host ] && [ ! -e file ] || differs "the host was changed"
        hutch session stop s --discard
        all_gone
        agree
}

@test "--copy: a fork of a session in which something writes" {
        hutch session start s >/dev/null
        inside s "$BUSY"
        before=$(inside s "$STILL" 2>/dev/null)
        run hutch fork --session s twin
        told 125 "--copy"
        run hutch fork --session s --copy twin
        [ "$status" -eq 0 ] && [[ $output == "hutch: fork: copied "*" MB in "* ]] || differs "$status: $output"
        goes_on s "after the fork"
        [ "$(inside twin "$STILL" 2>/dev/null)" = "$before" ] || differs "the twin: $(diff <(inside twin "$STILL" 2>/dev/null) <(echo "$before"))"
        consistent $(inside twin 'wc -l <busy/a-first; wc -l <busy/z-second') "the twin"
        [ "$(inside twin 'echo $VALUE; jobs | wc -l')" = $'kept here\n0' ] || differs "its shell"
        inside twin 'echo twin >file; rm -r busy'
        [ "$(inside s 'cat file; ls busy | wc -l')" = $'one\n4' ] || differs "the first sees the twin"
        hutch session stop s --discard
        [ "$(inside twin 'cat file hard; ls src/deep')" = $'twin\none\nmine' ] || differs "the twin alone"
        hutch session stop twin --discard
        all_gone
        agree
}

@test "--copy, killed at random moments: the session goes on, and nothing is left of it" {
        hutch session start s >/dev/null
        inside s "$BUSY"
        for ((i = 1; i <= 12; i++)); do
                "$HUTCH_BUILD/hutch" snapshot --session s --copy >/dev/null 2>&1 &
                pid=$!
                read -rt "0.0$((i % 10))$((RANDOM % 10))" <> <(:) || :
                kill -9 $pid 2>/dev/null || :
                wait $pid 2>/dev/null || :
        done
        goes_on s "in the end"
        hutch snapshot --session s --copy last >/dev/null 2>&1 || differs "none can be made any more"
        # As if it were long ago.
        touch -d '1 hour ago' "$STATE"/{snapshots,layers}/* "$STATE"/layers/*/refs{,/*}
        hutch snapshot --list >/dev/null
        hutch boxes >/dev/null
        whole=$(hutch snapshot --list | sed 1d | wc -l)
        [ "$(ls "$STATE/snapshots" | wc -l)" = "$whole" ] && [ "$(ls "$STATE/layers" | wc -l)" = "$whole" ] ||
                differs "$whole snapshots: $(ls "$STATE/snapshots" "$STATE/layers")"
        hutch session stop s --discard
        all_gone
        agree
}

# A process can have a timer that sends it SIGCONT, and so is stopped for moments only. This one moves the directory that is being copied
# towards the top: whoever goes back through its ".." as often as it went down arrives above the layer, in the home in the end.
RESTLESS='import ctypes, os, signal, sys, time
class Event(ctypes.Structure): _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_char * 48)]
libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
signal.signal(signal.SIGCONT, lambda *_: None)
assert libc.timer_create(1, ctypes.byref(Event(signo=signal.SIGCONT)), ctypes.byref(timer)) == 0
before = time.monotonic()
while True:
    assert libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 0, 10000000), None) == 0
    now = time.monotonic()
    if now - before > 0.006 and os.path.exists("go"):
        os.rename(*sys.argv[1:] if os.path.exists(sys.argv[1]) else reversed(sys.argv[1:]))
    before = now'
@test "--copy: what cannot be held is refused, and leads nowhere" {
        hutch session start s >/dev/null
        printf '%s\n' "$RESTLESS" >restless
        inside s 'p=.; for i in {1..12}; do p=$p/!; mkdir -p $p/.ssh; touch $p/.ssh/id_rsa; done; mkdir $p/!deep; head -c 60M /dev/zero >$p/!deep/large
                python3 restless $p/!deep ./zz & sleep 0.3; touch go'
        refused=0
        for ((i = 1; i <= 5; i++)); do
                run hutch snapshot --session s --copy
                [ "$status" -eq 0 ] || [[ $output == *"went on while its files"* || $output == *"cannot copy the layer: "* || $output == *"did not stop"* ]] || differs "$output"
                [ "$status" -eq 0 ] || refused=$((refused + 1))
                ! grep -rqs private "$STATE/layers" || differs "round $i: the host's key is in the copy"
        done
        [ $refused -gt 0 ] || differs "it was never seen"
        [ "$(inside s 'rm go; jobs -rp | wc -l')" = 1 ] || differs "it does not go on: $(inside s jobs)"
        hutch session stop s --discard
        all_gone
        agree
}

@test "--copy is for sessions, and not beside --stop" {
        first 'echo x >x'
        run hutch snapshot --copy
        told 125 "--copy needs --session"
        run hutch fork --copy
        told 125 "--copy needs --session"
        run hutch snapshot --session s --copy --stop
        told 125 "excludes --stop"
        run hutch restore --copy x
        told 125 "option '--copy' is not valid"
        all_gone
        agree
}

@test "names of snapshots follow the session, not the current directory" {
        mkdir -p elsewhere
        hutch session start named -d . >/dev/null
        hutch session run named -c 'echo one >f'
        hutch snapshot --session named good >/dev/null
        hutch session run named -c 'echo two >f'
        (cd elsewhere && hutch restore --session named good)
        [ "$(hutch session run named -c 'cat f')" = one ]
        (cd elsewhere && hutch snapshot --session named --remove good)
        [ "$(hutch snapshot --list)" = "no snapshots" ]
        hutch session stop named --discard
}
