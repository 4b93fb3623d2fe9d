# What is attached where: --ro --rw --tmpfs --hide --dev, the workspace's modes, refusals, odd names, links.
bats_require_minimum_version 1.5.0
load helper

more_setup() {
        mkdir -p "$T/data/sub" "$T/ws/sub/deep" "$T/out"
        echo data >"$T/data/file"
        echo deep >"$T/data/sub/file"
        echo ws >"$T/ws/file"
        echo sub >"$T/ws/sub/file"
        echo out >"$T/out/file"
        D=$T/data
}

@test "further paths, at their own place and at another" {
        prints "--ro '$D'              | cat '$D/file'; (echo x >'$D/new') 2>/dev/null || echo no   | data no
--rw '$D'                              | echo x >'$D/new'; cat '$D/new'                           | x
--ro '$D:/srv/x/y'                     | cat /srv/x/y/sub/file; ls /srv/x; ls -d '$D' 2>/dev/null | deep y
--rw '$D:/srv/x'                       | echo z >/srv/x/new; cat /srv/x/new                       | z
--ro '$D/file'                         | cat '$D/file'; ls '$D'                                   | data file
--ro '$D/file:/etc/motd-x'             | true                                                     | hutch: cannot attach anything at /etc/motd-x: it does not exist in the directory that is attached there, and hutch creates nothing on the host: create it first, or choose another destination
--ro '$D/file:/etc/passwd'             | cat /etc/passwd                                          | data
--rw '$D/file:/srv/one'                | echo new >/srv/one; cat /srv/one                         | new
--ro ../data                           | cat '$D/file'                                            | new
--ro=../data/../data/./sub/            | cat '$D/sub/file'                                        | deep
--ro ../data:/srv/rel                  | cat /srv/rel/sub/file                                    | deep
--tmpfs /srv/t                         | echo a >/srv/t/f; cat /srv/t/f                           | a
--tmpfs '$D'                           | ls -A '$D'; echo b >'$D/f'; cat '$D/f'                   | b
--tmpfs /opt                           | ls -A /opt; echo c >/opt/f; cat /opt/f                   | c
--hide /etc/passwd                     | cat /etc/passwd 2>/dev/null                              |
--hide /usr/share                      | ls -A /usr/share                                         |"
        [ "$(cat "$D/file")" = new ] && [ ! -e "$D/f" ]
}

@test "--bare attaches nothing of the system but what is named, with the links that lead there" {
        prints "--bare --ro /usr       | ls -d /etc /opt /nix 2>/dev/null; cd '$T/ws' && cat file                        | ws
--bare --ro /usr --ro /etc/passwd      | ls -A /etc; ls -d /opt 2>/dev/null                                     | passwd
--bare --ro /usr --tmpfs /etc          | ls -A /etc; echo x >/etc/x; cat /etc/x                                 | x
--bare --ro /usr --ro '$D'             | cat '$D/file'                                                          | data
--bare --ro /usr --as user             | id -u                                                                  | 1000"
        for link in /bin /lib /lib64; do # merged or not
                [ ! -L $link ] || [ "$(hutch --bare --ro /usr readlink $link)" = "$(readlink $link)" ] || differs $link
        done
        agree
        [ "$(hutch ls -d /etc /usr | xargs)" = "/etc /usr" ]
        run -127 hutch --bare --ro /usr/bin env
        run -127 hutch --bare /usr/bin/env
        [ "$status" -eq 127 ] && [[ $output == "hutch: /usr/bin/env: command not found in the box" ]]
        hutch --isolation landlock true 2>/dev/null || return 0
        run -2 hutch --isolation landlock --bare --ro /usr ls /etc
        [[ $output == *"Permission denied"* ]]
}

