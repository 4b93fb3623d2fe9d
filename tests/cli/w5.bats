# What attacks found in named sessions of 0.1.0, each with its number.
load helper

more_setup() { unset XDG_STATE_HOME; }
eval "$(declare -f teardown | sed '1s/teardown/tidy/')"
teardown() {
        local name
        for name in $(hutch session list 2>/dev/null | sed '1d; s/ .*//'); do
                hutch session stop "$name" --discard
        done
        tidy
}
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }

@test "W5b: a thousand connections without a proof neither spin the warden nor keep others out" {
        hutch session start flood >/dev/null
        local warden before
        warden=$(hutch session list | awk '$1 == "flood" {print $3}')
        perl -e 'use Socket; my @s; chdir $ARGV[0] or die;
                for (1..1000) { socket(my $s, PF_UNIX, SOCK_SEQPACKET, 0) or last; connect($s, pack_sockaddr_un("socket")); push @s, $s }
                sleep 6' "$HOME/.local/state/hutch/sessions/flood" 3>&- &
        sleep 1
        before=$(ticks "$warden")
        sleep 1
        [ $(($(ticks "$warden") - before)) -lt 30 ]
        run timeout 10 "$HUTCH_BUILD/hutch" session run flood -c 'echo on'
        [ "$output" = on ]
        kill $!
}

# attached NAME LINE…: types lines into an attached shell, as its terminal does, until it has ended; what it shows is in $T/shown.
attached() {
        local name=$1
        shift
        mkfifo "$T/keys"
        script -qefc "$HUTCH_BUILD/hutch session attach $name" "$T/shown" <"$T/keys" >/dev/null 2>&1 &
        typing=$!
        exec 5>"$T/keys"
        printf '%s\n' "$@" >&5
}
shows() { # shows TEXT: waits for it
        local i
        for ((i = 0; i < 300; i++)); do
                ! grep -q "$1" "$T/shown" 2>/dev/null || return 0
                sleep 0.1
        done
        cat "$T/shown"
        return 1
}

@test "W5c: a flood into the descriptor of an attached shell does not keep the warden busy" {
        hutch session start flood >/dev/null
        local warden before
        warden=$(hutch session list | awk '$1 == "flood" {print $3}')
        attached flood 'head -c 200M /dev/zero >&198; echo floo"d"ed' # what it writes past the bound fails
        shows flooded
        before=$(ticks "$warden")
        sleep 1
        [ $(($(ticks "$warden") - before)) -lt 30 ]
        echo exit >&5
        exec 5>&-
        wait "$typing" || true
        run hutch session run flood -c 'echo on'
        [ "$output" = on ]
}

@test "W5l: attach reports a limit that ended the box, and its status" {
        hutch session start limited --cpu-time 1s --allow-degraded >/dev/null
        attached limited 'while :; do :; done'
        shows 'hutch: a limit ended the session'
        exec 5>&-
        local status=0
        wait "$typing" || status=$?
        [ "$status" -eq 137 ]
}

@test "W5h: a session where the state directory's path has a symbolic link in it" {
        mkdir -p "$HOME/real"
        ln -s real "$HOME/link"
        export XDG_STATE_HOME=$HOME/link/state
        hutch session start linked >/dev/null
        run hutch session run linked -c 'echo a > f; cat f'
        [ "$output" = a ]
        hutch session stop linked --discard
}

