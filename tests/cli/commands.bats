#!/usr/bin/env bats
# commands.allow and commands.deny: every way to execute a denied program, each with its control without the rule.
load helper

TRICKS='path | /usr/bin/id
copy | cp /usr/bin/id $TMPDIR/copy && $TMPDIR/copy
copied by the shell | cat </usr/bin/id >$TMPDIR/cat && chmod +x $TMPDIR/cat && $TMPDIR/cat
symbolic link | ln -s /usr/bin/id $TMPDIR/link && $TMPDIR/link
interpreter | printf "#!/usr/bin/id\n" >$TMPDIR/script && chmod +x $TMPDIR/script && $TMPDIR/script 2>&1 |sed "s/.*no such user/uid=/"
other name | bash -c "exec -a sh /usr/bin/id"
loader | "$LOADER" /usr/bin/id
loader on a copy | cp /usr/bin/id $TMPDIR/by && "$LOADER" $TMPDIR/by
file without a name | python3 -c "import os; f = os.memfd_create(\"x\"); os.write(f, open(\"/usr/bin/id\", \"rb\").read()); os.execve(f, [\"id\"], {})"
file without a name, by its path | python3 -c "import os; f = os.memfd_create(\"x\", 0); os.write(f, open(\"/usr/bin/id\", \"rb\").read()); os.execv(\"/proc/self/fd/%d\" % f, [\"id\"])"
shared memory | cp /usr/bin/id /dev/shm/hutch-id-$$ && /dev/shm/hutch-id-$$
descriptor | python3 -c "import os; os.execve(os.open(\"/usr/bin/id\", os.O_PATH), [\"id\"], {})"'

more_setup() { LOADER=$(ldd /usr/bin/id | sed -nE 's,^\s*(/\S*ld-\S+).*,\1,p'); }

trick() { # NAME TEXT
        case "$ISO $1" in 'landlock shared memory') return ;; esac # no /dev/shm there
        run hutch --isolation "$ISO" -c "LOADER=$LOADER; $2"
        [[ $output == *uid=* ]] || differs "$ISO: $1: the control fails: $output"
        run hutch --isolation "$ISO" --deny-command id -c "LOADER=$LOADER; $2"
        [[ $output != *uid=* ]] || differs "$ISO: $1: id ran"
}

@test "a denied program cannot be executed in any way, on namespace" {
        ISO=namespace
        each "$TRICKS" trick
        agree
}

@test "a denied program cannot be executed in any way, on landlock" {
        ISO=landlock
        each "$TRICKS" trick
        agree
}

@test "with a list of what is allowed nothing else is executed, and what it starts is subject to it as well" {
        for ISO in namespace landlock; do
                run hutch --isolation "$ISO" --allow-command sh --allow-command cat sh -c 'cat /etc/hostname >/dev/null && echo ran; id; exec /usr/bin/id'
                [[ $output == *ran* && $output != *uid=* && $output == *"ermission denied"* ]] || differs "$ISO: $output"
                run hutch --isolation "$ISO" --allow-command default -c 'echo a | sed s/a/b/; python3 -c "print(1 + 1)"; git --version'
                [[ $output == *b*2*"git version"* ]] || differs "$ISO, default: $output"
                run hutch --isolation "$ISO" --allow-command default -c 'su --version; mount --version'
                [[ $output != *util-linux* ]] || differs "$ISO, default: $output"
        done
        agree
}

@test "nothing in the workspace or the temporary directory is executed, unless the policy names it there" {
        mkdir tools && cp /usr/bin/id tools/mine
        for ISO in namespace landlock; do
                run hutch --isolation "$ISO" -c 'tools/mine'
                [[ $output == *uid=* ]] || differs "$ISO: control: $output"
                run hutch --isolation "$ISO" --deny-command curl -c 'tools/mine; cp /usr/bin/id $TMPDIR/x; $TMPDIR/x'
                [[ $output != *uid=* ]] || differs "$ISO: $output"
                run hutch --isolation "$ISO" --workspace ro --allow-command default --allow-command "$PWD/tools/mine" -c 'tools/mine'
                [[ $output == *uid=* ]] || differs "$ISO, named: $output"
                run hutch --isolation "$ISO" --allow-command default --allow-command "$PWD/tools/mine" -c 'tools/mine'
                [[ $status -eq 125 && $output == *"the box can write"* ]] || differs "$ISO, writable: $output"
        done
        agree
}

@test "what is brought along cannot be run by the loader where there are mounts; landlock reports that it can" {
        cp /usr/bin/id mine
        run hutch -c "$LOADER ./mine"
        [[ $output == *uid=* ]]
        run hutch --isolation namespace --deny-command curl -c "$LOADER ./mine"
        [[ $output != *uid=* ]]
        run hutch --isolation landlock --json --deny-command curl true
        [[ $output == *guarantee_degraded*commands* ]]
        run hutch --isolation landlock --strict --workspace ro --deny-command curl true
        [ "$status" -eq 125 ]
}

@test "all names of a denied program are denied, and a program that is many is denied with one of its parts" {
        run hutch --json --deny-command unxz -c 'xz --version; xzcat --version'
        [[ $output != *"XZ Utils"* && $output == *command_shared*xz* ]]
        if [ -x /usr/bin/busybox ]; then
                run hutch -c 'busybox id'
                [[ $output == *uid=* ]]
                run hutch --deny-command id -c 'busybox id; cp /usr/bin/busybox $TMPDIR/id; $TMPDIR/id'
                [[ $output != *uid=* ]]
                run hutch --deny-command no-such-applet -c 'busybox echo still'
                [ "$output" = still ]
        fi
}

@test "a session keeps to the lists, and its system is read-only then" {
        am_root || true
        run hutch session start --deny-command id cmds-$$
        [ "$status" -eq 0 ]
        run hutch session run cmds-$$ -c 'id; cp /usr/bin/id /tmp/x; /tmp/x; echo done'
        hutch session stop --discard cmds-$$ || hutch session stop cmds-$$
        [[ $output == *done* && $output != *uid=* ]]
}

@test "what cannot be enforced is refused, and what makes no sense is an error" {
        run hutch --isolation none --deny-command id true
        told 125 "need Landlock"
        run hutch --cow / --deny-command id true
        told 125 "writable system"
        run hutch --deny-command id id
        told 125 "denied by commands.deny: id"
        run hutch --allow-command true id
        told 125 "--allow-command id"
        run hutch --deny-command bin/id true
        told 125 "neither a name nor an absolute path"
        agree
}
