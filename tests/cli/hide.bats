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

@test "what the host saves over a hidden path by renaming is masked again, and what appears beside it" {
        saves() {
                local options
                eval "options=($1)"
                rm -rf d && mkdir d
                echo old-secret >d/.env
                echo x >d/plain
                hutch --json "${options[@]}" -c 'echo x >/tmp/x; touch /tmp/ready; for i in $(seq 200); do [ -e d/plain ] || break; sleep 0.02; done
                        sleep 0.3; cat d/.env d/.env.local d/other 2>&1' >"$T/out" 3>&- &
                local pid=$!
                sleep 0.7
                echo new-secret >"$T/new"; mv "$T/new" d/.env
                echo later-secret >"$T/new"; mv "$T/new" d/.env.local
                echo seen >d/other
                rm d/plain
                wait "$pid" || :
                out=$(field "$(cat "$T/out")" .stdout)
                [[ $out == *seen* && $out != *old-secret* ]] || differs "[$1] $out"
                [[ $2 == fails || $out != *new-secret* ]] || differs "[$1] the new file was read: $out"
                [[ $out != *later-secret* || $2 != all ]] || differs "[$1] what appeared was read: $out"
                [ "$(field "$(cat "$T/out")" .enforced.filesystem)" = degraded ] || differs "[$1] filesystem is not degraded"
                [[ $(field "$(cat "$T/out")" '.notices[] | select(.code == "hidden_replaced").subject') == *d/.env* ]] || differs "[$1] no notice"
        }
        each "--hide '**/.env*' | all
--hide d/.env | one
--workspace ro --hide '**/.env*' | all
--as user --hide '**/.env*' | all" saves
        # the control: undisturbed, nothing is reported
        run hutch --json --hide '**/.env*' -c 'echo x >d/y'
        [ "$(field "$output" .enforced.filesystem)" = enforced ] || differs "control: $output"
        [[ $output != *hidden_replaced* ]] || differs "control: $output"
        agree
}
