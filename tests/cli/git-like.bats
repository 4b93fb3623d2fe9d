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