@test "filesystem.system: false is the same in a file; an untrusted workspace can ask for it and cannot undo it" {
        mkdir -p "$HOME/.config/hutch"
        unset XDG_CONFIG_HOME
        echo 'filesystem: {system: false, read: [/usr]}' >"$HOME/.config/hutch/config.yaml"
        run -2 hutch ls /etc
        hutch explain true | grep -q 'filesystem.system false'
        echo 'filesystem: {system: true}' >hutch.yaml
        run -2 hutch ls /etc
        echo 'filesystem: {read: [/usr]}' >"$HOME/.config/hutch/config.yaml"
        run -0 hutch ls /etc
        echo 'filesystem: {system: false}' >hutch.yaml
        run -2 hutch ls /etc
}

@test "~ is the caller's home" {
        mkdir -p "$HOME/sdk" && echo sdk >"$HOME/sdk/file"
        prints "--ro=~/sdk             | cat ~/sdk/file '$HOME/sdk/file'; ls -A ~        | sdk sdk sdk
--rw '~/sdk:/srv/sdk'                  | cat /srv/sdk/file; ls -A ~                       | sdk
-d=~/sdk                               | true                                             | hutch: workspace $T/ws/=~/sdk: does not exist
--dir=~/sdk                            | pwd; cat file                                    | $HOME/sdk sdk"
}

@test "later rules override earlier ones, narrower and wider" {
        prints "--rw '$D' --ro '$D/sub'     | touch '$D/a'; touch '$D/sub/a' 2>/dev/null || echo no      | no
--ro '$D' --rw '$D/sub'                     | touch '$D/b' 2>/dev/null || echo no; touch '$D/sub/b'      | no
--ro '$D' --rw '$D'                         | touch '$D/c'; echo yes                                     | yes
--rw '$D' --ro '$D'                         | touch '$D/d' 2>/dev/null || echo no                        | no
--rw '$D/sub' --ro '$D'                     | touch '$D/sub/e' 2>/dev/null || echo no                    | no
--ro '$D' --hide '$D/sub'                   | cat '$D/file'; ls -A '$D/sub'                              | data
# what was hidden by name stays so when its directory is attached again, until it is named itself
--hide '$D/sub' --ro '$D'                   | cat '$D/sub/file' 2>/dev/null || echo no                   | no
--ro '$D' --hide '$D/sub' --ro '$D/sub'     | cat '$D/sub/file'                                          | deep
--ro '$D' --tmpfs '$D/sub' --ro '$D/file:$D/sub/f'  | cat '$D/sub/f'                                     | data
--rw '$D' --ro '$D/sub' --rw '$D/sub/file'  | echo w >'$D/sub/file'; cat '$D/sub/file'; touch '$D/sub/g' 2>/dev/null || echo no | w no"
        [ -e "$D/a" ] && [ ! -e "$D/d" ] && [ ! -e "$D/sub/a" ] && [ ! -e "$D/sub/g" ]
}

@test "rules inside the workspace hold at both of its places" {
        one() {
                for at in /workspace/ws "$T/ws"; do
                        got=$(hutch $1 -c "cd '$at' && { $2; }" 2>/dev/null | xargs)
                        [ "$got" = "$3" ] || differs "[$1] in $at: '$got', not '$3'"
                done
        }
        each "--ro sub                          | touch sub/x || echo no; touch x && echo yes; rm x    | no yes
--ro $T/ws/sub                                  | touch sub/x || echo no; touch x && echo yes; rm x    | no yes
--workspace ro                                  | touch x || echo no; cat file                         | no ws
--workspace ro --rw sub                         | touch x || echo no; touch sub/y && echo yes; rm sub/y | no yes
--workspace ro --rw sub --ro sub/deep           | touch sub/y && echo yes; rm sub/y; touch sub/deep/x || echo no | yes no
--hide sub                                      | cat sub/file || echo no; ls -A sub                   | no
--hide file                                     | cat file || echo no                                  | no
--hide sub/file                                 | cat sub/file || echo no                              | no
--tmpfs sub                                     | ls -A sub; touch sub/z && ls sub                     | z
--ro file                                       | echo x >>file || echo no; rm -f file || echo no; mv file g || echo no | no no no
--ro sub                                        | mv sub other || echo no; rm -rf sub || true; ls sub  | no deep file" one
        agree
        [ "$(cat file sub/file | xargs)" = "ws sub" ] && [ ! -e sub/z ]
}

