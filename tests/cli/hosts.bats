# Hosts that have less: the calls that they lack are made to fail by tests/tools/deny. Also what is said where nothing can be done.
load helper

OLD="fsopen open_tree move_mount mount_setattr"

# stands DENIED…: a box with a bit of everything stands, and its walls hold.
stands() {
        mkdir -p "$T/data" sub
        echo data >"$T/data/file"
        run deny "$@" -- "$HUTCH_BUILD/hutch" --ro "$T/data" --ro sub --hide /etc/hostname --tmpfs /srv/t -c "
                pwd; cat $T/data/file; touch new $T/data/x sub/x /usr/x /srv/t/y; cat /etc/hostname $HOME/.ssh/id_rsa; ls -A ~; ps ax -o pid= | wc -l" 
        [[ $output == *"$T/ws"$'\ndata\n'* ]] || differs "$output"
        [ -e new ] && [ ! -e "$T/data/x" ] && [ ! -e sub/x ] && [[ $output != *private* ]] && [[ $output != *"/srv/t/y"* ]] || differs "$output"
        agree
}

@test "no Landlock" { stands landlock_create_ruleset; }
@test "no openat2" { stands openat2; }
@test "no openat2: not permitted" { stands openat2=EPERM; }
@test "no close_range" { stands close_range; }

# Root needs id-mapped mounts, and so the new mount API: without it hutch must refuse. Everybody else gets a box.
without_mount_api() {
        if am_root; then
                run deny "$@" -- "$HUTCH_BUILD/hutch" touch ran
                told 125 ""
                [ ! -e ran ] || differs "the command was run"
                agree
        else
                stands "$@"
        fi
}

# shellcheck disable=SC2086
@test "no new mount API" { without_mount_api $OLD; }
# shellcheck disable=SC2086
@test "no new mount API, no openat2, no Landlock" { without_mount_api $OLD openat2 landlock_create_ruleset; }
@test "the new mount API is not permitted (a container's filter)" { without_mount_api fsopen=EPERM open_tree=EPERM move_mount=EPERM mount_setattr=EPERM; }
@test "only a part of the new mount API is there: no fsopen" { without_mount_api fsopen; }
@test "only a part of the new mount API is there: no open_tree" { without_mount_api open_tree; }
@test "only a part of the new mount API is there: no move_mount" { without_mount_api move_mount; }
@test "only a part of the new mount API is there: no mount_setattr" { without_mount_api mount_setattr; }

@test "root without the new mount API is told why" {
        # shellcheck disable=SC2086
        run deny $OLD -- "$HUTCH_BUILD/hutch" --workspace none echo ran
        if am_root; then
                told 125 "id-mapped"
                agree
        else
                [ "$output" = ran ]
        fi
}

@test "doctor: whether a box gets network rules, by a trial" {
        network='import json, sys; c = [c for c in json.load(sys.stdin)["checks"] if c["check"] == "network_rules"][0]; print(c["works"], c["needed"], "modprobe" in (c["remedy"] or ""))'
        [ "$(hutch doctor --json | python3 -c "$network")" = "True False False" ]
        [ "$(deny getsockname -- "$HUTCH_BUILD/hutch" doctor --json | python3 -c "$network")" = "False False True" ]
        run hutch --allow-host 192.0.2.1 true # doctor and a box agree
        [ "$status" -eq 0 ]
        run deny getsockname -- "$HUTCH_BUILD/hutch" --allow-host 192.0.2.1 true
        [ "$status" -eq 125 ] || differs "$output"
}

