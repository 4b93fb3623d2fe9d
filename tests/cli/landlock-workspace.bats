# A writable workspace of the landlock backend: git beside it, the home, and what the host would run later, which no mount keeps.
bats_require_minimum_version 1.5.0
load helper

more_setup() {
        unset XDG_STATE_HOME
        git config --global user.name person
        git config --global user.email person@example.org
        git config --global init.defaultBranch main
        git init -q .
        mkdir sub .vscode
        echo a >f
        echo s >sub/s
        git add f sub
        git commit -qm one
        echo '{}' >.vscode/settings.json
        echo 'export A=1' >.envrc
        printf '#!/bin/sh\necho hook\n' >.git/hooks/post-merge
        chmod 755 .git/hooks/post-merge
}
box() { hutch --isolation landlock "$@"; }
quarantine() { cat "$HOME"/.local/state/hutch/quarantine/* 2>/dev/null; }

@test "landlock: git works in a subdirectory, and the rest of the checkout is read-only" {
        cd sub
        run -0 box -c 'echo t >s && git commit -qam two && git log -1 --format=%s'
        [ "$output" = two ]
        run ! box -c 'echo x >../f'
        [ "$(cat ../f)" = a ]
        run -0 box --workspace ro git log -1 --format=%s
        [ "$output" = two ]
        run ! box --workspace ro -c 'echo x >../.git/x'
}

@test "landlock: git works in a linked worktree, and a copy-on-write one reads it" {
        git worktree add -q ../wt
        git worktree add -q ../other
        cd ../wt
        run -0 box -c 'echo w >f && git commit -qam wt && git log -1 --format=%s; git worktree prune'
        [ "${lines[0]}" = wt ]
        [ -d ../ws/.git/worktrees/other ]
        run -0 box --json --workspace cow -c 'echo v >f; git status --short; ! git commit -qam cow'
        [[ $output == *' M f'* && $output == *git_read_only* ]]
        run ! box --workspace cow -c 'echo x >"$(git rev-parse --git-common-dir)/x"'
        box -c 'echo /tmp/evil >"$(git rev-parse --git-dir)/commondir"; rm -r "$(git rev-parse --git-common-dir)/worktrees/other"' 2>/dev/null || :
        git status >/dev/null
        [ "$(cat ../ws/.git/worktrees/other/gitdir)" = "$T/other/.git" ]
}

@test "landlock: what is granted in the home is found beneath HOME" {
        mkdir -p "$HOME/.agent/deep" "$HOME/.config/a" && echo settings >"$HOME/.agent/s" && echo deep >"$HOME/.agent/deep/f" && echo one >"$HOME/.single" && echo c >"$HOME/.config/a/c"
        run -0 box --rw "$HOME/.agent" --ro "$HOME/.agent/../.single" --ro "$HOME/.config/a" --rw "$HOME/.agent/deep" -c 'cat ~/.agent/s ~/.agent/deep/f ~/.single ~/.config/a/c && echo new >~/.agent/n && echo own >~/own && ls -A ~/.config'
        [ "$output" = $'settings\ndeep\none\nc\na' ]
        [ "$(cat "$HOME/.agent/n")" = new ] && [ ! -e "$HOME/own" ]
        run ! box --ro "$HOME/.single" -c 'echo x >~/.single'
        run ! box --ro "$HOME/.single" -c 'cat ~/.ssh/id_rsa'
        run ! box cat .single
}

# Each is done in the box; afterwards the host would run what it did before.
unchanged() {
        box -c "$1" >"$T/out" 2>&1 || :
        [ "$(state)" = "$before" ] || differs "[$1] $(diff <(echo "$before") <(state)) $(cat "$T/out")"
}
state() { (cat .envrc .git/config .vscode/*; ls -A .git/hooks .vscode | grep -v sample; cat .git/hooks/post-merge; stat -c '%a %F %n' .envrc .git/hooks .git/hooks/post-merge .vscode .vscode/settings.json) 2>&1; }
@test "landlock: what the host would run is as before when a box with a writable workspace has ended" {
        before=$(state)
        box -c 'echo x >plain' && [ -e plain ] # the control: the workspace is writable
        each 'echo evil >>.git/hooks/post-merge
                printf evil >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
                rm -r .git/hooks
                mv .git/hooks .git/h
                rm -r .git/hooks; ln -s /tmp .git/hooks
                mv .git/hooks .git/h; mkdir .git/hooks; printf evil >.git/hooks/post-commit
                rm .git/hooks/post-merge; ln -s /etc/passwd .git/hooks/post-merge
                rm .git/hooks/post-merge; mkdir .git/hooks/post-merge
                chmod 644 .git/hooks/post-merge
                git config core.fsmonitor ./evil
                echo evil >.envrc
                rm .envrc
                mv .envrc e; echo evil >.envrc
                rm -r .vscode
                rm -r .vscode; ln -s .. .vscode
                echo evil >.vscode/settings.json
                mkdir .vscode/deep; echo evil >.vscode/deep/tasks.json
                echo evil >.vscode/tasks.json' unchanged
        [[ $(quarantine) == *evil* ]] || differs "nothing is in quarantine"
        # A file with the same size and the time of before.
        printf 'export A=1\n' >.envrc
        before=$(state)
        unchanged 'sleep 1.2; printf "export B=2\n" >.envrc; touch -r sub .envrc'
        agree
}

@test "landlock: a change is undone while the box runs, and reported with the place of what it was" {
        run -0 box --json -c 'echo evil >.envrc; for i in $(seq 200); do grep -q A=1 .envrc && exit 0; sleep 0.05; done; exit 1'
        [[ $output == *'"code":"protected_made","severity":"warning"'*".envrc was changed while the box ran: it is as it was before"*quarantine* ]]
        run -0 hutch --isolation landlock --json -c 'true'
        [[ $output != *protected_made* ]]
}

@test "landlock: --rw of a protected name lifts it, and a box that goes on is ended" {
        box --rw .vscode -c 'echo x >.vscode/settings.json; echo y >.vscode/tasks.json'
        [ "$(cat .vscode/settings.json .vscode/tasks.json)" = $'x\ny' ]
        run box --timeout 60s -c 'while :; do echo evil >>.envrc; sleep 0.01; done'
        [ "$status" -eq 125 ] && [[ $output == *"the box goes on changing it"* ]]
        [ "$(cat .envrc)" = 'export A=1' ]
}

@test "landlock: neither a link in the way nor a file outside is touched when something is restored" {
        mkdir "$T/victim" && echo mine >"$T/victim/post-merge" && echo other >"$T/victim/other" && chmod 600 "$T/victim/post-merge"
        box -c "rm -r .git/hooks .vscode; ln -s '$T/victim' .git/hooks; ln -s '$T/victim' .vscode; rm .envrc; ln -s '$T/victim/post-merge' .envrc" 2>/dev/null || :
        [ "$(cat "$T/victim/post-merge" "$T/victim/other")" = $'mine\nother' ]
        [ "$(stat -c %a "$T/victim/post-merge")" = 600 ]
        [ -d .git/hooks ] && [ ! -L .git/hooks ] && [ "$(cat .envrc)" = 'export A=1' ]
        # A link that was there before is the person's.
        rm -rf .vscode && ln -s "$T/victim" .vscode
        box -c true
        [ "$(readlink .vscode)" = "$T/victim" ] && [ "$(cat "$T/victim/other")" = other ]
}