@test "--workspace none: an empty /workspace, nothing of the directory" {
        prints "--workspace none        | pwd; ls -A; touch x && echo yes; cat '$T/ws/file' 2>/dev/null || echo no  | /workspace yes no
--workspace none -d /no/such            | pwd                                                                 | /workspace"
        [ ! -e x ]
        cd / && run hutch --workspace none pwd
        [ "$output" = /workspace ]
        cd "$HOME" && run hutch --workspace none pwd
        [ "$output" = /workspace ]
}

@test "U d: a run starts in the host's path; --at workspace and --cd elsewhere" {
        prints "--at host               | pwd; cat file                     | $T/ws ws
-d ../ws/sub                            | pwd; cat file                     | $T/ws/sub sub
--at workspace                          | pwd; cat file                     | /workspace/ws ws
--at workspace --cd sub                 | pwd; cat file                     | /workspace/ws/sub sub
-C sub                                  | pwd; cat file                     | $T/ws/sub sub
--cd /usr/bin                           | pwd                               | /usr/bin
--workspace ro                          | pwd; touch x 2>/dev/null || echo no | $T/ws no"
}

@test "both places of the workspace are one" {
        run hutch -c "echo 1 >new; cat '$T/ws/new'; stat -c %i new '$T/ws/new' | uniq | wc -l"
        [ "$output" = $'1\n1' ]
}

@test "identities" {
        am_root && U=root || U=$(id -un)
        prints "--as host               | id -u; id -g; id -un; echo \$USER \$LOGNAME \$HOME; pwd              | $(id -u) $(id -g) $U $U $U $HOME $T/ws
--as user                               | id -u; id -g; id -un; echo \$USER \$LOGNAME \$HOME; pwd; uname -n    | 1000 1000 user user user /home/user /workspace sandbox
--as root                               | id -u; id -g; id -un; echo \$USER \$LOGNAME \$HOME; pwd              | 0 0 root root root /root $T/ws
--as user                               | cat file; touch by-user && echo yes; ls '$T' 2>/dev/null || echo no | ws yes no
--as root                               | touch by-root; stat -c %u by-root                                   | 0
--as user                               | stat -c %u file; getent passwd user; hostname                       | 1000 user:x:1000:1000:user:/home/user:/bin/bash sandbox
--as root                               | chown 1:1 file 2>/dev/null || echo no; mount -t tmpfs x /tmp 2>/dev/null || echo no | no no
--as host                               | ls -A ~; touch ~/x && echo yes                                      | yes"
        [ "$(stat -c %u by-user by-root | sort -u)" = "$(id -u)" ]
}

@test "what is refused as a workspace" {
        mkdir -p "$HOME/.config/hutch/sub" "$HOME/.local/state/hutch" "$HOME/.local/share/hutch" "$T/link"
        ln -s "$HOME" "$T/link/home"
        ln -s / "$T/link/root"
        refused "-d /                   | workspace /
-d '$HOME'                              | home
-d ~                                    | home
-d '$HOME/../home/.'                    | home
-d '$T/link/home'                       | home
-d '$T/link/root'                       | workspace /
-d /proc                                | /proc
-d /sys                                 | /sys
-d /dev                                 | /dev
-d '$HOME/.config/hutch'                | .config/hutch
-d '$HOME/.config/hutch/sub'            | .config/hutch
-d '$HOME/.config'                      | .config/hutch
-d '$HOME/.local'                       | .local
-d '$HOME/.local/state/hutch'           | .local/state/hutch
-d '$T'                                 | hutch
--workspace ro -d /                     | workspace /
--workspace ro -d '$HOME'               | home
--rw /                                  | /
--rw '$HOME'                            | home
--rw '$T/link/home'                     | home
--rw '$T/link/root'                     | /
--rw '$HOME/.config'                    | .config/hutch
--rw '$T'                               | hutch
--rw '$T/data:/'                        | root
--ro /                                  | /
--ro /proc:/srv/proc                    | /proc
--rw /sys:/srv/sys                      | /sys
--ro '$T/data:/proc'                    | /proc
--tmpfs /proc                           | /proc
--tmpfs /                               | /
--ro '$T/data:relative'                 | relative
--ro /dev/null                          | --dev
--dev '$T/data/file'                    | not a device
--dev /dev/null:/x                      | destination
--hide '$T/data:/x'                     | destination
--tmpfs '$T/data:/x'                    | destination
--ro ''                                 | empty"
        cd / && refused "--net deny             | workspace /"
        cd "$HOME" && refused "--net deny      | home"
}

