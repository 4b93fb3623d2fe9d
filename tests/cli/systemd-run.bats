# The systemd-run backend with an imitation of systemd's user manager (tests/tools/systemd-run): the unit's line, what init finds out about a
# manager that leaves something out, the network. tests/vm has a real manager.
load helper

more_setup() {
        ! am_root || return 0
        U=$(mktemp -d /tmp/hutch-u.XXXXXX) # short: paths of sockets end at 107 characters
        "$HUTCH_SRC/tests/tools/systemd-run" --manager "$U" 3>&- &
        MANAGER=$!
        until [ -S "$U/systemd/private" ]; do sleep 0.05; done
        export XDG_RUNTIME_DIR=$U PATH=$U:$PATH
        box=("$HUTCH_BUILD/hutch" --isolation systemd-run)
}
teardown() {
        [ -z "${MANAGER:-}" ] || kill "$MANAGER"
        [ -z "${U:-}" ] || rm -rf "$U"
        cd /
        chmod -R u+rwX "$T" 2>/dev/null
        rm -rf "$T"
}
gone() { # gone PATTERN: no such process is left, in a while
        for _ in {1..200}; do pgrep -f "$1" >/dev/null || return 0; sleep 0.05; done
        return 1
}

# bats test_tags=root
@test "systemd-run: refused to root, whose unit would run as root" {
        run hutch --isolation systemd-run true
        told 125 'run hutch as an ordinary user'
        agree
}

# bats test_tags=user
@test "systemd-run: the properties are those of the well-known line, in its order, and hold nothing of the command" {
        git init -q .
        mkdir -p "$HOME/.local/share/mise"
        API_KEY=key-$NAP run "${box[@]}" --env API_KEY --rw "$HOME/.ssh" --ro "$HOME/.local/share/mise" sh -c 'echo "$API_KEY"' "word-$NAP"
        [ "$output" = "key-$NAP" ] || differs "$output"
        line=$(tr '\n' ' ' <"$U/line")
        [[ $line == "--user --pipe --quiet --collect --unit=hutch-start-"*" -p TemporaryFileSystem=$HOME:mode=0755 -p ProtectSystem=strict -p PrivateTmp=yes -p NoNewPrivileges=yes "* ]] || differs "$line"
        [[ $line == *"-p BindPaths=$T/ws "*"-p BindPaths=$HOME/.ssh "*"-p BindReadOnlyPaths=$HOME/.local/share/mise "*"-p PrivateUsers=yes -p PrivateNetwork=yes -- "*/hutch-init\ socket\ * ]] || differs "$line"
        [[ $line != *"$NAP"* ]] || differs "$line"
        run "${box[@]}" --memory 64M --cpu 50% --pids 20 true # this manager keeps none of them
        told 125 "cannot enforce memory on 'systemd-run': the limit is not set"
        line=$(tr '\n' ' ' <"$U/line")
        [[ $line == *"-p MemoryMax=67108864 -p MemorySwapMax=0 -p CPUQuota=50% -p TasksMax=21 "* ]] || differs "$line"
        agree
}

# bats test_tags=user
@test "systemd-run: a box has an empty home, a read-only system, its own network and what the policy attaches" {
        run "${box[@]}" sh -c 'pwd; ls -A ~; cat "$1/.ssh/id_rsa"; echo x >/usr/x || echo x >"$1/x"; echo kept >kept; printf "[%s]" "$@"' sh "$HOME" 'a  b' '$(touch pwned)'
        [ "${lines[0]}" = "$T/ws" ] && [[ $output != *private* ]] && [[ $output == *"[a  b][\$(touch pwned)]" ]] || differs "$output"
        [ "$(ls)" = kept ] && [ ! -e "$HOME/x" ] || differs "$(ls)"
        sleep "$NAP" &
        run "${box[@]}" sh -c 'kill -0 "$1"; cat /proc/$1/cmdline; exit 3' sh $!
        kill -0 $! && kill $! # the control
        [ "$status" -eq 3 ] && [[ $output == *'not permitted'*'denied'* ]] || differs "$output"
        agree
}

# bats test_tags=user
@test "systemd-run: a manager that leaves a property out is found before the command starts" {
        each "
        TemporaryFileSystem | is not a file system of the box's own
        ProtectSystem       | is writable
        PrivateUsers        | namespace is not the box's own
        PrivateNetwork      | net namespace is not the box's own
        BindReadOnlyPaths   | started no box
        BindPaths           | $T/ws" ignored
        rm "$U/ignored"
        run "${box[@]}" touch ran # the control
        [ -e ran ] || differs "$output"
        agree
}
ignored() {
        echo "$1" >"$U/ignored"
        run "${box[@]}" touch "$T/ws/ran"
        [[ $status -eq 125 && $output == *"$2"* ]] || differs "$1: $status, $output"
        [ ! -e ran ] || differs "$1: the command ran"
}

# bats test_tags=user
@test "systemd-run: nothing is left after a timeout and after kill -9" {
        run "${box[@]}" --timeout 500ms sleep "$NAP"
        [ "$status" -eq 124 ] && gone "sleep $NAP" || differs "$status, $output"
        "${box[@]}" sleep "$NAP" &
        local hutch=$!
        until pgrep -f "^sleep $NAP" >/dev/null; do sleep 0.05; done
        kill -9 $hutch
        gone "^sleep $NAP" || differs "it is still there"
        agree
}

# bats test_tags=user
@test "systemd-run: network rules; what would need every listen() is refused" {
        run "${box[@]}" --json --allow-host 203.0.113.7:80 bash -c 'exec 3<>/dev/tcp/203.0.113.8/80'
        [[ $output == *'"target":"203.0.113.8:80"'*'"network":"enforced"'* ]] || differs "$output"
        run "${box[@]}" python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); socket.create_connection(s.getsockname()); print("own loopback")
try: socket.socket(socket.AF_UNIX)
except OSError as e: print(e.errno)'
        [ "$output" = $'own loopback\n13' ] || differs "$output"
        run "${box[@]}" --net loopback true
        told 125 'publish ports by --publish PORT'
        run "${box[@]}" --publish auto true
        told 125 "--publish is not supported on 'systemd-run': name the ports"
        run "${box[@]}" --publish 0:8123 --json true
        [[ $output == *'"published":[{"port":"8123"'* ]] || differs "$output"
        agree
}

# bats test_tags=user
@test "systemd-run: a session keeps its shell, and its end leaves nothing" {
        run hutch session start --isolation systemd-run --workspace rw s
        [ "$status" -eq 0 ] || differs "$output"
        hutch session run s -c "x=5; sleep $NAP &"
        run hutch session run --json s -c 'echo $x; touch made'
        [[ $output == *'"stdout":"5\n"'*'"backend":"systemd-run"'* ]] && [ -e made ] || differs "$output"
        hutch session stop s
        gone "^sleep $NAP" || differs "the job is still there"
        agree
}