@test "a host that lets nobody make namespaces: refused with one line, never run without walls" {
        for how in clone=EPERM clone=ENOSYS clone=ENOSPC seccomp=EPERM seccomp=ENOSYS pivot_root=EPERM umount2=EPERM mount=EPERM capset=EPERM sethostname=EINVAL \
                pidfd_open=ENOSYS socketpair=EMFILE; do
                for as in host user; do
                        run timeout -s KILL 20 "$HUTCH_BUILD/tests/conformance/deny" $how -- "$HUTCH_BUILD/hutch" --isolation namespace --workspace none --as $as echo RAN
                        [[ $how = sethostname* && $as = host || $output != *RAN* ]] || differs "$how, as $as: ran: $output"
                        [[ $output == *RAN* ]] || { [ "$status" -eq 125 ] && [ "${#lines[@]}" -eq 1 ] && [[ $output == "hutch: "* ]]; } || differs "$how, as $as: $status $output"
                done
        done
        agree
}

@test "--isolation none says what it is; auto never picks it" {
        run hutch --isolation none --json -c 'echo $HOME; cat $HOME/.ssh/id_rsa'
        [ "$(field "$output" '[.backend,.enforced.filesystem,.enforced.network]|join(" ")')" = "none not_requested not_requested" ]
        [[ $(field "$output" .stdout) == *private* ]]
        run hutch --isolation none pwd
        [ "$output" = "$T/ws" ]
        refused "--isolation none --ro '$HOME/.ssh'    | filesystem
--isolation none --net deny                            | network"
        run hutch --isolation none --allow-degraded --net deny --json true
        [ "$(field "$output" .enforced.network)" = degraded ]
        for name in auto restricted namespace; do
                run hutch --isolation $name --json true
                [ "$(field "$output" .backend)" = namespace ] || differs "$name: $output"
        done
        run hutch --isolation none -c "setsid sleep $NAP & sleep 0.1"
        gone "sleep $NAP"
        SECRET=x run hutch --isolation none printenv SECRET
        [ "$status" -eq 1 ] || differs "the environment is not filtered"
        agree
}

@test "--isolation none: exit codes and signals" {
        one() {
                local words
                eval "words=($1)"
                run hutch --isolation none "${words[@]}"
                [ "$status" -eq "$2" ] || differs "$1: $status, not $2: $output"
        }
        each "sh -c 'exit 5'              | 5
no-such-command                           | 127
/usr                                      | 126
sh -c 'kill -9 \$\$'                      | 137
--timeout 100ms sleep $NAP               | 124" one
        gone "sleep $NAP"
        "$HUTCH_BUILD/hutch" --isolation none -c "setsid sleep $NAP & echo >begun; sleep $NAP" &
        pid=$!
        appears begun
        kill -9 $pid
        wait $pid 2>/dev/null || true
        gone "sleep $NAP" || differs "kill -9: still there"
        agree
}

@test "--strict and --allow-degraded" {
        run hutch --strict true
        told 125 "--strict"
        out=$(hutch --json --allow-degraded --isolation none --net deny true)
        [ "$(field "$out" .enforced.network)" = degraded ] || differs "$out"
        [[ $(field "$out" '.notices[]|select(.code == "guarantee_degraded").subject') == *network* ]] || differs "no notice: $out"
        agree
}

@test "--net deny has lo and nothing else; --net open is the host's" {
        prints "                        | ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev; grep -o 'lo:' /proc/net/dev   | 1 lo:
--net deny                              | grep -o 'lo:' /proc/net/dev; ls /proc/self/ns/net >/dev/null && echo ok            | lo: ok
--net loopback                          | grep -c : /proc/net/dev                                                            | 1" || {
                [[ $DIFFERENCES == "[--net loopback]"* ]] # not ordered yet: may be refused
        }
        run hutch --net open readlink /proc/self/ns/net
        [ "$output" = "$(readlink /proc/self/ns/net)" ]
        run hutch readlink /proc/self/ns/net
        [ "$output" != "$(readlink /proc/self/ns/net)" ]
}

@test "every namespace is the box's own" {
        for ns in user mnt pid ipc uts cgroup net; do
                [ "$(hutch readlink /proc/self/ns/$ns)" != "$(readlink /proc/self/ns/$ns)" ] || differs "$ns is the host's"
        done
        agree
}

