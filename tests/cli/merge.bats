# What apply does where host and box changed the same things: the host's side is never lost without a word.
load helper
load cow

@test "W2a: what the host puts into a directory that the box replaced is never deleted" {
        mkdir e
        echo old >e/old
        cow 'rm -rf e; mkdir e; echo n >e/n'
        echo host >e/new
        run hutch apply
        [ "$status" -eq 1 ] && [[ $output == *"e/new"* ]] || differs "first apply: $status $output"
        run hutch apply
        run hutch apply
        [ "$(cat e/new)" = host ] || differs "e/new is gone"
        [ "$(cat e/n)" = n ] && [ ! -e e/old ] || differs "the box's changes are not applied: $(ls e)"
        agree
}

@test "W2a: nor after a partial apply, a partial discard, a further run or a snapshot" {
        one() {
                rm -rf e f
                mkdir e f
                echo old >e/old
                cow 'rm -rf e; mkdir e; echo n >e/n; echo m >e/m; rm -rf f'
                echo host >e/new
                echo host >f/new
                eval "$1" >/dev/null 2>&1 || true
                hutch apply >/dev/null 2>&1 || true
                hutch apply >/dev/null 2>&1 || true
                [ "$(cat e/new f/new 2>&1)" = $'host\nhost' ] || differs "[$1] lost: $(ls e f)"
                hutch discard 2>/dev/null || true
        }
        one 'hutch apply e/n'
        one 'hutch discard e/m'
        one 'hutch --box "" -c "echo 1 >one"'
        one 'hutch --box "" -c "rm -rf e; mkdir e; echo again >e/n"'
        one 'hutch snapshot; hutch --box "" -c "echo 1 >one"'
        one 'hutch export "$T/x.tar.zst"; hutch discard; rm -f "$T/x"; hutch import "$T/x.tar.zst"'
        agree
}

@test "W2a: an older directory that the host moves into a deleted one stays" {
        mkdir -p d ../old/deep
        echo keep >../old/deep/file
        echo x >d/x
        sleep 0.05
        cow 'rm -rf d'
        mv ../old d/old
        run hutch apply
        [ "$status" -eq 1 ] || differs "no conflict: $output"
        run hutch apply
        [ "$(cat d/old/deep/file)" = keep ] || differs "deleted"
        agree
}

@test "a directory that the host removed comes back only for what the box has in it" {
        mkdir -p gone/sub used
        echo x >gone/sub/file
        echo x >gone/sub/other
        echo x >used/file
        cow 'rm gone/sub/file; rm used/file; echo new >used/new'
        rm -r gone used
        hutch apply >/dev/null || differs "apply: $?"
        [ ! -e gone ] || differs "came back: $(find gone)"
        [ "$(ls used)" = new ] || differs "the box's file is missing: $(ls used)"
        cow 'rm used/new'
        rm -r used
        hutch apply >/dev/null 2>&1 || [ ! -e used ] || differs "came back without anything in it"
        agree
}

@test "W2d: a touch on the host is no conflict, and neither is an edit of what the box only opened" {
        echo same >t
        echo same >u
        chmod 700 src
        cow 'echo box >t; exec 3>>u; echo x >src/new'
        touch t
        echo host >u
        chmod 750 src
        run hutch apply
        [ "$status" -eq 0 ] || differs "$output"
        [ "$(cat t u)" = $'box\nhost' ] || differs "$(cat t u)"
        [ "$(stat -c %a src)" = 750 ] || differs "the host's mode is lost: $(stat -c %a src)"
        agree
}

@test "W2e: files of the host that are hard links of each other are applied at once" {
        echo one >l1
        ln l1 l2
        ln l1 l3
        cow 'echo a >l1; echo b >l2; rm l3'
        run hutch apply
        [ "$status" -eq 0 ] && [ "$(cat l1 l2)" = $'a\nb' ] && [ ! -e l3 ] || differs "$status $output $(ls)"
        traceless
        agree
}

