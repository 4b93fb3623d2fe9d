# What makes hutch at home on a machine: a first policy file, git's identity, Docker.
load helper

@test "init writes what it found, never over a file, and what it writes is a policy file" {
        mkdir .git
        touch package.json CLAUDE.md
        hutch init >/dev/null
        for found in package.json CLAUDE.md .git; do
                grep -q "^# found: $found " hutch.yaml || differs "$found is not named"
        done
        echo >.env
        expect "it restricts at once" "$(hutch -c 'cat .env 2>&1 | grep -c .')" "$(hutch --hide .env -c 'cat .env 2>&1 | grep -c .')"
        sed -E 's/^#( *)(network|limits|env|git|workspace|allow|read|write|  allow|  read|  write)/\1\2/' hutch.yaml >all.yaml
        mkdir -p "$HOME/sdk" "$HOME/.cache/app"
        run hutch explain --allow-degraded --config all.yaml # an ordinary user may have no control group
        expect "every suggestion is valid" "$status" 0
        before=$(cat hutch.yaml)
        ends 125 hutch init
        expect "left alone" "$(cat hutch.yaml)" "$before"
        rm hutch.yaml
        ln -s "$T/elsewhere" hutch.yaml
        ends 125 hutch init
        [ ! -e "$T/elsewhere" ] || differs "wrote through a link"
        hutch init --schema | jq -e '.properties.limits.properties.memory and .properties.git' >/dev/null || differs "schema"
        agree
}

@test "the person's name in git is the box's, the policy's name comes before it, the repository's config stays" {
        need git
        printf '[user]\n\tname = Person\n\temail = p@example.org\n' >"$HOME/.gitconfig"
        git init -q .
        expect person "$(hutch git config --get user.name)" Person
        printf 'git: {name: "Agent \\"A\\" One", email: "agent@localhost"}\n' >"$T/p.yaml"
        hutch --config "$T/p.yaml" -c 'echo a >a; git add a; git commit -qm a'
        expect author "$(git log -1 --format='%an <%ae>')" 'Agent "A" One <agent@localhost>'
        expect host "$(git config --global user.name)" Person
        before=$(cat .git/config)
        ! hutch git config core.fsmonitor x 2>/dev/null || differs "the box changed .git/config"
        expect unchanged "$(cat .git/config)" "$before"
        echo 'git: {config: allow}' >"$T/p.yaml"
        hutch --config "$T/p.yaml" git config branch.x.description y
        expect allowed "$(git config branch.x.description)" y
        # A workspace cannot allow itself that.
        echo 'git: {config: allow}' >hutch.yaml
        ! hutch git config alias.z y 2>/dev/null || differs "an untrusted file allowed it"
        agree
}

@test "Docker: the socket of DOCKER_HOST or of the usual places, with a warning each time; a host becomes a rule" {
        need python3
        mkdir -p "$T/run" "$HOME/.docker/run"
        serve() { # serve SOCKET: answers every connection with its path
                python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); s.listen(8); print("up", flush=True)
while True:
    c, _ = s.accept()
    try: c.sendall(sys.argv[1].encode())
    except OSError: pass # who only looks whether an engine answers is gone already
    c.close()' "$1" >"$T/up" 3>&- &
                echo $! >>"$T/pids"
                appears "$T/up"
                rm "$T/up"
        }
        talk='import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ["DOCKER_HOST"].removeprefix("unix://")); print(s.recv(99).decode())'
        ! hutch python3 -c "$talk" 2>/dev/null || differs "reached without --docker"
        cd "$T" && serve run/d.sock && cd ws
        export DOCKER_HOST=unix://$T/run/d.sock
        run hutch --docker python3 -c "$talk"
        expect reached "$status" 0
        [[ $output == *"warning: the box can use Docker ($T/run/d.sock): with it, it is root on this host"* && ${lines[*]} == *"run/d.sock"* ]] || differs "$output"
        ! hutch python3 -c "$talk" 2>/dev/null || differs "the control: DOCKER_HOST alone opens nothing"
        printf 'docker: true\n' >hutch.yaml
        ! hutch python3 -c "$talk" 2>/dev/null || differs "an untrusted file opened it"
        rm hutch.yaml
        kill $(cat "$T/pids")
        wait $(cat "$T/pids") || true
        run hutch --docker true
        expect "not running is no error" "$status" 0
        [[ $output == *"warning: Docker is not available in the box: $T/run/d.sock: no engine is running behind it"* ]] || differs "$output"
        DOCKER_HOST=$T/ws run hutch --docker true
        [[ $output == *"not a socket"* ]] || differs "$output"
        DOCKER_HOST=tcp://192.0.2.1:2375 run hutch explain --docker
        [[ $output == *"allow     192.0.2.1:2375"* ]] || differs "no rule: $output"
        for host in 127.0.0.1:2375 localhost:2375 '[::1]:2375' localhost; do # the host's loopback, not the box's
                DOCKER_HOST=tcp://$host run hutch explain --docker
                [[ $output == *"host port 2375"* ]] || differs "$host: $output"
        done
        agree
}
