#!/usr/bin/env bats
# git in a box, and what the host would run later from a workspace that the box may write to.
bats_require_minimum_version 1.5.0
load helper

more_setup() {
        unset XDG_STATE_HOME
        git config --global user.name 'A "Q" Person'
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
}

box() { hutch "$@"; }

@test "a commit in a box has the person's name; branch, stash and rebase work (U e)" {
        run -0 box -c 'echo b >f && git commit -qam two && git checkout -q -b x && echo c >f && git stash -q && git stash pop -q && git commit -qam three && git rebase -q main && git log -1 --format="%an <%ae> %s"'
        [ "$output" = 'A "Q" Person <person@example.org> three' ]
        [ "$(git log -1 --format=%s x)" = three ]
}

@test "the person's name is the one that git has: with includes, in the usual places, without a workspace, but for the policy's" {
        who() { hutch --workspace none "$@" -c 'cd /tmp && git config user.name; git config user.email' | xargs -d '\n'; }
        [ "$(who)" = 'A "Q" Person person@example.org' ]
        printf '[user]\n\temail = work@example.org\n' >"$HOME/work"
        printf '[include]\n\tpath = work\n' >>"$HOME/.gitconfig"
        [ "$(who)" = 'A "Q" Person work@example.org' ] && [ "$(git config user.email)" = work@example.org ]
        printf '[include]\n\tpath = ~/work\n\tpath = work\n' >"$HOME/work" # it includes itself
        who >/dev/null
        rm "$HOME/.gitconfig" "$HOME/work"
        mkdir -p "$T/config/git" && printf '[user]\n\tname = X\n\temail = x@y\n' >"$T/config/git/config"
        [ "$(XDG_CONFIG_HOME=$T/config who)" = "X x@y" ]
        printf 'git: {name: Agent, email: a@b}\n' >"$T/p.yaml"
        [ "$(XDG_CONFIG_HOME=$T/config who --config "$T/p.yaml")" = "Agent a@b" ]
}

@test "in a writable workspace what the host would run is read-only, and cannot be moved away" {
        local before
        box -c 'echo x >plain' && [ -e plain ] # the control: the workspace is writable
        before=$(cat .git/config .envrc .vscode/settings.json; ls .git/hooks)
        each "echo x >>.git/config
                echo x >.git/hooks/pre-commit
                mv .git/hooks .git/h
                mv .git g
                rm -f .git/config
                echo x >.envrc
                mv .envrc e
                rm -rf .vscode
                echo x >.vscode/tasks.json
                git config core.fsmonitor x" refused
        [ "$(cat .git/config .envrc .vscode/settings.json; ls .git/hooks)" = "$before" ]
        agree
}
refused() { ! box -c "$1" 2>/dev/null || differs "[$1] was not refused"; }

@test "an explicit --rw lifts the protection of one name" {
        box --rw .vscode -c 'echo x >.vscode/tasks.json'
        [ "$(cat .vscode/tasks.json)" = x ]
}

@test "git works in a subdirectory: the checkout is read-only, its repository is not (U e)" {
        cd sub
        run -0 box -c 'echo t >s && git commit -qam two && git log -1 --format=%s'
        [ "$output" = two ]
        run ! box -c 'echo x >../f'
        run ! box -c 'echo x >>../.git/config'
        run ! box -c 'echo x >../.git/hooks/pre-commit'
        [ "$(cat ../f)" = a ]
}

@test "git works in a subdirectory that is copied, in a session and as another user, and apply brings the commit" {
        cd sub
        [ "$(box --workspace cow git status --short --branch . 2>/dev/null)" = '## main' ]
        run -0 box --as user git log -1 --format=%s
        [ "$output" = one ]
        run ! box --as user -c 'echo x >../f'
        run -0 hutch session start dev
        run -0 hutch session run dev -c 'cat /workspace/s; echo t >s; git commit -qam two; git log -1 --format=%s'
        [ "${lines[0]}" = s ] && [ "${lines[1]}" = two ]
        hutch session stop dev
        [ "$(git log -1 --format=%s)" = one ]
        hutch apply
        [ "$(git log -1 --format=%s)" = two ]
        [ "$(cat s)" = t ]
        [ -z "$(git status --short .)" ]
}

@test "git works in a linked worktree, and does not harm the others (U e)" {
        git worktree add -q ../wt
        git worktree add -q ../other
        cd ../wt
        mv ../other ../moved
        run -0 box -c 'echo w >f && git commit -qam wt && git log -1 --format=%s; git worktree prune'
        [ "${lines[0]}" = wt ]
        [ -d ../ws/.git/worktrees/other ]
        run ! box -c 'echo x >>"$(git rev-parse --git-common-dir)/config"'
        run ! box -c 'echo x >"$(git rev-parse --git-dir)/commondir"'
        box --workspace cow -c 'echo v >f && git commit -qam cow' 2>/dev/null
        [ "$(git log -1 --format=%s)" = wt ]
        hutch apply
        [ "$(git log -1 --format=%s)" = cow ]
        [ -z "$(git status --short)" ]
}

@test "git works in a submodule (U e)" {
        git init -q ../m
        git -C ../m commit -q --allow-empty -m m
        git -c protocol.file.allow=always submodule -q add ../m mod
        cd mod
        run -0 box -c 'echo n >n && git add n && git commit -qm in && git log -1 --format=%s'
        [ "$output" = in ]
        run ! box -c 'git config core.fsmonitor x'
}

@test "git init --separate-git-dir: the repository names the checkout in return once its owner said so" {
        git init -q --separate-git-dir ../apart.git ../apart
        cd ../apart
        run box --json git commit -q --allow-empty -m no
        [ "$(field "$output" .exit_code)" = 128 ]
        [[ $(field "$output" '.notices[] | select(.code == "git_not_attached").fix') == "'git config core.worktree \"\$PWD\"'"*"--rw $T/apart.git" ]]
        git config core.worktree "$PWD"
        run -0 box -c 'git commit -q --allow-empty -m apart && git log --format=%s'
        [ "$output" = apart ]
        run ! box -c "echo x >>$T/apart.git/config"
}

@test "a .git file that a box could have written attaches nothing" {
        git init -q ../secret
        mkdir ../forged
        cd ../forged
        echo "gitdir: $T/secret/.git" >.git
        run ! box -c "ls $T/secret/.git"
        run -0 box --json -c true
        [[ $output == *git_not_attached* ]]
}

@test "a repository in the home is not attached for a directory in it" {
        git init -q "$HOME"
        mkdir "$HOME/p"
        cd "$HOME/p"
        run ! box -c "cat $HOME/.ssh/id_rsa"
}
