# Findings about the walls of a single box (docs/security.md, W4): each failed in 0.1.0.
load helper.bash

more_setup() {
        echo private-word >secret
        echo old >target
        ln -s target link
}

@test "W4a: rules inside a writable directory are refused with --allow-nested, where a box could undo them" {
        for options in "--workspace rw --hide secret" "--workspace rw --ro target" "--workspace cow --hide secret"; do
                # shellcheck disable=SC2086 # words on purpose
                run hutch --allow-nested $options -- true
                [ "$status" -eq 125 ] || differs "$options: status $status"
                [[ $output == *"with --allow-nested a box can undo it"* ]] || differs "$options: $output"
        done
        hutch --allow-nested --workspace rw --hide secret --allow-degraded --json -- true | grep -q '"filesystem":"degraded"' ||
                differs "accepted, but not reported as degraded"
        # What a box cannot rename holds, and a read-only rule of a layer concerns the layer alone.
        hutch --allow-nested --workspace ro --hide secret --json -- true | grep -q '"filesystem":"enforced"' || differs "a read-only workspace"
        hutch --allow-nested --workspace cow --ro target --json -- true | grep -q '"filesystem":"enforced"' || differs "a copy-on-write workspace"
        agree
}

# Another process of the box takes them out of sight while init goes on.
@test "nothing runs in a box while the host's mounts are in its mount namespace" {
        seen() { # seen ARG…: the mounts that the command sees
                rm -f trace
                strace -f -o trace -e trace=umount2,execve "$@" "$HUTCH_BUILD/hutch" run --isolation namespace -- /bin/cat /proc/self/mountinfo
        }
        seen >plain
        [ "$(cut -d' ' -f5 plain | grep -c '^/$')" = 1 ]
        seen -e inject=umount2:delay_enter=300ms >slow
        grep -q 'umount2.*= 0 (DELAYED)' trace
        [ "$(cut -d' ' -f5 plain)" = "$(cut -d' ' -f5 slow)" ]
        run seen -e inject=umount2:error=EPERM
        [ "$status" = 125 ]
        [[ $output == *"cannot leave the host's root: Operation not permitted"* ]]
}

# In a namespace of its own a box detaches the old root; then nothing keeps the mount points below from being renamed.
rename_in_nested_namespace() {
        cat <<'EOF'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
libc.unshare(0x10000000 | 0x20000)
for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
    open("/proc/self/" + name, "w").write(text)
here = os.open(".", os.O_RDONLY)
os.mkdir("/tmp/root")
libc.mount(b"none", b"/tmp/root", b"tmpfs", 0, None)
os.mkdir("/tmp/root/old")
libc.syscall(155, b"/tmp/root", b"/tmp/root/old")  # pivot_root
libc.umount2(b"/old", 2)
os.rename("dir", "gone", src_dir_fd=here, dst_dir_fd=here)
os.mkdir("dir", dir_fd=here)
os.write(os.open("dir/file", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here), b"evil")
EOF
}

@test "W4a: a read-only file whose directory a nested box renames" {
        mkdir dir
        echo old >dir/file
        rename_in_nested_namespace >attack.py
        as=host
        ! am_root || as=user # the kernel does not let uid 0 of a box be mapped once more
        run hutch --as $as --allow-nested --workspace rw -- python3 attack.py
        [ "$(cat dir/file)" = evil ] || differs "the control changes nothing: $output"
        rm -rf dir
        mv gone dir
        run hutch --as $as --allow-nested --workspace rw --ro dir/file -- python3 attack.py
        [ "$status" -eq 125 ] || differs "status $status"
        [ "$(cat dir/file)" = old ] || differs "it was replaced: $(cat dir/file)"
        agree
}

@test "W4b: a path that is hidden as the box writes it is hidden at both places of the workspace" {
        run hutch --hide "/workspace/ws/secret" -c "cat '$T/ws/secret' /workspace/ws/secret; :"
        [[ $output != *private-word* ]] || differs "$output"
        run hutch -c 'cat secret'
        [[ $output == *private-word* ]] || differs "the control: $output"
        run hutch --as user --hide /workspace/secret -c 'cat /workspace/secret; :'
        [[ $output != *private-word* ]] || differs "as user: $output"
        agree
}

@test "W4c: a read-only link in a writable directory could be replaced, and is refused" {
        run hutch --ro link -c 'rm link; echo evil >link'
        [ "$status" -eq 125 ] || differs "status $status: $output"
        [[ $output == *"a symbolic link in a writable directory"*"name its target"* ]] || differs "$output"
        [ "$(cat link)" = old ] || differs "it was replaced: $(cat link)"
        hutch --ro link --allow-degraded --json -- true | grep -q '"filesystem":"degraded"' || differs "accepted, but not reported"
        # The target itself, and a link in a directory that the box cannot write to.
        run hutch --ro target -c 'rm target; echo evil >target'
        [ "$(cat target)" = old ] || differs "the target was replaced"
        hutch --workspace ro --ro link -- true || differs "in a read-only workspace"
        agree
}

@test "U k: what a later rule attaches inside a hidden directory is there, and nothing else is" {
        mkdir -p private/rw private/ro
        echo word >private/key
        echo other >private/other
        echo more >private/rw/file
        echo less >private/ro/file
        for options in "--workspace rw" "--workspace ro" "--workspace cow --ephemeral" "--workspace rw --isolation bwrap"; do
                [[ $options != *bwrap ]] || ! am_root || continue # bwrap needs an ordinary user
                # shellcheck disable=SC2086 # words on purpose
                run hutch $options --hide private --ro private/key --rw private/rw --ro private/ro -c \
                        'find private | sort; cat private/key; echo out >private/rw/new; for f in private/new private/key private/ro/new; do
                        echo x >$f && echo DONE; done; mkdir private/made && echo DONE; chmod 777 private && echo DONE; mv private gone && echo DONE; :'
                [[ $output == "private"$'\n'"private/key"$'\n'"private/ro"$'\n'"private/ro/file"$'\n'"private/rw"$'\n'"private/rw/file"$'\n'word* ]] ||
                        differs "$options: $output"
                [[ $output != *DONE* ]] || differs "$options: $output"
                [ "$(cat private/rw/new)" = out ] || differs "$options: the writable directory"
                [ "$(cat private/key)" = word ] || differs "$options: the file was changed"
                rm -f private/rw/new
        done
        # A directory of the box's own, and a second rule that hides.
        run hutch --hide private --hide private/key --tmpfs private/own -c 'echo x >private/own/x; find private | sort'
        [ "$output" = "private"$'\n'"private/own"$'\n'"private/own/x" ] || differs "$output"
        # The earlier rule does not win where it comes second.
        run hutch --ro private/key --hide private -c 'ls -A private'
        [ -z "$output" ] || differs "the other order: $output"
        agree
}