@test "a box in a box needs --allow-nested" {
        cp "$HUTCH_BUILD/hutch" ./hutch-copy
        run hutch ./hutch-copy --isolation namespace -d /tmp echo inner
        [ "$status" -eq 125 ]
        mkdir inner
        # Root's only id in the box is 0, and the kernel lets nobody without capabilities map that once more.
        run hutch --allow-nested --workspace rw $([ "$(id -u)" != 0 ] || echo --as user) ./hutch-copy --isolation namespace -d inner -c 'echo inner; pwd; touch /usr/x 2>/dev/null || echo no; touch here'
        # --as user shows no path of the host.
        [ "$output" = $'inner\n'"$(am_root && echo /workspace || echo "$T/ws")/inner"$'\nno' ]
        [ -e inner/here ]
}

@test "user namespaces may be used up: told, not hung" {
        run timeout -s KILL 20 "$HUTCH_BUILD/tests/conformance/deny" clone=ENOSPC -- "$HUTCH_BUILD/hutch" true
        told 125 "namespace"
        agree
}

# bats test_tags=root
@test "the AppArmor profile is put in place where AppArmor is active, and its parser knows the rule" {
        mkdir "$T/bin" "$T/apparmor.d"
        printf '#!/bin/sh\necho "$@" >>%q\n[ ! -e %q ]\n' "$T/calls" "$T/old" >"$T/bin/apparmor_parser"
        chmod +x "$T/bin/apparmor_parser"
        place() { PATH=$T/bin:$PATH run env "$@" "$HUTCH_SRC/tools/install-apparmor" "$HUTCH_BUILD/apparmor-hutch" "$T/enabled" "$T/apparmor.d"; }
        place A=
        echo N >"$T/enabled"
        place A=
        echo Y >"$T/enabled"
        place DESTDIR="$T/package"
        touch "$T/old"
        place A=
        [ -z "$output" ] && [ -z "$(ls "$T/apparmor.d")" ] || differs "it was installed: $output"
        rm "$T/old"
        place A=
        [ "$output" = "installed the AppArmor profile $T/apparmor.d/hutch" ] || differs "$output"
        [ "$(tail -1 "$T/calls")" = "-r $T/apparmor.d/hutch" ] && grep -q '^profile hutch-warden /.*/hutch-warden flags=(unconfined) {' "$T/apparmor.d/hutch" || differs "$(cat "$T/calls")"
        agree
}

@test "doctor: sessions and copy-on-write, by a trial" {
        trials() { "$@" | jq -c '[.checks[] | select(.check == "sessions" or .check == "copy_on_write") | .works]'; }
        [ "$(trials hutch doctor --json)" = '[true,true]' ]
        [ "$(trials deny fsopen=EPERM unshare=EPERM clone3=EPERM -- "$HUTCH_BUILD/hutch" doctor --json)" = '[true,true]' ] # by landlock
        mkdir -p "$HOME/.local/state/hutch" && rm -rf "$HOME/.local/state/hutch/boxes" && touch "$HOME/.local/state/hutch/boxes" # no place for layers
        run hutch doctor --json
        [ "$(jq -c '[.checks[] | select(.check == "copy_on_write") | .works, (.remedy | test("hutch/boxes"))]' <<<"$output")" = '[false,true]' ] || differs "$output"
        [ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'hutch-doctor.*' -user "$(id -u)")" ] || differs 'a directory of a trial is left'
        agree
}

@test "a filter that refuses to name the box, as podman's does: it runs, and a notice says so" {
        run deny sethostname=EPERM -- "$HUTCH_BUILD/hutch" --as user --json sh -c 'echo in; uname -n'
        [[ $output == *'"exit_code":0'*"in\\n$(uname -n)"*'"code":"host_name_kept"'* ]] || differs "$output"
        run deny sethostname=EINVAL -- "$HUTCH_BUILD/hutch" --as user touch ran
        told 125 'cannot set the host name'
        [ ! -e ran ]
        run hutch --as user uname -n # the control
        [ "$output" = sandbox ] || differs "$output"
        agree
}
