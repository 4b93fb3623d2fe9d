#!/usr/bin/env bats
# Patterns of --hide.
load helper

more_setup() {
        mkdir -p a/b/secrets .d
        echo s | tee .env a/b/.env a/x.key a/b/secrets/f .d/.env.local >/dev/null
        echo ok >a/ok
        ln -s .env link
}

masked() { ! hutch "${OPTIONS[@]}" -c "cat '$1'" >/dev/null 2>&1 || differs "$1 is readable with ${OPTIONS[*]}"; }
shown() { hutch "${OPTIONS[@]}" -c "cat '$1'" >/dev/null 2>&1 || differs "$1 is not readable with ${OPTIONS[*]}"; }

@test "--hide takes patterns: by name at any depth, by a part of a name, in one directory" {
        for f in .env a/x.key a/b/.env a/b/secrets/f .d/.env.local link; do
                OPTIONS=(--ro "$T/ws:/x") && shown "$f" # the control
        done
        OPTIONS=(--hide '**/.env' --hide '**/*.key' --hide '**/secrets' --hide '.d/.env*')
        for f in .env a/x.key a/b/.env a/b/secrets/f .d/.env.local link; do masked "$f"; masked "$T/ws/$f"; done
        shown a/ok
        OPTIONS=(--hide '*/b/.env')
        masked a/b/.env
        shown .env
        OPTIONS=(--hide '**/none-such*')
        shown .env
        OPTIONS=(--workspace cow --hide '**/.env')
        masked a/b/.env
        agree
}

@test "what a pattern hides cannot be moved, replaced or uncovered" {
        for attack in 'mv a z && cat z/b/.env' 'rm -f .env && false' 'mv .env e && cat e' 'ln a/b/.env l && cat l'; do
                ! hutch --hide '**/.env' -c "$attack" 2>/dev/null || differs "[$attack] got through"
        done
        [ "$(cat .env a/b/.env)" = "$(printf 's\ns')" ] || differs "the host's files changed"
        agree
}

@test "patterns begin at the workspace, wherever hutch is started" {
        cd /
        ! hutch -d "$T/ws" --hide '**/.env' -c "cat $T/ws/a/b/.env" 2>/dev/null
}
