# Copy-on-write and its review: what a box changes stays in its layer until a person takes it.
load helper
load cow

@test "rm, new, sed: the host as it was; diff shows, apply takes one, discard drops the rest, no trace" {
        run hutch run --workspace cow -c 'rm -rf src; echo new > a.txt; sed -i s/x/y/ b.txt; cat a.txt b.txt; ls'
        [ "$status" -eq 0 ] && [[ $output == $'new\na\ny\nc\na.txt\nb.txt\nhutch: kept 4 changes in box '* ]]
        [ "${#lines[@]}" -eq 7 ]
        untouched
        [ "$(stat -c %a "$STATE")" = 700 ] || differs "the state can be read by others"
        run hutch diff
        [ "$status" -eq 0 ] && [[ $output == *$'\n+new'* && $output == *$'\n-x\n+y\n'* && $output == *"a/src/main.c"*"deleted file"*$'\n-int'* ]] || differs "$output"
        run hutch diff --stat
        [[ $output == "box "*": 4 changes by "*" A a.txt (0 -> 4 bytes) +1 -0
 M b.txt (6 -> 6 bytes) +1 -1
 D src/main.c (4 -> 0 bytes) +0 -1" ]] || differs "$output"
        run hutch diff --name-only
        [ "$output" = $'a.txt\nb.txt\nsrc\nsrc/main.c' ] || differs "$output"
        untouched
        reviews 0 "1 applied" apply a.txt
        [ "$(cat a.txt)" = new ] || differs "a.txt was not applied"
        rm a.txt
        untouched
        run hutch diff --name-only
        [ "$output" = $'b.txt\nsrc\nsrc/main.c' ] || differs "after apply: $output"
        hutch discard
        untouched
        traceless
        reviews 125 "no box has changes" diff
        reviews 0 "no boxes with changes" boxes
        agree
}

@test "apply takes everything: contents, modes, links, directories, deletions; the box is gone" {
        echo old >old
        ln -s b.txt link
        cow 'rm -r src; printf "#!/bin/sh\n" >run.sh; chmod 755 run.sh; ln -sfn run.sh link; mkdir -p p/q; echo deep >p/q/f; chmod 600 b.txt; rm old; mkdir old; touch -d 2001-02-03T04:05:06Z p/q/f'
        reviews 0 applied apply
        [ "$(find . -mindepth 1 -printf '%P %y %m %l\n' | sort)" = "b.txt f 600 
link l 777 run.sh
old d 755 
p d 755 
p/q d 755 
p/q/f f 644 
run.sh f 755 " ] || differs "$(find . -mindepth 1 -printf '%P %y %m %l\n' | sort)"
        [ "$(stat -c %Y p/q/f)" = 981173106 ] || differs "the time of a file was not kept"
        [ "$(find . ! -user "$(id -un)")" = "" ] || differs "a foreign owner: $(find . ! -user "$(id -un)")"
        traceless
        agree
}

@test "git apply takes what diff prints" {
        command -v git >/dev/null || skip "needs git"
        cow 'rm -r src; echo new >a.txt; sed -i s/x/y/ b.txt; printf "no newline" >n; printf "#!/bin/sh\n" >x; chmod 755 x'
        hutch diff | grep -v '^Directory ' >"$T/patch"
        git apply "$T/patch"
        [ "$(sed -n 2p b.txt)" = y ] && [ "$(cat a.txt n)" = $'new\nno newline' ] && [ -x x ] && [ ! -e src/main.c ]
}

@test "--json: changes as lists, as the box saw them" {
        out=$(hutch --workspace cow --json -c 'rm -r src; echo new >a.txt; echo >>b.txt; echo tmp >gone; rm gone; mv a.txt c.txt; touch b.txt')
        [ "$(field "$out" '.changes|tojson')" = "{\"created\":[\"$T/ws/c.txt\"],\"modified\":[\"$T/ws/b.txt\"],\"deleted\":[\"$T/ws/src\",\"$T/ws/src/main.c\"]}" ] || differs "$out"
        [ "$(field "$out" .enforced.protected)" = enforced ] || differs "$out"
        hutch discard
        out=$(hutch --workspace cow --json -c 'chmod 600 b.txt')
        [ "$(field "$out" '.changes.modified[0]')" = "$T/ws/b.txt" ] || differs "$out"
        hutch discard
        out=$(hutch --workspace cow --json true)
        [ "$(field "$out" '.changes|tojson')" = '{"created":[],"modified":[],"deleted":[]}' ] || differs "$out"
        out=$(hutch --json true)
        [ "$(field "$out" .changes)" = null ] || differs "rw: $out"
        untouched
        traceless
        agree
}

@test "no change, no trace: read, touch, write the same, create and remove" {
        one() {
                run hutch --workspace cow -c "$1"
                [ "$status" -eq 0 ] && [ -z "$output" ] || differs "[$1] $status: $output"
                untouched
                traceless
        }
        each "true
cat b.txt src/main.c >/dev/null
touch b.txt src
cp b.txt /tmp/b; cat /tmp/b >b.txt
cp -p b.txt n; mv n b.txt
echo x >n; rm n
mkdir d; rmdir d
chmod 600 b.txt; chmod 644 b.txt" one
        agree
}

@test "--ephemeral leaves nothing, and does write" {
        run hutch --workspace cow --ephemeral -c 'rm -r src; echo new >a.txt; cat a.txt; ls'
        if ! memory_layers; then
                told 125 "in memory: that needs Linux 6.6; without --ephemeral it is kept in the state directory"
                untouched
                traceless
                agree
                return
        fi
        [ "$output" = $'new\na.txt\nb.txt' ] || differs "$output"
        run hutch --ephemeral --cow src -c 'echo >src/new; ls src'
        [ "$output" = $'main.c\nnew' ] || differs "$output"
        untouched
        traceless
        agree
}

@test "protected names are held back, however they came there" {
        one() {
                cow "$1"
                run hutch diff --stat
                [[ $output == *" protected"* ]] || differs "[$1] diff does not tell: $output"
                reviews 1 "not applied: $2" apply
                [ ! -e "$2" ] && [ ! -L "$2" ] || differs "[$1] $2 was applied"
                hutch discard
                traceless
        }
        each "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit         | .git/hooks/pre-commit
mkdir -p .GIT/Hooks; echo x >.GIT/Hooks/pre-commit                         | .GIT/Hooks/pre-commit
mkdir -p d/e; echo x >d/e/pre-push; mkdir -p s/.git; mv d/e s/.git/hooks   | s/.git/hooks/pre-push
mkdir -p k w/hooks; echo x >w/hooks/update; mv w k/.git                    | k/.git/hooks/update
echo x >n; ln -s n .envrc                                                  | .envrc
echo x >n; mv n .mcp.json                                                  | .mcp.json
mkdir .vscode; echo x >.vscode/tasks.json                                  | .vscode/tasks.json
echo '* filter=x' >.gitattributes                                          | .gitattributes" one
        agree
}

@test "protected names: the rest is applied, --force takes them, keys of .git/config are named" {
        mkdir .git
        printf '[core]\n\tbare = false\n' >.git/config
        cow 'echo ok >plain; printf "[core]\n\tfsmonitor = /tmp/evil\n" >>.git/config; mkdir .git/hooks; echo x >.git/hooks/pre-commit'
        run hutch diff --stat
        [[ $output == *core.fsmonitor* ]] || differs "the key is not named: $output"
        reviews 1 "1 applied, 3 not" apply
        [ -e plain ] && [ ! -e .git/hooks ] && ! grep -q evil .git/config || differs "$(find .)"
        reviews 1 "not applied" apply .git/hooks/pre-commit
        reviews 0 "applied" apply --force .git/hooks
        [ -e .git/hooks/pre-commit ] && ! grep -q evil .git/config || differs "--force PATH: $(find .)"
        reviews 0 "1 applied" apply --force
        grep -q evil .git/config || differs "--force did not take .git/config"
        traceless
        agree
}

@test "two boxes on one workspace do not disturb each other" {
        local pids=()
        for i in 1 2; do
                mkfifo "$T/go$i"
                (cow "echo $i >mine; echo $i >>b.txt; rm -rf src; echo >&2 begun; read -r; cat mine; ls; tail -1 b.txt" <"$T/go$i" >"$T/out$i" 3>&-; cp "$T/said" "$T/said$i") 3>&- &
                pids+=($!)
                eval "exec $((i + 6))>\"$T/go$i\"" # 7 and 8
                sleep 0.3
        done
        run hutch boxes
        [ "$(grep -c 'in use' <<<"$output")" = 2 ] || differs "boxes: $output"
        echo >&7
        echo >&8
        exec 7>&- 8>&-
        wait "${pids[@]}" # not the watchdog of bats, which is a child too
        for i in 1 2; do [ "$(xargs <"$T/out$i")" = "$i b.txt mine $i" ] || differs "box $i: $(cat "$T/out$i")"; done
        untouched
        run hutch boxes
        [ "$(grep -c "$T/ws" <<<"$output")" = 2 ] || differs "boxes: $output"
        for id in $(hutch boxes | sed -n '2,$s/ .*//p'); do
                reviews 0 "+++ b/mine" diff --box "$id" mine
                n=$(hutch diff --box "$id" mine | sed -n 's/^+\([12]\)$/\1/p')
                hutch apply --box "$id" mine >/dev/null || [ "$n" != "$first" ] || differs "apply --box $id"
                first=${first-$n}
                [ "$(cat mine)" = "$first" ] || differs "mine is $(cat mine), not $first"
                hutch discard --box "$id"
        done
        traceless
        agree
}

@test "the newest box of the directory is meant, -d selects another, --box any" {
        mkdir "$T/other"
        cow 'echo 1 >one'
        first=$(box)
        sleep 1.1
        cow 'ls; echo 2 >two'
        (cd "$T/other" && cow 'echo 3 >three')
        run hutch diff --name-only
        [ "$output" = two ] || differs "newest: $output"
        run hutch diff --name-only -d "$T/other"
        [ "$output" = three ] || differs "-d: $output"
        run hutch diff --name-only --box "$first"
        [ "$output" = one ] || differs "--box: $output"
        run hutch boxes
        [ "${#lines[@]}" -eq 4 ] && [[ ${lines[0]} == BOX* && $output == *"$first "*"$T/ws"* && $output == *"$T/other"* ]] || differs "boxes: $output"
        reviews 0 "1 applied" apply -d "$T/other"
        [ -e "$T/other/three" ] || differs "apply -d"
        reviews 0 "" discard --box "$first"
        run hutch diff --name-only
        [ "$output" = two ] || differs "after discard --box: $output"
        hutch discard
        reviews 125 "no such box: 'nosuch'" diff --box nosuch
        reviews 125 "is not a box" discard --box ../..
        reviews 125 "no box has changes" discard
        untouched
        traceless
        agree
}

@test "discard: paths, --older-than" {
        cow 'echo 1 >one; echo 2 >two; mkdir d; echo 3 >d/three'
        hutch discard one d
        run hutch diff --name-only
        [ "$output" = two ] || differs "$output"
        reviews 125 "nosuch" discard nosuch
        reviews 0 "0 boxes" discard --older-than 1h
        sleep 1.1
        reviews 0 "1 box" discard --older-than 0s
        reviews 125 "is not a duration" discard --older-than soon
        untouched
        traceless
        agree
}

@test "what the host changed since is refused, --force takes it" {
        cow 'echo box >b.txt; echo box >new; rm src/main.c; chmod 600 src'
        echo host >b.txt
        echo host >new
        echo host >src/main.c
        run hutch apply b.txt new src/main.c
        [ "$status" -eq 1 ] && [ "$(grep -cE ': the host (changed it|made one of that name) since' <<<"$output")" = 3 ] || differs "$output"
        [ "$(cat b.txt new src/main.c)" = $'host\nhost\nhost' ] || differs "the host's were overwritten"
        reviews 0 "3 applied" apply --force b.txt new src/main.c
        [ "$(cat b.txt new)" = $'box\nbox' ] && [ ! -e src/main.c ] || differs "--force did not take them: $(cat b.txt new)"
        hutch discard
        traceless
        agree
}

@test "hostile names: newline, escape, invalid UTF-8, blanks, dashes, quotes" {
        cow $'touch $\'new\\nline\' $\'esc\\e[2J\' $\'bad\\xff\' " lead" -- --force "quo\\"te" $\'tab\\t\''
        run hutch diff
        [ "$status" -eq 0 ] && [[ $output != *$'\e'* && $output == *'new\nline'* && $output == *'bad\377'* ]] || differs "diff: $output"
        run hutch diff --stat
        [ "${#lines[@]}" -eq 8 ] && [[ $output != *$'\e'* ]] || differs "--stat: $output"
        run hutch diff --name-only
        [ "${#lines[@]}" -eq 7 ] && [[ $output != *$'\e'* ]] || differs "--name-only: $output"
        reviews 0 "1 applied" apply $'bad\xff'
        [ -e $'bad\xff' ] || differs "apply of a name that is not UTF-8"
        hutch discard ./--force
        reviews 0 "5 applied" apply
        [ -e $'new\nline' ] && [ -e $'esc\e[2J' ] && [ -e 'quo"te' ] && [ ! -e --force ] || differs "$(find .)"
        hutch --workspace cow --json -c $'rm $\'bad\\xff\' $\'new\\nline\'' >"$T/json"
        [ "$(jq -r '.changes.deleted|length' "$T/json")" = 2 ] && [ "$(jq -r '.changes.deleted[]|objects|.base64' "$T/json" | base64 -d)" = "$T/ws/"$'bad\xff' ] || differs "$(cat "$T/json")"
        hutch discard
        traceless
        agree
}

@test "directories and files without permissions" {
        mkdir closed
        echo in >closed/in
        cow 'mkdir m m/n; echo deep >m/n/f; chmod 0 m/n/f m/n m; rm -r closed; mkdir closed; echo other >closed/in; chmod 0 closed'
        run hutch diff --name-only
        [ "$output" = $'closed\nclosed/in\nm\nm/n\nm/n/f' ] || differs "$output"
        reviews 0 "+deep" diff
        reviews 0 applied apply
        [ "$(stat -c %a m closed)" = $'0\n0' ] || differs "modes: $(stat -c %a m closed)"
        chmod 700 m closed && chmod 700 m/n && chmod 600 m/n/f && [ "$(cat m/n/f closed/in)" = $'deep\nother' ] || differs "contents"
        traceless
        cow 'mkdir -p z/z/z; touch z/z/z/f; chmod 0 z/z/z/f z/z/z; chmod 0 z/z; chmod 0 z'
        hutch discard
        traceless
        agree
}

@test "a box that takes every permission from the directory itself" {
        cow 'echo new >a.txt; mkdir m m/n; echo deep >m/n/f; rm b.txt; chmod 0 m/n m .'
        run hutch diff --name-only
        [ "$output" = $'a.txt\nb.txt\nm\nm/n\nm/n/f' ] || differs "$output"
        reviews 0 "+deep" diff
        reviews 0 "1 applied" apply b.txt
        hutch discard a.txt || differs "discard: $?"
        reviews 0 "3 applied" apply
        [ "$(stat -c %a . m)" = $'755\n0' ] && [ ! -e b.txt ] && [ ! -e a.txt ] || differs "$(ls -la)"
        chmod 700 m && chmod 700 m/n && [ "$(cat m/n/f)" = deep ] || differs "contents"
        traceless
        cow 'echo new >a.txt; chmod 0 .'
        hutch discard
        traceless
        agree
}

@test "a directory without permissions on the host does not stop a box" {
        mkdir shut
        touch shut/f
        chmod 0 shut
        cow 'echo new >a.txt'
        run hutch diff --name-only
        [ "$output" = a.txt ] || differs "$output"
        reviews 0 "1 applied" apply
        [ "$(stat -c %a shut)" = 0 ] || differs "mode changed"
        traceless
        agree
}

@test "FIFOs and sockets are shown and never applied" {
        cow 'mkfifo p; mkdir d; mkfifo d/q; echo ok >d/f; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"s\")" 2>/dev/null || mkfifo s'
        run timeout 20 "$HUTCH_BUILD/hutch" diff
        [ "$status" -eq 0 ] && [[ $output == *"FIFO p created"* ]] || differs "$output"
        run timeout 20 "$HUTCH_BUILD/hutch" apply --force
        [ "$status" -eq 1 ] && [[ $output == *"not applied: d/q"* && $output == *"not applied: p"* && $output == *"not applied: s"* ]] || differs "$output"
        [ "$(cat d/f)" = ok ] && [ ! -e p ] && [ ! -e d/q ] && [ ! -e s ] || differs "$(find .)"
        hutch discard
        traceless
        agree
}

@test "links lead nowhere: not at diff, apply or discard" {
        echo secret >"$T/secret"
        mkdir "$T/out"
        cow "ln -s $T/secret l; rm -r src; ln -s $T/out src; echo x >b.txt"
        run hutch diff
        [[ $output != *secret$'\n'-* && $output != *"+secret"* ]] || differs "$output"
        rm b.txt && ln -s "$T/secret" b.txt # and the host's file became a link meanwhile
        run hutch apply --force
        [ "$(cat "$T/secret")" = secret ] && [ -z "$(ls -A "$T/out")" ] && [ ! -L b.txt ] && [ "$(cat b.txt)" = x ] || differs "$output"
        hutch discard || true
        [ -d "$T/out" ] || differs "discard followed a link"
        agree
}

@test "--cow: further directories, with a place of their own; files and / are refused" {
        mkdir "$T/data"
        echo d >"$T/data/f"
        run hutch --workspace cow --cow "$T/data:/srv/d" -c 'echo more >>/srv/d/f; echo new >a.txt'
        [ "$status" -eq 0 ] && [ "$(cat "$T/data/f")" = d ] || differs "$output"
        untouched
        reviews 0 "1 applied" apply "$T/data"
        [ "$(cat "$T/data/f")" = $'d\nmore' ] || differs "$(cat "$T/data/f")"
        untouched
        reviews 0 "1 applied" apply
        [ -e a.txt ] || differs "a.txt"
        traceless
        reviews 125 "only a directory" --cow b.txt true
        reviews 125 refused --cow /:/x true
        reviews 125 "" --cow "$T/nosuch" true
        agree
}

@test "--ro in a cow workspace holds; a hard link is split, and the host's other name keeps its content" {
        ln b.txt hard
        BEFORE=$(picture)
        run hutch --workspace cow --ro src -c 'touch src/new; echo more >>b.txt; wc -l <hard'
        [[ $output == *"Read-only"* && $output == *$'\n3\n'* ]] || differs "$output"
        untouched
        hutch apply >/dev/null
        [ "$(wc -l <b.txt) $(wc -l <hard)" = "4 3" ] || differs "$(wc -l b.txt hard)"
        traceless
        agree
}

@test "a box that is ended by a limit or a signal keeps its changes; a failing command keeps its status" {
        run hutch --workspace cow --timeout 300ms -c "echo >one; sleep $NAP"
        [ "$status" -eq 124 ] && [[ $output == *"kept 1 change "* ]] || differs "$output"
        hutch discard
        run hutch --workspace cow -c 'echo >one; exit 3'
        [ "$status" -eq 3 ] && [[ $output == *"kept 1 change "* ]] || differs "$output"
        hutch discard
        untouched
        traceless
        agree
}

@test "hutch killed: the host as it was, and what is left can be listed and discarded" {
        "$HUTCH_BUILD/hutch" --workspace cow -c "echo 1 >one; echo >$T/ws/b.txt; echo begun; sleep $NAP" >"$T/begun" 3>&- &
        pid=$!
        appears "$T/begun"
        reviews 0 "in use" boxes
        kill -9 $pid
        wait $pid 2>/dev/null || true
        gone "sleep $NAP"
        untouched
        reviews 0 "$T/ws" boxes
        hutch discard
        traceless
        agree
}

@test "hutch killed: a directory that the host changed since stays" {
        mkdir -p d/sub e && touch d/f && sleep 0.02
        "$HUTCH_BUILD/hutch" --workspace cow -c "rm -r d e; touch new; echo begun; sleep $NAP" >"$T/begun" 3>&- &
        pid=$!
        appears "$T/begun"
        kill -9 $pid
        wait $pid 2>/dev/null || true
        gone "sleep $NAP"
        chmod 700 d/sub
        run hutch apply
        [ "$status" -ne 0 ] && [[ $output == *"d/sub: the host changed it since"* ]] || differs "$output"
        [ -d d/sub ] && [ ! -e d/f ] && [ ! -e e ] && [ -e new ] || differs "$(find .)"
        hutch discard
        traceless
        agree
}

@test "the box cannot reach its layer" {
        run hutch --workspace cow -c "echo >new; ls $STATE 2>&1; find / -xdev -name upper -path '*hutch*' 2>/dev/null; setfattr -n user.overlay.opaque -v y src 2>/dev/null; cat src/main.c"
        [[ $output == *int* && $output != */upper* && $output != *lock* ]] || differs "$output"
        run hutch diff --name-only
        [ "$output" = new ] || differs "$output"
        hutch discard
        reviews 125 refused --workspace cow -d "$HOME/.local/state/hutch" true
        reviews 125 refused --cow "$HOME/.local/state/hutch" true
        untouched
        traceless
        agree
}

# A row: options, shell text, how it ends. What fills the layer waits at the end to be stopped, and has little to fill it with.
@test "--disk: a layer in memory has a wall, one on disk is watched, and the report says which" {
        fills() {
                local words out status=0
                eval "words=($1)"
                out=$(hutch --workspace cow --json --disk 16M --timeout 60s "${words[@]}" -c "$2" 2>/dev/null) || status=$?
                [ "$(field "$out" '[.exit_code,.kill_reason,.enforced.disk]|join(" ")')" = "$3" ] && [ $status -eq "${3%% *}" ] || differs "[$1] $2: $out"
        }
        ! memory_layers || each '
--ephemeral      | head -c 40M /dev/zero >big; sleep 30                                     | 137 disk enforced
--ephemeral      | head -c 10M /dev/zero >big; head -c 10M /dev/zero >/tmp/big; sleep 30    | 137 disk enforced
--ephemeral      | head -c 8M /dev/zero >big                                                | 0  enforced
' fills
        each '
--allow-degraded | head -c 40M /dev/zero >big; sleep 30                                     | 137 disk degraded
--allow-degraded | mkdir -p d/e; head -c 40M /dev/zero >d/e/big; chmod 0 d/e d; sleep 30    | 137 disk degraded
--allow-degraded | head -c 8M /dev/zero >big; for i in 1 2 3 4; do ln big big$i; done; sleep 1 | 0  degraded
' fills
        refused "--workspace cow --disk 16M | --ephemeral keeps them in memory, behind a wall"
        watched() { pgrep -u "$(id -u)" -x hutch-meter >/dev/null; }
        await_watch() { # await_watch yes|no
                for _ in {1..400}; do
                        if watched; then [ "$1" = no ] || return 0; else [ "$1" = yes ] || return 0; fi
                        sleep 0.05
                done
                return 1
        }
        await_watch no || differs "a watch outlives its box"
        "$HUTCH_BUILD/hutch" --workspace cow --disk 16M --allow-degraded sleep "$NAP" &
        await_watch yes || differs "nobody watches"
        kill -9 $!
        await_watch no || differs "a watch outlives hutch"
        gone "sleep $NAP"
        untouched
        agree
}

@test "git in a cow box" {
        need git
        export GIT_OPTIONAL_LOCKS=0 # or `git status` on the host writes the index, which is a conflict then
        git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm one
        run hutch --workspace cow -c 'git status --short && echo x >n && git add n && git -c user.name=a -c user.email=a@b commit -qm two && git log --oneline | wc -l && git gc -q'
        [ "$status" -eq 0 ] && [ "${lines[0]}" = 2 ] || differs "$output"
        [ "$(git rev-list --count HEAD)" = 1 ] && [ -z "$(git status --short)" ] || differs "the host's repository changed"
        hutch apply >/dev/null
        [ "$(git rev-list --count HEAD)" = 2 ] && [ -z "$(git status --short)" ] && git fsck --strict 2>&1 || differs "after apply: $(git status --short)"
        hutch discard 2>/dev/null || true
        traceless
        agree
}

# The new mount API is not there: everybody but root has copy-on-write all the same.
@test "copy-on-write by the old mount API" {
        run deny fsopen open_tree move_mount mount_setattr -- "$HUTCH_BUILD/hutch" --workspace cow -c 'rm -rf src; echo new >a.txt; sed -i s/x/y/ b.txt'
        untouched
        if am_root; then
                told 125 "id-mapped"
                traceless
                agree
                return
        fi
        run hutch diff --name-only
        [ "$output" = $'a.txt\nb.txt\nsrc\nsrc/main.c' ] || differs "$output"
        hutch discard
        run deny fsopen open_tree move_mount mount_setattr -- "$HUTCH_BUILD/hutch" --workspace cow --ephemeral -c 'echo new >a.txt; cat a.txt'
        [ "$output" = new ] || ! memory_layers || differs "--ephemeral: $output"
        untouched
        traceless
        agree
}
