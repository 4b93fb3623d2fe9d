# Review feels like git: which box it is, what it shows, what it does not do behind one's back.
load helper
load cow

@test "Uh: the box is named, ids may be cut, and apply twice does not go on to an older box" {
        cow 'echo 1 >one'
        first=$(box)
        cow 'echo 2 >two'
        second=$(box)
        run hutch diff
        [[ ${lines[0]} == "box $second: 1 change by "*"echo 2"* ]] || differs "first line: ${lines[0]}"
        run hutch apply
        [[ ${lines[0]} == "box $second"* ]] && [ -e two ] || differs "apply: $output"
        run hutch apply
        [ "$status" -eq 125 ] && [[ $output == *"--box $first"* ]] && [ ! -e one ] || differs "second apply: $status $output"
        run hutch diff --name-only --box "${first: -5}"
        [ "$output" = one ] || differs "cut id: $output"
        reviews 0 "1 applied" apply --box "${first: -5}"
        traceless
        agree
}

@test "Uh: boxes shows the command, and has JSON" {
        cow 'echo 1 >one'
        reviews 0 "echo 1 >one" boxes
        [ "$(hutch boxes --json | jq -r '.[0] | .id + " " + (.changes | tostring) + " " + .command')" = "$(box) 1 echo 1 >one" ] || differs "$(hutch boxes --json)"
        hutch discard
        [ "$(hutch boxes --json)" = "[]" ] || differs "$(hutch boxes --json)"
        agree
}

@test "Uh: a dry run tells and changes nothing; counts of lines; directories do not drown files" {
        cow 'mkdir -p n/m; printf "1\n2\n3\n" >n/m/f; echo y >b.txt'
        echo host >b.txt
        BEFORE=$(picture)
        run hutch apply --dry-run
        [ "$status" -eq 1 ] && [[ $output == *"b.txt: the host changed it since"*"3 would be applied, 1 not"* ]] || differs "$status $output"
        untouched
        run hutch diff --stat
        [[ $output == *"n/m/f (0 -> 6 bytes) +3 -0"* && $output != *" A n "* ]] || differs "$output"
        reviews 0 " A n " diff --stat --all
        hutch discard
        agree
}

@test "diff --stat shows modes that change, and a run that changes nothing says so of a box with changes" {
        chmod 600 b.txt
        cow 'chmod 666 b.txt; touch wide plain; chmod 666 wide; chmod 644 plain'
        run hutch diff --stat
        [[ $output == *"b.txt (6 -> 6 bytes) mode 0600 -> 0666"* && $output == *"wide (0 -> 0 bytes) mode 0666"* && $output == *"plain (0 -> 0 bytes)"* ]] || differs "$output"
        [[ $output != *"plain (0 -> 0 bytes) mode"* ]] || differs "$output"
        run hutch run --box "$(box)" true
        [[ $output == *"which this run did not change"* && $output != *"kept 0"* ]] || differs "$output"
        hutch discard
        agree
}

