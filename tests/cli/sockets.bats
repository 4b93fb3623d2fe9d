#!/usr/bin/env bats
# Unix sockets of the host: what attaching a directory attaches, what is masked in it, and --allow-socket.
load helper

more_setup() {
        mkdir -p "$HOME/.gnupg" "$T/other"
        cat >"$T/serve.py" <<'PY'
import socket, sys, threading
def serve(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen()
    def answer():
        while True:
            c = s.accept()[0]
            c.sendall(b"hello " + path.rsplit("/", 1)[1].encode() + b"\n")
            c.close()
    threading.Thread(target=answer, daemon=True).start()
for path in sys.argv[1:]:
    serve(path)
print("up", flush=True)
sys.stdin.read()
PY
        cat >ask.py <<'PY'
import socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path)
        print(s.recv(100).decode().strip())
    except OSError as e:
        print(type(e).__name__)
PY
        coproc SERVER { exec python3 "$T/serve.py" "$PWD/own" "$HOME/.gnupg/S.gpg-agent" "$T/other/agent"; }
        read -r -u "${SERVER[0]}" up
        [ "$up" = up ]
}

serve_no_more() { # the server ends with its stdin, too
        kill "$SERVER_PID"
        [ -z "${SSH_AGENT_PID:-}" ] || kill "$SSH_AGENT_PID"
        unset SSH_AGENT_PID
}
teardown() {
        serve_no_more
        cd /
        chmod -R u+rwX "$T" 2>/dev/null
        rm -rf "$T"
}

@test "a directory is attached with its sockets; others are out of reach" {
        run hutch python3 ask.py "$PWD/own" "$T/other/agent"
        [ "$output" = $'hello own\nFileNotFoundError' ]
        run python3 ask.py "$T/other/agent" # control
        [ "$output" = "hello agent" ]
}

@test "a well-known control socket in an attached directory is masked, and stays so" {
        run python3 ask.py "$HOME/.gnupg/S.gpg-agent" # control
        [ "$output" = "hello S.gpg-agent" ]
        run hutch --ro ~/.gnupg python3 ask.py "$HOME/.gnupg/S.gpg-agent"
        [ "$output" = PermissionError ]
        run hutch --rw ~/.gnupg:/mnt/keys -c 'mv /mnt/keys/S.gpg-agent /mnt/keys/x; ln /mnt/keys/S.gpg-agent /mnt/keys/y; rm -f /mnt/keys/S.gpg-agent; python3 ask.py /mnt/keys/*; true' 2>/dev/null
        [[ "$output" != *hello* ]]
        [ -S "$HOME/.gnupg/S.gpg-agent" ]
        export SSH_AUTH_SOCK=$T/other/agent
        run hutch --ro "$T/other" python3 ask.py "$T/other/agent"
        [ "$output" = PermissionError ]
        unset SSH_AUTH_SOCK
        run hutch --ro "$T/other" python3 ask.py "$T/other/agent" # no variable, no well-known path
        [ "$output" = "hello agent" ]
}

@test "--allow-socket attaches one socket, masked or not, everywhere" {
        run hutch --ro ~/.gnupg --allow-socket ~/.gnupg/S.gpg-agent --allow-socket "$T/other/agent" python3 ask.py "$HOME/.gnupg/S.gpg-agent" "$T/other/agent"
        [ "$output" = $'hello S.gpg-agent\nhello agent' ]
        run hutch --as user --allow-socket "$T/other/agent" -c "python3 ask.py $T/other/agent; ls $T/other"
        [ "$output" = $'hello agent\nagent' ]
        run hutch --workspace cow --ephemeral --allow-socket own python3 ask.py "$PWD/own"
        [ "$output" = "hello own" ]
}

@test "the report: ipc is enforced for a plain run, and degraded where a nested box could uncover a masked socket" {
        run hutch --json true
        [ "$(jq -r .enforced.ipc <<<"$output")" = enforced ]
        run hutch --json --allow-nested --ro ~/.gnupg true
        [ "$(jq -r .enforced.ipc <<<"$output")" = degraded ]
        run hutch --strict --allow-nested --workspace none --ro ~/.gnupg true
        [ "$status" = 125 ] && [[ "$output" = *"can uncover the control socket $HOME/.gnupg/S.gpg-agent"* ]]
}

# The agent of root refuses the host id that a box of root's has.
# bats test_tags=user
@test "an ssh-agent signs a commit in the box" {
        ssh-keygen -q -t ed25519 -N '' -f "$T/key"
        eval "$(ssh-agent -a "$T/agent")" >/dev/null
        ssh-add -q "$T/key"
        rm "$T/key" # the agent alone has it
        git init -q -b main repo
        git -C repo config user.name a
        git -C repo config user.email a@example.org
        git -C repo config gpg.format ssh
        git -C repo config user.signingkey "key::$(cut -d' ' -f1,2 "$T/key.pub")"
        run hutch --env SSH_AUTH_SOCK git -C repo commit -qS --allow-empty -m x
        [ "$status" != 0 ] # control: without the socket there is no key
        run hutch --env SSH_AUTH_SOCK --allow-socket "$SSH_AUTH_SOCK" git -C repo commit -qS --allow-empty -m x
        [ "$status" = 0 ] || { echo "$output"; false; }
        git -C repo cat-file -p HEAD | grep -q 'BEGIN SSH SIGNATURE'
}
