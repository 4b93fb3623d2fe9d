#!/usr/bin/env bats
# What the host would run, in a workspace that the box writes to: names that appear go to quarantine, files that the host replaces are
# attached again.
bats_require_minimum_version 1.5.0
load helper

more_setup() {
        unset XDG_STATE_HOME
        git config --global user.name Person
        git config --global user.email person@example.org
        git config --global init.defaultBranch main
        git init -q .
        echo a >f
        git add f && git commit -qm one
        mkdir sub
        STORE=$HOME/.local/state/hutch/quarantine
}
stored() { ls -A "$STORE" 2>/dev/null | sed 's/^[0-9.]*-//' | sort | tr '\n' ' '; }

@test "protected names that a box makes are moved to quarantine and reported" {
        planted() { # planted TEXT NAME: the control is the same text outside
                (bash -c "$1")
                [ -e "$2" ] || [ -L "$2" ] || differs "[$1] the control made no $2"
                rm -rf "$2" "$STORE"
                run --separate-stderr hutch --json -c "$1; for i in \$(seq 200); do [ -e $2 ] || [ -L $2 ] || exit 0; sleep 0.05; done; exit 3" </dev/null
                [ "$status" = 0 ] || differs "[$1] status $status"
                [ ! -e "$2" ] && [ ! -L "$2" ] || differs "[$1] $2 is still there"
                [ "$(field "$output" '[.notices[] | select(.code == "protected_made").subject] | first')" = "$PWD/$2" ] || differs "[$1] not reported: $output"
                [ -n "$(stored)" ] || differs "[$1] nothing is in quarantine"
        }
        each "echo x >.envrc | .envrc
ln -s sub .vscode | .vscode
mkdir .claude; echo {} >.claude/settings.json | .claude
echo x >t; mv t .mcp.json | .mcp.json
mkdir -p .cargo; echo x >.cargo/config.toml | .cargo/config.toml
printf '[core]\\nfsmonitor=x\\n' >t; mv t .git/config.worktree | .git/config.worktree
mkdir -p .git/info; echo '* filter=x' >.git/info/attributes | .git/info/attributes
echo ../x >.git/commondir | .git/commondir
printf '%040d.-1\\t.git/config\\0' 0 >t; mv t .git/MERGE_RR | .git/MERGE_RR
printf '%040d\\tf\\0%040d\\t../x\\0' 0 0 >.git/MERGE_RR | .git/MERGE_RR" planted
        agree
        # what git itself writes there stays; what is put into a file of the host does not
        printf '%040d\tf\0' 0 >.git/MERGE_RR
        hutch -c 'printf "%040d\tsub/f\0" 0 >.git/MERGE_RR'
        [ "$(cut -f2 .git/MERGE_RR | tr -d '\0')" = sub/f ] || differs "git's own was taken"
        run hutch --json -c 'sleep 0.2; printf "%040d\t.envrc\0" 0 >.git/MERGE_RR'
        [ ! -e .git/MERGE_RR ] || differs "it stayed"
        agree
        run hutch --json -c 'echo x >.bashrc' # at the very end of a box
        [ ! -e .bashrc ]
        [ -z "$(git status --short --ignored)" ]
        # what a person made writable by name is left alone
        mkdir -p .cargo
        hutch --rw .cargo -c 'echo x >.cargo/config.toml'
        [ -e .cargo/config.toml ]
}