@test "hutch's own directories elsewhere are refused too" {
        mkdir -p "$T/xdg/hutch"
        for name in XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME; do
                (export "$name=$T/xdg" && refused "-d '$T/xdg'       | $T/xdg/hutch
-d '$T/xdg/hutch'                              | $T/xdg/hutch
--rw '$T/xdg'                                  | $T/xdg/hutch")
        done
}

@test "a missing source is named, for each kind of rule" {
        refused "--ro '$T/none'         | $T/none
--rw '$T/none/below'                    | $T/none/below
--ro none                               | none
--ro ~/none                             | $HOME/none
--dev /dev/no-such-device               | /dev/no-such-device
--ro '$T/data/file/below'               | $T/data/file/below
--hide none                             | none
--tmpfs sub/none                        | sub/none
--ro '$D:$T/ws/none'                    | none"
        [ "$(find . | sort | xargs)" = ". ./file ./sub ./sub/deep ./sub/file" ]
}

@test "nothing is made on the host to mount on" {
        before=$(find "$T" | sort)
        hutch --ro "$D/file" --tmpfs "$T/made/here" --ro "$D:$T/elsewhere" --hide sub -c true
        [ "$(find "$T" | sort)" = "$before" ]
}

@test "ancestors of a granted path can be traversed, and hold nothing else" {
        mkdir -p "$T/private/a/b" "$T/private/other" && echo granted >"$T/private/a/b/file"
        run hutch --ro "$T/private/a/b" -c "cat '$T/private/a/b/file'; ls -A '$T/private'; ls -A '$T/private/a'"
        [ "$output" = $'granted\na\nb' ]
}

@test "links in a source are resolved on the host" {
        ln -s "$D" "$T/to-data"
        ln -s "$D/file" "$T/to-file"
        ln -s "$D" data-link
        prints "--ro '$T/to-data'       | cat '$T/to-data/file'                | data
--ro '$T/to-file'                       | cat '$T/to-file'                     | data
--ro '$T/to-data:/srv/x'                | cat /srv/x/sub/file                  | deep
--rw '$T/to-data'                       | touch '$T/to-data/n' && echo yes     | yes
                                        | cat data-link/file 2>/dev/null || echo no | no"
        ln -s ws "$T/to-ws"
        run hutch -d "$T/to-ws" pwd
        [ "$output" = "$T/ws" ]
}

@test "links in a destination never lead out of the box" {
        ln -s "$T/out" link-out
        ln -s / link-root
        ln -s ../../../../../../../.. link-up
        for at in link-out/x link-root/"$T"/out/x link-up/"$T"/out/x link-out; do
                run hutch --ro "$D:$T/ws/$at" -c "ls '$T/ws/$at'"
                [ ! -e "$T/out/x" ] || differs "$at: made on the host"
                [ "$(ls "$T/out")" = file ] || differs "$at: $(ls "$T/out")"
        done
        # A link that the box's own system has leads to its place in the box.
        run hutch --ro "$D/file:/bin/true" -c 'cat /usr/bin/true'
        [ -L /bin ] && [ "$output" != data ] && differs "/bin/true is not in the box's /usr: $output"
        agree
}

@test "a link that is swapped while hutch starts never lets the box out" {
        mkdir "$T/ws/swap" "$T/real"
        echo real >"$T/real/file"
        ln -s "$T/real" "$T/swap-source"
        (while [ ! -e "$T/stop" ]; do
                ln -sfn "$T/out" "$T/swap-source"
                ln -sfn "$T/real" "$T/swap-source"
        done) &
        swapper=$!
        for i in {1..20}; do
                run hutch --ro "$T/swap-source:/srv/s" cat /srv/s/file
                [[ $output = real || $output = out ]] || differs "$output"
        done
        touch "$T/stop"
        wait $swapper
        agree
}

@test "odd names" {
        for name in 'with space' $'new\nline' $'tab\there' 'colon:inside' 'back\slash' $'bad\xff\xfeutf8' 'ünïcode' "quote'd" '-dash' '$HOME' '*' '%s%n' '#x'; do
                mkdir -p "$T/odd/$name"
                echo "in $name" >"$T/odd/$name/file"
                escaped=${name//:/\\:}
                out=$(cd "$T/odd/$name" && hutch cat file) || differs "workspace $name: cd: $out"
                [ "$out" = "in $name" ] || differs "workspace $name: $out"
                out=$(hutch -d "$T/odd/$name" pwd)
                [ "$out" = "$T/odd/$name" ] || differs "-d $name: $out"
                out=$(hutch --ro "$T/odd/$escaped" cat "$T/odd/$name/file")
                [ "$out" = "in $name" ] || differs "--ro $name: $out"
                out=$(hutch --ro "$D:/srv/$escaped" cat "/srv/$name/file")
                [ "$out" = data ] || differs "--ro :$name: $out"
                out=$(hutch -d "$T/odd/$name" --json -c 'printf %s "$PWD"' | jq -r '.exit_code')
                [ "$out" = 0 ] || differs "--json in $name: $out"
                hutch explain --json -d "$T/odd/$name" -- true | jq -e .cwd >/dev/null || differs "explain --json in $name"
                out=$(hutch --ro "$T/odd/$escaped/none" true 2>&1) || true
                [ "$(wc -l <<<"$out")" -eq 1 ] || differs "the error for $name has several lines"
        done
        agree
}

@test "a file name of the workspace may be anything" {
        hutch bash -c 'touch $'"'"'a\nb'"'"' $'"'"'\xff\xfe'"'"' "c d" "e:f"'
        [ "$(find . -maxdepth 1 -type f ! -name file -printf x | wc -c)" = 4 ]
}

@test "--dev attaches a device, and only that" {
        found=$(find /dev -maxdepth 1 -type c ! -name null ! -name zero ! -name full ! -name random ! -name urandom ! -name tty ! -name ptmx | sort | head -1)
        [ -n "$found" ] || skip "needs a character device beyond the standard ones"
        prints "--dev $found            | test -c $found && echo yes; stat -c %t:%T $found   | yes $(stat -c %t:%T "$found")
                                        | test -e $found || echo no                           | no
                                        | cd /dev && echo *                                    | fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
        # Of a device in the workspace only the name is seen.
        am_root || return 0
        mknod node c 1 3
        run hutch -c 'echo x >node'
        [ "$status" -ne 0 ]
}

@test "sockets are refused as paths" {
        python3 -c "import socket; s=socket.socket(socket.AF_UNIX); s.bind('$T/sock')" 2>/dev/null || skip "needs python3"
        refused "--ro '$T/sock'         | socket
--rw '$T/sock'                          | socket"
}

@test "mounts below a granted path are read-only as well" {
        # /dev/shm is a mount below /dev on every host; here it lies below a granted path of the ordinary kind.
        run hutch --ro /dev:/srv/dev -c 'touch /srv/dev/shm/hutch-$$ 2>/dev/null && echo written || echo no'
        [[ $output == no || $status -eq 125 ]]
}

@test "a relative -d, and a current directory that is gone" {
        prints "-d sub                  | pwd                     | $T/ws/sub
-d .                                    | pwd                     | $T/ws
-d ..//ws/                              | pwd                     | $T/ws"
        mkdir gone && cd gone && rmdir ../gone
        run hutch true
        told 125 "current directory: it no longer exists"
        agree
}