@test "Uh: --merge merges what both changed, and leaves what needs a decision" {
        for f in one both same; do seq 30 >$f; done
        chmod 750 one
        printf 'a\0b\n' >binary
        cow 'sed -i "s/^3$/box/" one both same; printf "c\0d\n" >binary; echo new >fresh'
        sed -i 's/^20$/host/' both
        sed -i 's/^3$/host/' same
        printf 'e\0f\n' >binary
        reviews 1 "3 not" apply --dry-run
        run hutch apply --merge
        [ "$status" -eq 1 ] && [[ $output == *"same: the host and the box changed the same lines"*"binary: it cannot be merged"* ||
                $output == *"binary: it cannot be merged"*"same: the host and the box changed the same lines"* ]] || differs "$status $output"
        [ "$(sed -n '3p;20p' both | tr '\n' ' ')" = "box host " ] || differs "both: $(cat both)"
        [ "$(wc -l <both) $(sed -n 3p same) $(sed -n 3p one) $(stat -c %a one)" = "30 host box 750" ] || differs "same or one"
        [ "$(hutch diff --name-only | tr '\n' ' ')" = "binary same " ] || differs "left: $(hutch diff --name-only)"
        hutch discard
        # The control: nothing is merged where the host's content was not kept, and nothing in version control.
        seq 30 >both
        mkdir -p r/.git/refs/heads r/.git/objects && seq 30 >r/.git/packed-refs && echo "ref: refs/heads/main" >r/.git/HEAD
        cow 'sed -i "s/^3$/box/" both r/.git/packed-refs'
        sed -i 's/^20$/host/' both r/.git/packed-refs
        rm -rf "$STATE"/*/bases
        run hutch apply --merge
        [ "$status" -eq 1 ] && [[ $output == *"both: it cannot be merged: what the host had before was not kept"* ]] || differs "$status $output"
        [ "$(sed -n '3p;20p' both r/.git/packed-refs | tr '\n' ' ')" = "3 host " ] || [ "$(grep -c box both r/.git/packed-refs | tr '\n' ' ')" = "both:0 r/.git/packed-refs:0 " ] || differs "merged all the same"
        hutch discard
        agree
}

@test "Uh: -p asks for each hunk, and keeps the rest" {
        for f in f g; do seq 60 >$f; done
        cow 'sed -i "s/^3$/box/; s/^30$/box/; s/^55$/box/" f; sed -i "s/^9$/box/" g; echo new >n'
        run hutch apply -p <<<$'n\ny\nd\ny\nn\n'
        [ "$status" -eq 0 ] && [[ $output == *"Apply this hunk [y,n,q,a,d,?]? "*"2 applied"* ]] || differs "$status $output"
        [ "$(sed -n '3p;30p;55p' f | tr '\n' ' ')" = "3 box 55 " ] && [ "$(sed -n 9p g)" = box ] && [ ! -e n ] || differs "f: $(cat f)"
        [ "$(hutch diff --name-only | tr '\n' ' ')" = "f n " ] && [ "$(hutch diff f | grep -c '^+box')" = 2 ] || differs "left: $(hutch diff)"
        # The host's own edit of what was taken in part is a conflict as ever.
        echo mine >>f
        reviews 1 "f: the host changed it since" apply f
        [ "$(tail -n 1 f)" = mine ] || differs "lost"
        run hutch apply -p n <<<q
        [ ! -e n ] || differs "q applied"
        reviews 0 "1 applied" apply -p n <<<y
        hutch discard
        agree
}

@test "Uh: .git is summarised without running the host's git" {
        need git
        git init -q -b main . && git add . && git -c user.name=a -c user.email=a@b commit -qm one
        cow 'echo z >b.txt; git -c user.name=a -c user.email=a@b commit -qam two'
        PATH=/nowhere run "$HUTCH_BUILD/hutch" diff
        [[ $output == *"git: 1 commit on main"* && $output == *"+z"* && $output != *".git/objects"* ]] || differs "$output"
        run hutch diff --all --stat
        [[ $output == *".git/objects"* ]] || differs "$output"
        hutch discard
        agree
}

@test "Uh: a repository that stages a protected name is held whole, one that tracks it as the host does is not" {
        need git
        export GIT_OPTIONAL_LOCKS=0
        commit() { printf 'git -c user.name=a -c user.email=a@b commit -qm %s' "$1"; }
        git init -q -b main . && mkdir -p .vscode d && echo 1 >.vscode/settings.json && echo 1 >.envrc && echo 1 >d/f && git add . && eval "$(commit one)"
        for form in true 'git update-index --index-version 4' 'git update-index --index-version 2' 'git gc -q'; do
                cow "mkdir -p d e; echo '$form' >>d/f; echo '$form' >e/g; ln -sf g e/l; git add . && $(commit two) && $form"
                reviews 0 "applied" apply
                [ -z "$(git status --short)" ] && git fsck --strict 2>&1 || differs "$form: $(git status --short)"
        done
        [ "$(git rev-list --count HEAD)" -eq 5 ] || differs "$(git log --oneline)"

        cow "echo 2 >.envrc; echo 2 >d/f; git add . && $(commit six)"
        run hutch apply
        [ "$status" -eq 1 ] && [[ $output == *"not applied: .git/index: it stages .envrc, which the host would obey; unstage it in the box"* && $output == *"not applied: .git/refs/heads/main: .git is applied whole or not at all, and .git/index is held: it stages .envrc"* ]] || differs "$output"
        [ "$(cat .envrc d/f | xargs)" = "1 2" ] && [ "$(git status --short)" = " M d/f" ] && [ "$(git rev-list --count HEAD)" -eq 5 ] || differs "$(git status --short)"
        reviews 0 "applied" apply --force
        [ "$(git rev-list --count HEAD)" -eq 6 ] && [ -z "$(git status --short)" ] || differs "--force: $(git status --short)"

        cow 'echo 3 >.envrc; git add .envrc; git restore --staged .envrc; echo 3 >d/f; git add d'
        reviews 1 ".envrc" apply
        [ "$(git status --short)" = "M  d/f" ] || differs "unstaged: $(git status --short)"
        hutch discard

        printf 'damaged' >index
        cow 'cp index .git/index'
        reviews 1 "it cannot be examined" apply
        hutch discard
        agree
}

@test "Uh: a deleted workspace is explained, and its changes can be dropped" {
        mkdir ../gone
        cd ../gone
        cow 'echo 1 >one'
        id=$(box)
        cd ..
        rmdir gone
        run hutch diff --box "$id"
        told 125 "$T/gone, which no longer exists"
        run hutch apply --box "$id"
        [ "$status" -eq 125 ] && [[ $output == *"no longer exists"* ]] || differs "$output"
        hutch discard --box "$id"
        traceless
        agree
}

@test "Pe: diff PATH is linear" {
        cow 'mkdir n; cd n; for i in $(seq 4000); do : >$i; done'
        took() { local start; start=$(date +%s%N); "$@" >/dev/null; echo $(($(date +%s%N) - start)); }
        [ "$(hutch diff --name-only n | wc -l)" -eq 4001 ] || differs "not all are shown"
        all=$(took hutch diff --name-only)
        path=$(took hutch diff --name-only n)
        [ "$path" -lt $((4 * all)) ] || differs "$path ns with a path, $all without"
        hutch discard
        agree
}

@test "House 2: a workspace whose path is not UTF-8 keeps its changes" {
        mkdir $'../w\xff'
        cd $'../w\xff'
        cow 'echo 1 >one'
        reviews 0 "applied" apply
        [ -e one ] || differs "lost"
        agree
}

@test "Uh: paths that diff prints are accepted, also where the one directory with changes is not the current one" {
        mkdir ../tool
        run hutch --workspace ro --cow ../tool -c 'cd ../tool; echo x >n; mkdir d; echo y >d/e'
        run hutch diff --name-only
        [ "$output" = "d"$'\n'"d/e"$'\n'"n" ] || differs "diff: $output"
        reviews 125 "not in a directory" apply .
        run hutch diff d/e
        [[ $output == *"+++ b/d/e"* && $output != *"b/n"* ]] || differs "diff PATH: $output"
        reviews 0 "1 applied" apply n
        [ -e ../tool/n ] && [ ! -e ../tool/d ] || differs "not n alone"
        reviews 0 "applied" apply d
        [ -e ../tool/d/e ] || differs "d"
        agree
}