@test "W2e: names that begin with white space" {
        echo old >' lead'
        echo old >$'\tt'
        cow 'echo new >" lead"; echo new >lead; echo new >"$(printf "\tt")"; echo new >"  two"'
        echo host >'  two'
        run hutch apply
        [ "$status" -eq 1 ] && [[ $output == *"  two"* ]] || differs "$status $output"
        [ "$(cat ' lead' lead $'\tt' '  two')" = $'new\nnew\nnew\nhost' ] || differs "not applied"
        agree
}

@test "W2b: a link above the directory that was copy-on-write is not followed" {
        mkdir -p ../p/w ../q/w
        echo old >../p/w/f
        echo old >../q/w/f
        (cd ../p/w && hutch --workspace cow -c 'echo box >new') 2>/dev/null
        mv ../p ../away
        ln -s q ../p
        run hutch apply -d "$T/p/w"
        id=$(ls "$STATE")
        run hutch apply --box "$id"
        [ ! -e ../q/w/new ] || differs "applied through the link: $output"
        rm ../p
        mkdir -p ../p/w
        echo old >../p/w/f
        run hutch apply --box "$id"
        [ ! -e ../p/w/new ] || differs "applied to another directory: $output"
        hutch discard --box "$id"
        traceless
        agree
}

# The box of root does not own the file.
# bats test_tags=user
@test "W2c: access control lists of the host stay, and the group gets no more than before" {
        command -v setfacl >/dev/null || skip "needs setfacl: apt-get install acl"
        echo old >f
        chmod 600 f
        setfacl -m u:1:rw f 2>/dev/null || skip "needs a file system with access control lists"
        cow 'echo new >f; chmod 664 b.txt'
        before=$(getfacl -pc f)
        run hutch apply
        [ "$status" -eq 0 ] && [ "$(cat f)" = new ] || differs "$status $output"
        [ "$(getfacl -pc f)" = "$before" ] || differs "the list is another: $(getfacl -pc f)"
        agree
}

@test "W2d: a version control directory is applied whole or not at all" {
        need git
        export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init -q .
        git add .
        git commit -qm one
        hutch --workspace cow -c 'echo box >b.txt; git add b.txt && git -c user.name=a -c user.email=a@b commit -qm two' 2>"$T/said" || skip "git does not run in a box: $(cat "$T/said")"
        echo host >host.txt
        git add host.txt
        head=$(git rev-parse HEAD)
        run hutch apply
        [ "$status" -eq 1 ] || differs "no conflict: $output"
        [ "$(git rev-parse HEAD)" = "$head" ] || differs "half of the repository was applied: $output"
        git diff --cached --name-only | grep -qx host.txt || differs "the host's index is gone"
        hutch discard
        hutch --workspace cow -c 'echo box2 >b.txt; git add b.txt && git -c user.name=a -c user.email=a@b commit -qm two' 2>/dev/null
        run hutch apply
        [ "$status" -eq 0 ] && [ "$(git log -1 --format=%s)" = two ] && [ -z "$(git status --porcelain)" ] || differs "$status $output $(git status --porcelain)"
        git fsck >/dev/null 2>&1 || differs "git fsck fails"
        agree
}

@test "W2g: a sparse file of 15 TB stalls neither --track nor export" {
        truncate -s 15T sparse 2>/dev/null || skip "needs a file system with files of 15 TB"
        printf tail | dd of=sparse bs=1 seek=$((14 << 40)) conv=notrunc status=none
        timeout 20 "$HUTCH_BUILD/hutch" --track -c 'echo x >y' || differs "--track: $?"
        cow 'printf more | dd of=sparse bs=1 seek=4096 conv=notrunc status=none'
        timeout 20 "$HUTCH_BUILD/hutch" export "$T/x.tar.zst" >/dev/null || differs "export: $?"
        timeout 20 "$HUTCH_BUILD/hutch" apply >/dev/null || differs "apply: $?"
        [ "$(dd if=sparse bs=1 skip=4096 count=4 status=none)" = more ] || differs "not applied"
        agree
}
