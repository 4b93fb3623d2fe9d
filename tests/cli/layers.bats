# The stack of layers: what is mounted inside of a copy-on-write directory, and where layers cannot be kept.
load helper

more_setup() {
        unset XDG_STATE_HOME
        mkdir -p tree/in/sub tree/other "$T/state"
        echo top >tree/file
        echo old >tree/in/sub/under
}

# Runs the text in namespaces of its own, in which it may mount.
mounting() { unshare ${1:+$1} -m --propagation private sh -c "$(making_fresh)
$2"; }
# For what runs there, `fresh PATH`: an empty file system, or another directory of the disk where root's boxes could not have layers of a tmpfs.
making_fresh() {
        if am_root && kernel_before 6.3; then
                echo "fresh() { mount --bind \"\$(mktemp -d $T/fresh.XXXXXX)\" \"\$1\" && chmod 755 \"\$1\"; }"
        else
                echo 'fresh() { mount -t tmpfs -o mode=755 t "$1"; }'
        fi
}
ours() { am_root && echo "" || echo -r; }

# No attributes, no layer: an overlay would be mounted, and fail at the first directory that is removed in it.
@test "a state directory without attributes: in memory, told, and nothing is said to be kept" {
        am_root || return 0 # who cannot mount what this is about
        memory_layers || return 0 # as in the next test
        local user="setpriv --reuid 12345 --regid 12345 --clear-groups"
        local memory="hutch: warning: changes in copy-on-write directories are kept in memory and lost with the box: the file system of the state directory cannot hold layers (Operation not supported)"
        local in="the session keeps its files in memory: there is nothing to"
        mkdir tree/in/full; : >tree/in/full/a; chmod 755 "$T" "$T/ws" "$T/ws/tree"; chown -R 12345:12345 "$T/ws" "$HOME"
        for who in "" "$user"; do
                run mounting "" "mount -t ramfs r $T/state && chmod 777 $T/state || exit 99
                        export XDG_STATE_HOME=$T/state; hutch=$HUTCH_BUILD/hutch
                        $who \$hutch -d tree --workspace cow -c 'rm -r in/full && mkdir in/full && ls in/full && echo new >file && cat file' 2>&1
                        $who \$hutch -d tree diff 2>&1; $who \$hutch boxes; cat tree/file; find $T/state -name upper; [ '$who' ] || exit 0
                        $who \$hutch session start x -d tree 2>&1; $who \$hutch session run x -c 'echo s >file; echo t >/tmp/t' 2>&1
                        $who \$hutch snapshot --session x 2>&1; $who \$hutch fork --session x y 2>&1; $who \$hutch session run x -c 'cat file /tmp/t'; $who \$hutch session stop x; cat tree/file"
                [ "$status" -eq 0 ] || differs "${who:-root}: status $status"
                [[ $output == $'new\n'"$memory"$'\nhutch: no box has changes for '*$'\nno boxes with changes\ntop'* ]] || differs "${who:-root}: $output"
                [[ -z $who || $output == *$'top\n'"$memory"$'\nstarted session \'x\''*"$in snapshot"$'\n'*"$in fork"$'\ns\nt\ntop' ]] || differs "${who:-root}: $output"
        done
        agree
}

@test "a state directory that can hold no layer: in memory, and told" {
        # An overlay over an overlay can hold none.
        mkdir "$T/l" "$T/u" "$T/k"
        run mounting "$(ours)" "mount -t overlay -o lowerdir=$T/l,upperdir=$T/u,workdir=$T/k,userxattr o $T/state || exit 99
                XDG_STATE_HOME=$T/state $HUTCH_BUILD/hutch -d tree --workspace cow --json -c 'echo new >file; cat file'
                cat tree/file; find $T/state -name upper"
        [ "$status" -ne 99 ] || skip "needs overlayfs in a user namespace"
        if ! memory_layers; then
                [[ $output == *"in memory: that needs Linux 6.6; without --ephemeral it is kept in the state directory"* ]] || differs "$output"
                [ "$(cat tree/file)" = top ] || differs "the host's file: $(cat tree/file)"
                agree
                return
        fi
        [ "$status" -eq 0 ] || differs "status $status: $output"
        [ "$(field "${lines[0]}" .stdout)" = new ] || differs "not run: $output"
        [[ $(field "${lines[0]}" '.notices[].text') == *"changes in copy-on-write directories are kept in memory and lost with the box"* ]] || differs "not told: $output"
        [ "${lines[1]}" = top ] || differs "the host's file: ${lines[1]}"
        [ "${#lines[@]}" -eq 2 ] || differs "left behind: $output"
        agree
}

# Root has a copy of a directory without its mounts; everybody else has its parts, each under a layer. Both show the same.
@test "a file system mounted inside of a copy-on-write directory has a layer of its own" {
        run mounting "$(ours)" "fresh tree/in/sub && echo in >tree/in/sub/file && cd tree || exit 99
                $HUTCH_BUILD/hutch --workspace cow -c 'ls in/sub; cat in/sub/file; echo more >>in/sub/file; echo x >in/sub/new; rm file; echo o >other/o; mkdir made; echo m >made/m' 2>&1
                cat file in/sub/file; ls in/sub other
                $HUTCH_BUILD/hutch diff --name-only; $HUTCH_BUILD/hutch diff | grep ^diff; $HUTCH_BUILD/hutch apply; cat in/sub/file in/sub/new other/o made/m; ls; $HUTCH_BUILD/hutch boxes"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [ "$status" -eq 0 ] || differs "status $status"
        local names=$'file\nin/sub/file\nin/sub/new\nmade\nmade/m\nother/o'
        local headers=$'diff --git a/file b/file\ndiff --git a/in/sub/file b/in/sub/file\ndiff --git a/in/sub/new b/in/sub/new\ndiff --git a/made/m b/made/m\ndiff --git a/other/o b/other/o'
        [[ $output == $'file\nin\nhutch: kept 6 changes'*$'\ntop\nin\nin/sub:\nfile\n\nother:\n'"$names"$'\n'"$headers"$'\nbox '*': 6 changes by '*$' ago\n6 applied\nin\nmore\nx\no\nm\nin\nmade\nother\nno boxes with changes' ]] || differs "$output"
        agree
}

@test "W2f: an edit of the host beside a mount, made while the box runs, is not lost to the box's change of mode" {
        mkfifo "$T/to" "$T/from"
        run mounting "$(ours)" "fresh tree/in/sub && cd tree || exit 99
                $HUTCH_BUILD/hutch --workspace cow -c 'echo up; read -r go; chmod 600 file' <$T/to >$T/from 2>/dev/null & exec 3>$T/to 4<$T/from
                read -r up <&4; echo host >file; echo go >&3; wait
                $HUTCH_BUILD/hutch apply 2>&1; cat file"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [ "${lines[-1]}" = host ] || differs "$output"
        agree
}

@test "what cannot be a layer inside of a copy-on-write directory is read-only, and told" {
        am_root || return 0 # who cannot mount what this is about
        # proc has no id-mapped mounts
        run mounting "" "mount -t proc p tree/in/sub && cd tree || exit 99
                $HUTCH_BUILD/hutch --workspace cow --json -c 'echo x >file; cat file; cat in/sub/loadavg >/dev/null && echo read; echo x >in/sub/new || echo refused'"
        [ "$status" -eq 0 ] || differs "status $status"
        [ "$(field "${lines[0]}" .stdout)" = $'x\nread\nrefused' ] || differs "$output"
        [[ $(field "${lines[0]}" '.notices[].text') == *"tree/in/sub is read-only"* ]] || differs "$output"
        agree
}

@test "a directory that can be no lower, and one with too much beside its mounts: refused" {
        ! am_root || return 0 # who gets another answer, or needs no parts
        mkdir "$T"/{a,b,c,d}; for i in a b c d; do mkdir "$T/$i/u" "$T/$i/k" "$T/$i/m"; done; mkdir -p many/sub; (cd many && seq 250 | xargs mkdir)
        run mounting -r "mount -t overlay -o lowerdir=$T/ws/tree,upperdir=$T/a/u,workdir=$T/a/k,userxattr o $T/a/m && mount -t overlay -o lowerdir=$T/a/m,upperdir=$T/b/u,workdir=$T/b/k,userxattr o $T/b/m || exit 99
                $HUTCH_BUILD/hutch -d $T/b/m --workspace cow touch file; echo \$?; cat $T/b/m/file; fresh many/sub; $HUTCH_BUILD/hutch -d many --workspace cow true; echo \$?; $HUTCH_BUILD/hutch --cow many true"
        [ "$status" -ne 99 ] || skip "needs overlayfs in a user namespace"
        [ "${lines[0]}" = "hutch: cannot attach $T/b/m copy-on-write: its file system cannot be the lower layer of an overlay, or another was just mounted inside" ] || differs "$output"
        [ "${lines[1]} ${lines[2]}" = "125 top" ] || differs "$output"
        [ "${lines[3]}" = "hutch: workspace $T/ws/many cannot be copy-on-write: other file systems are mounted inside, and too many directories (251) would need separate layers" ] || differs "$output"
        [[ ${lines[4]} == 125 && ${lines[5]} == "hutch: --cow $T/ws/many cannot be copy-on-write: "* ]] || differs "$output"
        [ "$(find "$HOME/.local/state/hutch/boxes" -mindepth 1 | wc -l)" -eq 0 ] || differs "left behind: $(find "$HOME/.local/state/hutch/boxes")"
        agree
}

# A mount in a mount, a read-only one, one on a file, links, a FIFO, a file that cannot be read: as they are on the host.
@test "all kinds of things beside and inside of mounts" {
        local inside='find . -mindepth 1 ! -type p -printf "%y %p %l %m\n" | LC_ALL=C sort; cat file in/sub/file in/sub/deep/x over; [ -p pipe ] && echo pipe'
        mkfifo tree/pipe; ln -s in/sub/file tree/link; ln -s nowhere tree/in/dangling; echo over >tree/over; echo beneath >tree/in/sub/under
        echo '#!/bin/sh' >tree/prog; chmod 750 tree/prog; mkdir -m 700 tree/closed; echo odd >"tree/$(printf 'a\nb\377')"; : >tree/in/empty
        run mounting "$(ours)" "cd tree && fresh in/sub && echo in >in/sub/file && mkdir in/sub/deep && fresh in/sub/deep &&
                echo x >in/sub/deep/x && mount -o remount,bind,ro in/sub/deep && mount --bind file over || exit 99
                ($inside) >$T/host; $HUTCH_BUILD/hutch --workspace cow -c '$inside' >$T/box; echo \$?
                $HUTCH_BUILD/hutch --workspace cow -c 'echo y >in/sub/deep/y; echo z >>in/sub/file; cat in/sub/deep/y; echo w >over' 2>&1
                $HUTCH_BUILD/hutch diff --name-only; ls in/sub/deep; cat over; $HUTCH_BUILD/hutch discard; cd ..; $HUTCH_BUILD/hutch -d tree --workspace cow true"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        cmp "$T/host" "$T/box" || differs "$(diff "$T/host" "$T/box")"
        [ "${lines[0]}" = 0 ] || differs "status: $output"
        [[ $output == *"Read-only file system"*$'in/sub/deep/y\nin/sub/file\nx\ntop' ]] || differs "$output"
        grep -q "^f ./in/sub/deep/x" "$T/box" || differs "not seen: $(cat "$T/box")"
        agree
}

# An ordinary user's directories are mounts in the box: what that forbids is told.
@test "directories beside mounts stay where they are, and what cannot be read stays closed" {
        ! am_root || return 0 # who has no need to split anything
        echo a >tree/other/a
        run mounting -r "cd tree && fresh in/sub || exit 99
                $HUTCH_BUILD/hutch --workspace cow --json -c 'rmdir other; mv other else; mv other/a in/a && cat in/a; mkdir new && mv new newer && rmdir newer && echo moved'
                $HUTCH_BUILD/hutch diff --name-only; $HUTCH_BUILD/hutch discard; mount --bind file /etc/hostname || exit 99
                $HUTCH_BUILD/hutch $(in_memory) --cow /etc:/mnt/e -c 'stat -c \"%a %s\" /mnt/e/shadow; cat /mnt/e/shadow /mnt/e/hostname; echo x >/mnt/e/shadow; chmod 644 /mnt/e/shadow; rm -f /mnt/e/shadow; echo x >/mnt/e/new; ls /mnt/e/new' 2>&1
                stat -c '%a %s' /etc/shadow"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [ "$(field "${lines[0]}" .stdout)" = $'a\nmoved' ] || differs "$output"
        [ "$(field "${lines[0]}" .stderr | grep -c 'resource busy')" -ge 2 ] || differs "$output"
        [[ $(field "${lines[0]}" '.notices[].text') == *"/tree has other file systems mounted inside"*"cannot be renamed or removed"* ]] || differs "not told: $output"
        [ "${lines[1]} ${lines[2]}" = "in/a other/a" ] || differs "changes: $output"
        [ "${lines[3]}" = "${lines[-1]}" ] || differs "not as on the host: $output"
        [[ $output == *"/mnt/e/shadow: Permission denied"*$'\ntop\n'*"Read-only"*"Read-only"*"busy"*$'\n/mnt/e/new\n'* ]] || differs "$output"
        agree
}

# Behind a socket in a layer there is nobody; one that is mounted in the directory is not to be seen at all.
@test "sockets of the host beside mounts and mounted ones lead nowhere" {
        command -v python3 >/dev/null || skip "needs python3"
        cat >"$T/connect" <<-'END'
		import socket, sys
		for path in sys.argv[1:]:
		    try:
		        socket.socket(socket.AF_UNIX).connect(path)
		        print("connected", end=" ")
		    except OSError as e:
		        print("refused", end=" ")
		print()
	END
        cat >"$T/listen" <<-'END'
		import socket, sys, time
		sockets = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
		for s, path in zip(sockets, sys.argv[1:]):
		    s.bind(path)
		    s.listen()
		time.sleep(60)
	END
        : >tree/in/place
        run mounting "$(ours)" "cd tree && fresh in/sub || exit 99
                python3 $T/listen s in/sub/s ../place & until [ -S ../place ]; do sleep 0.05; done; sleep 0.1; mount --bind ../place in/place || exit 99
                python3 $T/connect s in/sub/s in/place; $HUTCH_BUILD/hutch --workspace cow --json python3 -c '$(cat "$T/connect")' s in/sub/s in/place; kill \$!"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [ "${lines[0]}" = "connected connected connected " ] || differs "the control: $output"
        [ "$(field "${lines[1]}" .stdout)" = "refused refused refused " ] || differs "$output"
        [[ ${lines[1]} == *"tree/in/place is hidden"* ]] || differs "not told: $output"
        agree
}

@test "protected names and hidden paths inside of mounts" {
        mkdir -p tree/.git/{hooks,objects,refs} tree/tools tree/.claude/x tree/bare/{objects,refs,hooks}; echo s >tree/in/sub/secret
        echo "ref: refs/heads/main" | tee tree/bare/HEAD >tree/.git/HEAD; printf '[core]\n\thooksPath = tools\n' >tree/.git/config
        run mounting "$(ours)" "cd tree && fresh in/sub && fresh .git/hooks && fresh .claude/x && fresh bare/objects && echo s >in/sub/secret || exit 99
                $HUTCH_BUILD/hutch --workspace cow --hide in/sub/secret -c 'cat in/sub/secret; echo x >in/sub/secret; for f in .git/hooks/pre-commit tools/pre-push .claude/x/settings.json bare/hooks/post-update bare/config; do echo evil >\$f; done
                        ln -s ../../.git/hooks in/sub/h; echo fine >in/sub/fine' 2>&1
                $HUTCH_BUILD/hutch apply 2>&1; cat in/sub/secret in/sub/fine; find . -type f -exec grep -l evil {} +; find . -type l; $HUTCH_BUILD/hutch diff --name-only"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [[ $output == *"in/sub/secret: Permission denied"*"1 applied, 6 not"*$'\ns\nfine\n.claude/x/settings.json\n.git/hooks/pre-commit\nbare/config\nbare/hooks/post-update\nin/sub/h\ntools/pre-push' ]] || differs "$output"
        agree
}

@test "a hidden directory with mounts inside, and one that may not be entered" {
        mkdir -p tree/in/beside tree/shut/sub; echo s | tee tree/in/beside/secret tree/shut/secret >tree/in/secret
        run mounting "$(ours)" "cd tree && fresh in/sub && fresh shut/sub && echo s >in/sub/secret || exit 99
                $HUTCH_BUILD/hutch --workspace cow --hide in -c 'ls -A in $T/ws/tree/in; grep -rs s in; echo x >new' 2>&1; $HUTCH_BUILD/hutch diff --name-only; $HUTCH_BUILD/hutch discard
                umount in/sub; chmod 0 shut; $HUTCH_BUILD/hutch --workspace cow -c 'echo x >new' 2>/dev/null; echo \$?; $HUTCH_BUILD/hutch diff --name-only; $HUTCH_BUILD/hutch discard; echo \$?; ls $HOME/.local/state/hutch/boxes"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [[ $output == *$'\nnew\n0\nnew\n0' && $output != *secret* ]] || differs "$output"
        chmod 755 tree/shut
        agree
}

@test "rules for directories with mounts inside, and for parts of them" {
        local rules="--hide in|ls in
--hide in/sub|ls in in/sub
--hide other|ls other
--hide file|cat file
--tmpfs in|ls in
--ro in|ls in/sub; echo x >in/sub/x; echo x >in/x
--rw other|echo x >other/x; ls other
--cow other|echo x >other/y; ls other"
        run mounting "$(ours)" "cd tree && fresh in/sub && echo m >in/sub/m || exit 99
                while IFS='|' read -r rule command; do $HUTCH_BUILD/hutch --workspace cow $(in_memory) \$rule -c \"\$command\" </dev/null 2>&1 | sed '/ kept in box /d; s/.*: //'; echo \"-- \$rule\"; done <<-END
$rules
END
                find . -type f | sort | tr '\n' ' '"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        local want=$'-- --hide in\nin:\nsub\n\nin/sub:\n-- --hide in/sub\n-- --hide other\nPermission denied\n-- --hide file\n-- --tmpfs in\nm\nRead-only file system\nRead-only file system\n-- --ro in\nx\n-- --rw other\nx\ny\n-- --cow other\n./file ./in/sub/m ./other/x '
        [ "$output" = "$want" ] || differs "$output"
        agree
}

@test "paths choose changes in whatever layer they are" {
        run mounting "$(ours)" "cd tree && fresh in/sub || exit 99
                $HUTCH_BUILD/hutch --workspace cow -c 'for f in file in/sub/a in/sub/b in/c other/d; do echo x >\$f; done' 2>/dev/null
                $HUTCH_BUILD/hutch diff --name-only in; $HUTCH_BUILD/hutch apply in/sub/a other | tail -n 1; $HUTCH_BUILD/hutch discard in/sub; $HUTCH_BUILD/hutch discard in/nothing 2>&1
                $HUTCH_BUILD/hutch diff --name-only; cd in && $HUTCH_BUILD/hutch apply --box \"\$(ls $HOME/.local/state/hutch/boxes)\" . | tail -n 1 && cd .. && $HUTCH_BUILD/hutch diff --name-only; cat in/c; ls in/sub"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [ "$output" = $'in/c\nin/sub/a\nin/sub/b\n2 applied\nhutch: discard: in/nothing: no change there\nfile\nin/c\n1 applied\nfile\nx\na' ] || differs "$output"
        agree
}

@test "other mounts than the box was begun with: refused while it has changes there" {
        run mounting "$(ours)" "cd tree || exit 99
                $HUTCH_BUILD/hutch --workspace cow -c 'echo x >in/sub/a' 2>/dev/null; fresh in/sub || exit 99
                $HUTCH_BUILD/hutch run --box '' cat in/sub/a 2>&1; umount in/sub; $HUTCH_BUILD/hutch run --box '' cat in/sub/a 2>/dev/null; $HUTCH_BUILD/hutch discard
                fresh in/sub; $HUTCH_BUILD/hutch --workspace cow -c 'echo y >in/sub/a; echo z >file' 2>/dev/null; $HUTCH_BUILD/hutch run --box '' cat in/sub/a 2>/dev/null
                umount in/sub; $HUTCH_BUILD/hutch run --box '' cat in/sub/a 2>&1; $HUTCH_BUILD/hutch discard in/sub/a; $HUTCH_BUILD/hutch run --box '' cat file 2>/dev/null"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [[ $output == "hutch: box "*" was started with other mounts or --cow paths and has changes in $T/ws/tree/in"*"that it would not see now: apply or discard them first"$'\nx\ny\nhutch: box '*"$T/ws/tree/in/sub that it"*$'first\nz' ]] || differs "$output"
        agree
}

@test "snapshots, forks and archives of a directory with mounts inside" {
        run mounting "$(ours)" "cd tree && fresh in/sub || exit 99
                hutch=$HUTCH_BUILD/hutch; \$hutch --workspace cow -c 'echo 1 >in/sub/a; echo 1 >other/a; echo 1 >file' 2>/dev/null; box=\$(\$hutch boxes --json | jq -r '.[0].id'); \$hutch snapshot one >/dev/null
                \$hutch run --box '' -c 'rm -r in/sub/a other/* file; echo 2 >in/b' 2>/dev/null; \$hutch diff --name-only | tr '\n' ' '; \$hutch restore one >/dev/null; \$hutch diff --name-only | tr '\n' ' '
                \$hutch fork >/dev/null; \$hutch run --box '' -c 'echo 3 >in/sub/a' 2>/dev/null; \$hutch export $T/x.tar.zst >/dev/null; \$hutch discard; \$hutch diff --box \$box | grep ^+[0-9] | tr '\n' ' '; \$hutch discard --box \$box
                \$hutch import --map \$PWD/in/sub=\$PWD/in/sub,\$PWD/other=\$PWD/other $T/x.tar.zst >/dev/null; \$hutch diff | grep ^+[0-9] | tr '\n' ' '; \$hutch apply 2>&1 | sed 1d; cat in/sub/a"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [ "$output" = $'file in/b file in/sub/a other/a +1 +1 +1 +1 +3 +1 3 applied\n3' ] || differs "$output"
        agree
}

# One group is mapped, and overlayfs gives a copy the group that the file had.
@test "files of another group of the caller's: read, not changed, and told" {
        am_root || return 0 # who cannot give files to another group
        chmod 755 "$T"; mkdir tree/own; echo own >tree/own/file; chown -R 12345:12346 "$T/ws"; chgrp -R 12345 tree/own; chmod -R g+w tree; chown -R 12345 "$HOME" "$T/state"
        export XDG_STATE_HOME=$T/state
        run setpriv --reuid 12345 --regid 12345 --groups 12346 "$HUTCH_BUILD/hutch" -d tree --workspace cow --json -c 'cat file; echo x >>file; echo x >in/new; rm in/sub/under; echo y >>own/file; echo new >made; cat own/file made'
        [ "$(field "$output" .stdout)" = $'top\nown\ny\nnew' ] || differs "$output"
        [ "$(field "$output" .stderr | grep -c "Value too large for defined data type")" -eq 3 ] || differs "$output"
        [[ $(field "$output" '.notices[].text') == *"/tree belongs to group 12346, which the box does not have"* ]] || differs "not told: $output"
        [ "$(cat tree/file tree/own/file)" = $'top\nown' ] || differs "the host's"
        run setpriv --reuid 12345 --regid 12345 --groups 12346 "$HUTCH_BUILD/hutch" -d tree diff --name-only
        [ "$output" = $'made\nown/file' ] || differs "$output"
        run setpriv --reuid 12345 --regid 12346 --clear-groups "$HUTCH_BUILD/hutch" -d tree --workspace cow $(in_memory) -c 'echo x >>file; echo x >in/new; rm in/sub/under; tail -n 1 file'
        [ "${lines[0]}" = x ] || differs "as the first group: $output"
        agree
}

@test "the files right in a directory with mounts are copied: not without bound" {
        ! am_root || return 0 # who copies nothing
        truncate -s 300M tree/large
        run mounting -r "cd tree && fresh in/sub || exit 99
                $HUTCH_BUILD/hutch --workspace cow true; echo \$?; truncate -s 20M large; $HUTCH_BUILD/hutch --workspace cow --json stat -c %s large"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [ "${lines[0]}" = "hutch: cannot attach $T/ws/tree copy-on-write: other file systems are mounted inside, so its own files would have to be copied, and they are larger than 256M" ] || differs "$output"
        [ "${lines[1]}" = 125 ] || differs "$output"
        [ "$(field "${lines[2]}" .stdout)" = 20971520 ] || differs "$output"
        [[ $(field "${lines[2]}" '.notices[].text') == *"20 MiB of files in $T/ws/tree were copied into memory"* ]] || differs "$output"
        agree
}

@test "--cow with mounts below it, and --cow / with mounts in the system's directories" {
        mkdir -p "$T/data/m"; echo d >"$T/data/file"
        run mounting "$(ours)" "fresh $T/data/m && echo m >$T/data/m/file && mount --bind $T/data/file /etc/hostname && mount --bind $T/data /usr/local/share || exit 99
                $HUTCH_BUILD/hutch --cow $T/data -c 'echo x >>$T/data/m/file; cat $T/data/m/file $T/data/file; echo y >$T/data/file' 2>/dev/null; cat $T/data/file $T/data/m/file; $HUTCH_BUILD/hutch diff --name-only; $HUTCH_BUILD/hutch discard
                $HUTCH_BUILD/hutch --cow / -c 'echo new >/etc/new && cat /etc/new; cat /usr/local/share/file; echo z >/usr/local/share/m/z && cat /usr/local/share/m/z; echo u >/usr/local/lib/u && cat /usr/local/lib/u; rm /usr/bin/env; ls /usr/bin/env' 2>&1
                ls $T/data/m; ls /etc/new /usr/local/lib/u 2>&1"
        [ "$status" -ne 99 ] || skip "needs mounts in a user namespace"
        [[ $output == $'m\nx\nd\nd\nm\nfile\nm/file\nnew\nd\nz\nu\nls: cannot access '*$'\nfile\nls: cannot access '*$'\nls: cannot access '* ]] || differs "$output"
        agree
}