@test "--protect adds names of the workspace: read-only, to quarantine, held back by apply; --unprotect releases one" {
        mkdir -p deploy/keys .vscode && echo s >run.sh && echo k >deploy/keys/k && echo v >.vscode/s && echo e >.envrc
        try='echo x >run.sh; echo x >deploy/keys/k; echo x >deploy/keys/n; mv deploy d; echo x >.vscode/s; echo x >.envrc; mkdir -p a; echo x >a/b; echo x >a/c'
        left() { cat run.sh deploy/keys/* .vscode/s .envrc a/* 2>/dev/null | xargs; }
        set -- --protect run.sh --protect deploy/keys --protect a/b --unprotect .vscode
        run hutch --json "$@" -c "$try; for i in \$(seq 200); do [ -e a/b ] || break; sleep 0.05; done"
        expect rw "$(left)" "s k x e x"
        expect reported "$(field "$output" '[.notices[] | select(.code == "protected_made").subject] | join(" ")')" "$PWD/a/b"
        rm -rf a && echo v >.vscode/s
        hutch --workspace cow "$@" -c "${try/mv deploy d; /}" 2>/dev/null || :
        run hutch apply
        expect cow "$(left)" "s k x e x"
        for name in run.sh deploy/keys/k deploy/keys/n a/b .envrc; do
                [[ $output == *"not applied: $name: protected name"* ]] || differs "$name: $output"
        done
        hutch discard 2>/dev/null
        rm -rf a && echo v >.vscode/s
        echo 'filesystem: {protect: [run.sh], unprotect: [.vscode]}' >hutch.yaml # not trusted: it may protect, and release nothing
        hutch -c 'echo x >run.sh; echo x >.vscode/s' 2>/dev/null || :
        expect untrusted "$(left)" "s k v e"
        rm hutch.yaml
        hutch -c "$try" 2>/dev/null || : # the control
        expect control "$(cat run.sh .vscode/s .envrc | xargs)" "x v e"
        for name in .jail hutch.yaml .git .git/config .git/hooks .vscode/s nosuch; do
                run hutch --unprotect "$name" true
                [ "$status" = 125 ] || differs "--unprotect $name: $status"
        done
        agree
}

@test "a hook where there was no directory of hooks, and a redirect where there was no repository" {
        rm -rf .git/hooks
        hutch -c 'mkdir .git/hooks; echo evil >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit' 2>/dev/null || true
        [ ! -e .git/hooks/pre-commit ]
        rm -rf .git
        hutch -c 'echo "gitdir: sub/evil" >.git' 2>/dev/null
        [ ! -e .git ]
        run hutch --json -c 'git init -q . && git commit -q --allow-empty -m new && git config user.name Box && git config core.fsmonitor ./evil' || true
        [ "$(git log -1 --format=%s)" = new ]
        [ -z "$(git config core.fsmonitor)" ]
        [ "$(field "$output" '[.notices[].code] | map(select(. == "repository_made" or . == "protected_made")) | unique | join(" ")')" = "protected_made repository_made" ]
}

@test "a repository that is moved into place is judged like one made there" {
        rm -rf .git
        hutch -c 'git init -q r; printf "[core]\nfsmonitor=./e\n" >>r/.git/config; echo e >r/.git/hooks/pre-commit; mv r/.git .git' 2>/dev/null || true
        [ -e .git/HEAD ]
        [ -z "$(git config core.fsmonitor)" ]
        [ ! -e .git/hooks/pre-commit ]
}

@test "a configuration that the host replaces is attached read-only again" {
        mkfifo go
        hutch --json -c 'echo ready >go; for i in $(seq 400); do grep -q fresh .git/config && break; sleep 0.02; done; sleep 0.5; git config x.y z' >result &
        read -r _ <go
        git config user.fresh 1
        wait $! || true
        [ "$(git config user.fresh)" = 1 ]
        [ -z "$(git config x.y)" ]
        [ "$(jq -r '[.notices[] | select(.code == "protected_replaced").subject] | first' result)" = "$PWD/.git/config" ]
}

# A process that holds them when the box ends waits while the kernel takes them down.
@test "the box's mounts are not held while nothing is replaced" {
        held() { # held ARG…: how many mount namespaces hutch has open while the box runs
                "$HUTCH_BUILD/hutch" "$@" -c 'echo ready >go; read -r _ <end' &
                read -r _ <go
                find "/proc/$!/fd" -lname 'mnt:*' | wc -l
                echo >end
                wait $!
        }
        mkfifo go end
        [ "$(held)" = 0 ]
        [ "$(held --hide f)" -gt 0 ] # the control: what is hidden is masked again at once
}

# The host runs `git config` in a loop, and the box tries all the time to plant something in the moment in which the bind is lost.
@test "what a box plants in the moment of a replacement does not stay" {
        evil='echo ready >go; while [ ! -e stop ]; do git config core.fsmonitor ./evil; git config core.hooksPath ./evil; (echo "[core]"; echo fsmonitor=./evil) >>.git/config; done'
        mkfifo go
        hutch --json --timeout 60s -c "($evil) 2>/dev/null" >result &
        read -r _ <go
        for i in {1..60}; do
                git config user.round "$i" 2>/dev/null || rm -f .git/config.lock
        done
        touch stop
        wait $! || true
        [ -z "$(git config --get-regexp 'core.(fsmonitor|hookspath)')" ]
        [ "$(git log -1 --format=%s)" = one ]
        # the control: without the guard's read-only bind the same text gets in
        (bash -c 'git config core.fsmonitor ./evil')
        [ -n "$(git config core.fsmonitor)" ]
}

@test "what a box makes in its first and last milliseconds, in directories that it hides or replaces" {
        made() { # made TEXT NAME: a box that ends before anything is watched
                rm -rf "$2" "$STORE"
                # On a busy machine the guard is there before the last command, which then fails.
                hutch -c "$1" </dev/null >/dev/null 2>&1 || :
                [ ! -e "$2" ] || differs "[$1] $2 is still there"
                [ -n "$(stored)" ] || differs "[$1] nothing is in quarantine"
        }
        mkdir -p .cargo
        each "rm -r .git/info; mkdir .git/info; echo '* filter=x' >.git/info/attributes | .git/info/attributes
rmdir .cargo; mkdir .cargo; echo x >.cargo/config.toml | .cargo/config.toml
mkdir -p .cargo; echo x >.cargo/config.toml; chmod 100 .cargo | .cargo/config.toml
mkdir -p .config/mise; echo x >.config/mise/c; chmod 100 .config | .config/mise
mv .git/info x; mkdir .git/info; echo a >.git/info/attributes | .git/info/attributes
printf '[core]\nfsmonitor=x\n' >.git/config.worktree | .git/config.worktree" made
        agree
        rm -rf .cargo .config x
        # What an earlier box left unreadable is watched all the same.
        mkdir -m 100 .config
        hutch -c 'echo x >.envrc; chmod 700 .config; mkdir .config/mise; echo x >.config/mise/c' 2>/dev/null || :
        [ ! -e .envrc ] && [ ! -e .config/mise ]
        rm -rf .config
        # A directory with more names than are compared is watched from the start.
        (mkdir many && cd many && git init -q . && seq 5000 | xargs touch)
        hutch -d many -c 'echo x >.envrc; mkdir .config; echo x >.config/mise.toml' 2>/dev/null || :
        [ ! -e many/.envrc ] && [ ! -e many/.config/mise.toml ]
}

# An ordinary user has 128 instances of inotify by default; root would take them from the system.
# bats test_tags=user
@test "without inotify names are compared all the time" {
        python3 - <<'E' &
import ctypes, time
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0:
    pass
open("full", "w").close()
time.sleep(20)
E
        holder=$!
        until [ -e full ]; do sleep 0.05; done
        control=$(python3 -c 'import ctypes; print(ctypes.CDLL(None).inotify_init1(0))')
        run --separate-stderr hutch --json -c 'for n in .envrc .mcp.json; do sleep 0.2; echo x >$n; for i in $(seq 200); do [ -e $n ] || break; sleep 0.05; done; [ ! -e $n ] || exit 3; done' </dev/null
        # Also where a directory has more names than are compared otherwise.
        (mkdir many && cd many && seq 5000 | xargs touch)
        hutch -d many -c 'echo x >.envrc' 2>/dev/null || :
        kill $holder
        [ "$control" = -1 ] # or this tries nothing
        [ ! -e many/.envrc ]
        [ "$status" = 0 ]
        [ "$(stored)" = ".envrc .envrc .mcp.json " ]
        [ -z "$(field "$output" '[.notices[] | select(.code == "guard_missing")] | first // empty')" ]
}

@test "nothing is printed at a terminal about a standing guard, and nothing is left behind" {
        [ -z "$(hutch true 2>&1)" ]
        [ ! -e "$STORE" ]
        run hutch --json true
        [ "$(field "$output" .enforced.protected)" = degraded ]
        run hutch --json --workspace cow true
        [ "$(field "$output" .enforced.protected)" = enforced ]
}
