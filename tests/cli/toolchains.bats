# Commands and toolchains that live in the home run in a box, and nothing else of the home comes with them.
load helper

program() { # program PATH TEXT: an executable file, with the directories to it
        mkdir -p "${1%/*}"
        printf '%s\n' "$2" >"$1"
        chmod +x "$1"
}
link() { # link TEXT PATH
        mkdir -p "${2%/*}"
        ln -s "$1" "$2"
}
# A node of nvm, which prints what it is and runs shell text.
nvm() {
        program "$HOME/.nvm/versions/node/v20.1.0/bin/node" $'#!/bin/sh\n[ "$1" != -v ] || exec echo nvm-node\nexec /bin/sh "$@"'
        PATH=$HOME/.nvm/versions/node/v20.1.0/bin:$PATH
}

@test "a program of the home runs, whatever its links lead to" {
        nvm
        program "$HOME/.local/share/claude/versions/1.0" $'#!/bin/sh\necho claude-native'
        link ../share/claude/versions/1.0 "$HOME/.local/bin/claude"
        program "$HOME/.npm-global/lib/node_modules/@openai/codex/bin/codex.js" $'#!/usr/bin/env node\n. "$(dirname "$(realpath "$0")")/../lib/part"'
        program "$HOME/.npm-global/lib/node_modules/@openai/codex/lib/part" 'echo codex-npm'
        link ../lib/node_modules/@openai/codex/bin/codex.js "$HOME/.npm-global/bin/codex"
        program "$HOME/.local/share/pipx/venvs/aider/bin/aider" "#!$HOME/.local/share/pipx/venvs/aider/bin/python"$'\necho aider-pipx'
        link "$HOME/.pyenv/versions/3.12/bin/python" "$HOME/.local/share/pipx/venvs/aider/bin/python"
        program "$HOME/.pyenv/versions/3.12/bin/python" $'#!/bin/sh\nexec /bin/sh "$@"'
        link ../share/pipx/venvs/aider/bin/aider "$HOME/.local/bin/aider"
        program "$HOME/.cargo/bin/rustup" $'#!/bin/sh\necho "rustup as ${0##*/}"'
        link rustup "$HOME/.cargo/bin/cargo"
        program "$HOME/bin/tool" $'#!/bin/sh\necho tool'
        program "$HOME/tools/sdk/bin/sdktool" $'#!/bin/sh\ncat "$(dirname "$0")/../conf"'
        echo sdk-conf >"$HOME/tools/sdk/conf"
        link tools/sdk "$HOME/current"
        program "$HOME/alone" $'#!/bin/sh\necho alone'
        export PATH=$HOME/.local/bin:$HOME/.npm-global/bin:$HOME/.cargo/bin:$HOME/bin:$HOME/current/bin:$HOME:$PATH
        each "claude | claude-native
codex | codex-npm
aider | aider-pipx
cargo | rustup as cargo
tool | tool
sdktool | sdk-conf
alone | alone" checks
        agree
}
checks() { expect "$1" "$(hutch "$1" 2>&1)" "$2"; }

@test "a version manager's choice is what runs in the box, too" {
        nvm
        expect direct "$(hutch node -v)" nvm-node
        expect text "$(hutch -c 'node -v')" nvm-node
        program "$T/ws/script" $'#!/usr/bin/env node\necho script'
        expect script "$(hutch ./script)" script
        expect moved "$(mv "$HOME/.nvm" "$HOME/versions"
                NVM_DIR=$HOME/versions PATH=$HOME/versions/versions/node/v20.1.0/bin:$PATH hutch -c 'node -v; echo "$NVM_DIR"')" \
                "nvm-node"$'\n'"$HOME/versions"
        agree
}

@test "what is attached is read-only, reported, and all that is attached of the home" {
        nvm
        echo token >"$HOME/.npmrc"
        mkdir -p "$HOME/.aws" "$HOME/.cargo/bin"
        echo key >"$HOME/.aws/credentials"
        echo token >"$HOME/.cargo/credentials.toml"
        program "$HOME/.cargo/bin/cargo" $'#!/bin/sh'
        PATH=$HOME/.cargo/bin:$PATH
        run hutch -c 'cd && find . -type f | sort | tr "\n" " "; touch .nvm/x .cargo/bin/y 2>/dev/null || echo read-only'
        [ "$output" = "./.cargo/bin/cargo ./.nvm/versions/node/v20.1.0/bin/node read-only" ]
        run hutch --json true
        [ "$(field "$output" '[.notices[] | select(.code == "toolchain_attached").subject] | sort | join(" ")')" = "$HOME/.cargo/bin $HOME/.nvm" ]
        [ -z "$(hutch true 2>&1)" ]
}

