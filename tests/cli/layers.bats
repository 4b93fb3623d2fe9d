# The stack of layers: what is mounted inside of a copy-on-write folder, and where layers cannot be kept.
load helper

more_setup() {
        unset XDG_STATE_HOME
        mkdir -p tree/in/sub tree/other "$T/state"
        echo top >tree/file
        echo old >tree/in/sub/under
}

# Runs the text in namespaces of its own, in which it may mount.
mounting() { unshare ${1:+$1} -m --propagation private sh -c "$2"; }
ours() { am_root && echo "" || echo -r; }

@test "a state folder that can hold no layer: in memory, and told" {
        # An overlay over an overlay can hold none.
        mkdir "$T/l" "$T/u" "$T/k"
        run mounting "$(ours)" "mount -t overlay -o lowerdir=$T/l,upperdir=$T/u,workdir=$T/k,userxattr o $T/state || exit 99
                XDG_STATE_HOME=$T/state $HUTCH_BUILD/hutch -d tree --workspace cow --json -c 'echo new >file; cat file'
                cat tree/file; find $T/state -name upper"
        [ "$status" -ne 99 ] || skip "needs overlayfs in a user namespace"
        if ! memory_layers; then
                [[ $output == *"in memory: that needs Linux 6.6, and the file system of the state folder cannot hold one"* ]] || differs "$output"
                [ "$(cat tree/file)" = top ] || differs "the host's file: $(cat tree/file)"
                agree
                return
        fi
        [ "$status" -eq 0 ] || differs "status $status: $output"
        [ "$(field "${lines[0]}" .stdout)" = new ] || differs "not run: $output"
        [[ $(field "${lines[0]}" '.notices[]') == *"$T/ws/tree is kept in memory and gone with the box"* ]] || differs "not told: $output"
        [ "${lines[1]}" = top ] || differs "the host's file: ${lines[1]}"
        [ "${#lines[@]}" -eq 2 ] || differs "left behind: $output"
        agree
}

@test "a file system mounted inside of a copy-on-write folder has a layer of its own" {
        am_root || return 0 # who cannot mount what this is about
        ! kernel_before 6.3 || return 0 # a tmpfs has no id-mapped mounts: it is read-only as in the next test
        run mounting "" "mount -t tmpfs t tree/in/sub && echo in >tree/in/sub/file && cd tree || exit 99
                $HUTCH_BUILD/hutch --workspace cow -c 'ls in/sub; cat in/sub/file; echo more >>in/sub/file; echo x >in/sub/new; rm file' 2>&1
                cat file in/sub/file; ls in/sub
                $HUTCH_BUILD/hutch diff --name-only; $HUTCH_BUILD/hutch apply; cat in/sub/file in/sub/new; ls"
        [ "$status" -eq 0 ] || differs "status $status"
        [[ $output == $'file\nin\nhutch: 3 changes kept'*$'\ntop\nin\nfile\n'*"3 applied"*$'\nin\nmore\nx\nin\nother' ]] || differs "$output"
        agree
}

@test "what cannot be a layer inside of a copy-on-write folder is read-only, and told" {
        am_root || return 0 # who cannot mount what this is about
        # proc has no id-mapped mounts
        run mounting "" "mount -t proc p tree/in/sub && cd tree || exit 99
                $HUTCH_BUILD/hutch --workspace cow --json -c 'echo x >file; cat file; cat in/sub/loadavg >/dev/null && echo read; echo x >in/sub/new || echo refused'"
        [ "$status" -eq 0 ] || differs "status $status"
        [ "$(field "${lines[0]}" .stdout)" = $'x\nread\nrefused' ] || differs "$output"
        [[ $(field "${lines[0]}" '.notices[]') == *"tree/in/sub is read-only"* ]] || differs "$output"
        agree
}