kill_clients() { # kill_clients ISOLATION
        local ms id what
        hutch session start kept --isolation "$1" --workspace cow >/dev/null
        hutch session run kept -c 'x=here; echo a > f'
        id=$(hutch snapshot --session kept)
        for ms in 001 003 005 007 009 012 016 022; do
                for what in "snapshot --session kept" "restore --session kept $id" "fork --session kept copy" "session reset kept"; do
                        # shellcheck disable=SC2086 # words
                        timeout -s KILL "0.$ms" "$HUTCH_BUILD/hutch" $what >/dev/null 2>&1 || true
                        run hutch session run kept -c 'echo "<$x>"; cat f 2>/dev/null'
                        [ "$status" -eq 1 ] || [ "$status" -eq 0 ]
                        [ "$output" = "<here>
a" ] || { [ "$what" = "session reset kept" ] && [ "$output" = "<>" ]; }
                        [ "$what" != "session reset kept" ] || hutch restore --session kept "$id"
                done
                hutch session stop copy --discard 2>/dev/null || true
        done
}
@test "W5f: a snapshot, restore, fork or reset whose client is killed at any moment loses no session" {
        kill_clients auto
}

@test "W5f: the same in private copies" {
        kill_clients landlock
}

@test "W5f: a full disk fails a snapshot, restore, fork or reset, and the session goes on as it was" {
        local isolation
        mkdir "$HOME/small"
        cat >"$HOME/full" <<'EOF'
set -eu
isolation=$1
PATH=$HUTCH_BUILD:$PATH
mount -t tmpfs -o size=6m,mode=755 t "$HOME/small"
export XDG_STATE_HOME=$HOME/small/state
trap 'hutch session stop full --discard >/dev/null 2>&1 || true; hutch session stop copy --discard >/dev/null 2>&1 || true; umount -l "$HOME/small"' EXIT
mkdir "$XDG_STATE_HOME"
hutch session start full --isolation "$isolation" --workspace cow >/dev/null
hutch session run full -c 'x=here; echo a > f'
id=$(hutch snapshot --session full)
head -c 20M /dev/zero >"$HOME/small/filler" 2>/dev/null || true
for kib in 0 4 4 4 8 8 16 16 32 64; do # less and less full
        truncate -s "-${kib}K" "$HOME/small/filler"
        for what in "snapshot --session full" "fork --session full copy" "restore --session full $id"; do
                hutch $what >/dev/null 2>"$HOME/why" || echo "$what fails: $(cat "$HOME/why")" >>"$HOME/failed"
                [ "$(hutch session run full -c 'echo "<$x>"; cat f 2>&1')" = "<here>
a" ]
        done
        hutch session stop copy --discard >/dev/null 2>&1 || true
done
head -c 20M /dev/zero >>"$HOME/small/filler" 2>/dev/null || true
until hutch session reset full 2>/dev/null; do
        [ "$(hutch session run full -c 'echo "<$x>"; cat f 2>&1')" = "<here>
a" ]
        truncate -s -4K "$HOME/small/filler"
done
[ "$(hutch session run full -c 'echo "<$x>"; ls')" = "<>" ]
EOF
        for isolation in auto landlock; do
                if [ "$(id -u)" = 0 ]; then
                        unshare -m bash "$HOME/full" $isolation
                else
                        unshare -Ucrm --map-current-user bash "$HOME/full" $isolation || unshare -Urm bash "$HOME/full" $isolation
                fi
                grep -q "^snapshot .*No space left" "$HOME/failed" # it was full
                rm "$HOME/failed"
        done
}

@test "W5f: another client's run is neither ended nor refused by a snapshot, a restore or a reset, which wait for it" {
        local id what jobs
        hutch session start shared >/dev/null
        hutch session run shared -c 'x=here; echo a > f'
        id=$(hutch snapshot --session shared)
        mkfifo "$HOME/go"
        for what in "snapshot --session shared" "restore --session shared $id" "session reset shared"; do
                hutch session run shared -c 'echo begun; read -r line; echo "$x $line"' <"$HOME/go" >"$HOME/out" 3>&- &
                jobs=$!
                exec 7>"$HOME/go"
                until grep -q begun "$HOME/out"; do sleep 0.05; done
                # shellcheck disable=SC2086 # words
                hutch $what >/dev/null 7>&- 3>&- &
                jobs+=" $!"
                hutch session run shared -c 'echo after' >"$HOME/after" 7>&- 3>&- &
                jobs+=" $!"
                echo on >&7
                exec 7>&-
                # shellcheck disable=SC2086 # numbers
                wait $jobs
                [ "$(cat "$HOME/out")" = "begun
here on" ]
                [ "$(cat "$HOME/after")" = after ]
        done
}