@test "what a workspace's package managers have downloaded can be read, unless the box can fetch it" {
        unset GOPATH GOMODCACHE CARGO_HOME npm_config_cache
        for at in go/pkg/mod .cargo/registry .cargo/git .npm/_cacache elsewhere/registry; do
                mkdir -p "$HOME/$at" && echo x >"$HOME/$at/part"
        done
        echo token | tee "$HOME/.cargo/credentials.toml" "$HOME/.npmrc" >"$HOME/.npm/key"
        in_home() { hutch "$@" -c 'cd && find -L . -type f ! -name .gitconfig ! -name .npmrc | sort | xargs'; }
        [ -z "$(in_home)" ]
        : >go.mod
        expect go "$(in_home)" ./go/pkg/mod/part
        expect moved "$(GOMODCACHE=$HOME/elsewhere in_home --env GOMODCACHE)" "./elsewhere/registry/part ./go/pkg/mod/part"
        mv go.mod Cargo.toml
        expect rust "$(in_home)" "./.cargo/git/part ./.cargo/registry/part"
        expect moved "$(CARGO_HOME=$HOME/elsewhere in_home)" ./elsewhere/registry/part
        expect variable "$(CARGO_HOME=$HOME/elsewhere hutch printenv CARGO_HOME)" "$HOME/elsewhere"
        mv Cargo.toml package.json
        expect node "$(in_home)" ./.npm/_cacache/part
        expect landlock "$(in_home --isolation landlock 2>/dev/null || echo ./.npm/_cacache/part)" ./.npm/_cacache/part
        expect online "$(in_home --net open 2>/dev/null)" ""
        expect none "$(in_home --profile none)" ""
        expect user "$(in_home --as user | tr ' ' '\n' | grep _cacache)" ""
        hutch -c 'echo evil >~/.npm/_cacache/part; echo evil >~/.npm/_cacache/new; rm -rf ~/.npm' 2>/dev/null || :
        [ "$(cat "$HOME"/.npm/_cacache/*)" = x ]
        mkdir sub && cd sub && expect below "$(in_home)" "" # a subdirectory of no repository has its own files alone
        ln -sfn "$HOME/.ssh" "$HOME/.npm/_cacache/link" # a link in it leads nowhere
        cd .. && expect link "$(hutch -c 'cat ~/.npm/_cacache/link/* 2>/dev/null || echo no')" no
        agree
}

@test "a session has the toolchains of PATH and what package managers downloaded, at any home and after a restore" {
        unset XDG_STATE_HOME GOMODCACHE GOPATH RUSTUP_HOME CARGO_HOME
        nvm
        program "$HOME/.cargo/bin/cargo" $'#!/bin/sh\ncat "${RUSTUP_HOME:-$HOME/.rustup}/part"'
        mkdir -p "$HOME/.rustup" "$HOME/go/pkg/mod" && echo toolchain >"$HOME/.rustup/part"
        echo package >"$HOME/go/pkg/mod/part"
        : >go.mod
        PATH=$HOME/.cargo/bin:$PATH
        try='node -v; cargo; cat ~/go/pkg/mod/part; echo x 2>/dev/null >~/go/pkg/mod/part || echo read-only; [ -r '$HOME/.ssh/id_rsa' ] || echo hidden'
        want="nvm-node toolchain package read-only hidden"
        for as in "" "--as host"; do
                hutch session start s $as >/dev/null
                expect "session $as" "$(hutch session run s -c "$try" | xargs)" "$want"
                hutch snapshot --session s one >/dev/null
                hutch session run s -c 'X=2'
                hutch restore --session s one
                expect "restored $as" "$(hutch session run s -c "$try" | xargs)" "$want"
                hutch session stop s --discard
                hutch snapshot --remove one
                expect "shell $as" "$(hutch shell $as <<<"$try" | xargs)" "$want"
        done
        expect "asked for another user" "$(hutch shell --as user <<<'echo $PATH; ls -a ~ /home' | grep -e nvm -e cargo -e '^go$')" ""
        agree
}

@test "the profile of a language allows its registry, beside the profile of the command" {
        hutch explain --net allowlist --allow-host 203.0.113.1:443 true >/dev/null 2>&1 || skip "needs --net allowlist"
        for one in go:proxy.golang.org node:registry.npmjs.org python:pypi.org rust:static.crates.io; do
                [[ $(hutch explain --profile "${one%%:*}" true) == *"${one#*:}"* ]] || differs "$one"
        done
        [[ $(hutch explain true) != *registry.npmjs.org* ]]
        output=$(hutch explain --profile node claude)
        [[ $output == *registry.npmjs.org* && $output == *api.anthropic.com* ]] || differs "$output"
        [[ $(hutch explain --profile codex claude) != *api.anthropic.com* ]] || differs "a profile with a command is the only one"
        agree
}

@test "the profile of C has what ccache compiled on the host, to read, and no workspace gets it by a file alone" {
        mkdir -p "$HOME/.cache/ccache" && echo object >"$HOME/.cache/ccache/x"
        : >Makefile
        expect file "$(hutch -c 'cat ~/.cache/ccache/x' 2>/dev/null)" ""
        expect profile "$(hutch --profile c -c 'cat ~/.cache/ccache/x; echo $CCACHE_READONLY; echo y >~/.cache/ccache/x' 2>/dev/null)" $'object\n1'
        expect unchanged "$(cat "$HOME/.cache/ccache/x")" object
        expect deny "$(hutch explain --profile c true | grep -c '^network   none')" 1
        agree
}

@test "a command that would need too much of the home is not given it" {
        mkdir -p "$HOME/.ssh/bin" "$HOME/.config/x/bin" "$HOME/.local/share/hutch/bin"
        for at in .ssh/bin .config/x/bin .local/share/hutch/bin; do
                cp /bin/true "$HOME/$at/odd-tool"
                status=0; output=$(PATH=$HOME/$at:$PATH hutch odd-tool 2>&1) || status=$?
                [ "$status" = 127 ] || [ "$at" = .config/x/bin ] || differs "$at: $status $output"
                PATH="$HOME/$at:$PATH" run hutch -c 'ls ~/.ssh ~/.config/x/y' # never more than the one file
                [[ $output != *id_rsa* ]] || differs "$at: $output"
        done
        agree
}

@test "a link or script that a box can have written leads to toolchains only" {
        mkdir -p "$HOME/work/bin"
        program "$HOME/work/bin/secret" $'#!/bin/sh\necho secret'
        ln -s "$HOME/work/bin/secret" tool
        run hutch ./tool
        [ "$status" = 127 ]
        printf '#!%s\n' "$HOME/work/bin/secret" >script
        chmod +x script
        run hutch ./script
        [ "$status" = 127 ]
        run ./script # the control
        [ "$output" = secret ]
        mkdir -p .venv/bin
        program "$HOME/.pyenv/versions/3.12/bin/python3" $'#!/bin/sh\necho pyenv'
        ln -s "$HOME/.pyenv/versions/3.12/bin/python3" .venv/bin/python
        [ "$(hutch .venv/bin/python)" = pyenv ]
}

@test "the search goes on in the system's directories and in what was attached, and a 127 lists them" {
        program "$T/sdk/one" $'#!/bin/sh\necho one'
        program "$T/sdk/bin/two" $'#!/bin/sh\necho two'
        program "$T/sdk/shims/three" $'#!/bin/sh\necho three'
        for name in one two three; do
                expect $name "$(hutch --ro "$T/sdk" $name)" $name
        done
        expect path "$(PATH=/nonexistent hutch ls -d /)" /
        run hutch --ro "$T/sdk" nosuch
        [ "$status" = 127 ]
        for dir in /bin /usr/bin /sbin /usr/sbin /usr/local/bin "$T/sdk" "$T/sdk/bin" "$T/sdk/shims"; do
                [[ $output == *"(searched "*"$dir"[,\)]* ]] || differs "$dir is not in: $output"
        done
        agree
}

@test "the box installs for itself where the host's programs are not" {
        program "$HOME/.local/bin/own" $'#!/bin/sh\necho "$NPM_CONFIG_PREFIX"; mkdir -p "$NPM_CONFIG_PREFIX/bin" && ln -s /bin/echo "$NPM_CONFIG_PREFIX/bin/fresh" && exec fresh installed'
        PATH=$HOME/.local/bin:$PATH
        run hutch own
        [ "$output" = "$HOME/.local/box"$'\n'installed ]
        [ ! -e "$HOME/.local/box" ]
        [ "$(hutch -c 'echo $NPM_CONFIG_PREFIX')" = "$HOME/.local" ]
}
