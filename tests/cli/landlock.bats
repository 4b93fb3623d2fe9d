# The landlock backend: no namespace at all. Each ABI of Landlock is played by HUTCH_LANDLOCK_ABI, which only ever takes away.
load helper

more_setup() {
        echo kept >"$T/outside"
        chmod 600 "$T/outside"
        mkdir ro && echo x >ro/f
}

# attempts OPTIONS…: what a box does to its surroundings; each line is a name and the errno, 0 if it was done.
attempts() {
        sleep "$NAP" &
        victim=$!
        cat >try.py <<'PY'
import ctypes, os, socket, sys
outside, victim = sys.argv[1], int(sys.argv[2])
def attempt(name, f):
    try:
        f()
        print(name, 0)
    except OSError as e:
        print(name, e.errno)
attempt("read", lambda: os.open(outside, os.O_RDONLY))
attempt("write", lambda: os.open(outside, os.O_WRONLY))
attempt("truncate", lambda: os.truncate(outside, 0))
attempt("open-truncate", lambda: os.open(outside, os.O_RDONLY | os.O_TRUNC))
attempt("open-truncate-3", lambda: os.open(outside, 3 | os.O_TRUNC))
attempt("system-truncate", lambda: os.open("/usr/bin/env", os.O_RDONLY | os.O_TRUNC))
attempt("chmod", lambda: os.chmod(outside, 0o777))
attempt("chown", lambda: os.chown(outside, -1, os.getgid()))
attempt("utime", lambda: os.utime(outside, (1, 1)))
attempt("xattr", lambda: os.setxattr(outside, "user.x", b"1"))
attempt("link", lambda: os.link(outside, "link"))
attempt("rename", lambda: os.rename(outside, "taken"))
attempt("unlink", lambda: os.unlink(outside))
attempt("kill", lambda: os.kill(victim, 0))
attempt("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, victim, 19))
attempt("affinity", lambda: os.sched_setaffinity(victim, {0}))
attempt("cmdline", lambda: os.open("/proc/%d/cmdline" % victim, os.O_RDONLY))
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
attempt("pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
def watch(): # inotify_init1, inotify_add_watch
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(0)
    if fd < 0 or libc.inotify_add_watch(fd, os.path.dirname(outside).encode(), 0xfff) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
attempt("watch", watch)
attempt("tcp", lambda: socket.socket())
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
PY
        run hutch --isolation landlock "$@" -- python3 try.py "$T/outside" "$victim"
        kill "$victim"
}

# Without the box every one of them is possible.
@test "landlock: the control: what the attempts need is there" {
        sleep "$NAP" &
        chmod 640 "$T/outside" && touch -d 2001-01-01 "$T/outside" && kill -0 $! && renice -n 19 $! >/dev/null
        python3 -c 'import os,socket,sys; socket.socket(socket.AF_UNIX); socket.socket(); os.open(sys.argv[1], os.O_RDONLY | os.O_TRUNC)' "$T/outside"
        [ ! -s "$T/outside" ]
        kill $!
}

holds() { # holds ABI
        export HUTCH_LANDLOCK_ABI=$1
        attempts
        [ "$status" -eq 0 ] || differs "$output"
        for line in "${lines[@]}"; do
                [[ $line != *" 0" ]] || differs "Landlock ABI $1: $line"
        done
        [ "${#lines[@]}" -eq 22 ] || differs "$output"
        [ "$(cat "$T/outside")" = kept ] && [ "$(stat -c %a "$T/outside")" = 600 ] || differs "the file outside was changed"
        agree
}
@test "landlock: walls with ABI 1" { holds 1; }
@test "landlock: walls with ABI 2" { holds 2; }
@test "landlock: walls with ABI 3" { holds 3; }
@test "landlock: walls with ABI 4" { holds 4; }
@test "landlock: walls with ABI 5" { holds 5; }
@test "landlock: walls with ABI 6" { holds 6; }
@test "landlock: walls with ABI 7" { holds 7; }

@test "landlock: an open network has TCP and UDP, and still no UNIX socket" {
        attempts --net open
        [[ $output == *"unix 13"* && $output == *"tcp 0"* && $output == *"udp 0"* && $output == *"pair 13"* ]]
}

# works ABI: what ordinary programs do in a writable workspace.
works() {
        export HUTCH_LANDLOCK_ABI=$1
        run hutch --isolation landlock -c 'set -e
                echo a >f; chmod 751 f; touch -d 2001-02-03 f; mkdir d; cp -p f d/g; echo b >>d/g; : >d/g
                python3 -c "import os; os.setxattr(\"f\", \"user.k\", b\"v\"); fd = os.open(\"f\", os.O_RDONLY); os.fchmod(fd, 0o700); os.utime(fd, (5, 5))" 2>/dev/null || [ $? -eq 1 ]
                tar cf t.tar f d; mkdir x; tar xpf t.tar -C x
                sleep 50 & kill -TERM $!; wait $! || [ $? -eq 143 ]
                (kill -INT $BASHPID) || [ $? -eq 130 ]
                echo tmp >"$TMPDIR/t"; echo home >"$HOME/h"; cat "$HOME/h"; stat -c %a x/f'
        [ "$status" -eq 0 ] || differs "ABI $1: $output"
        [[ $output == *$'home\n'7?? ]] || differs "ABI $1: $output"
        agree
}
@test "landlock: programs work with ABI 1" { works 1; }
@test "landlock: programs work with ABI 5" { works 5; }
@test "landlock: programs work with ABI 7" { works 7; }

@test "landlock: no set-uid bit by chmod" {
        run hutch --isolation landlock -c 'echo x >f; chmod 4755 f; stat -c %a f'
        [[ $output == *"not permitted"* && $output != *4755* ]]
}

@test "landlock: nothing is left, after an end, a timeout, a killed hutch" {
        hutch --isolation landlock -c "mkdir -p \$HOME/a/b; chmod 000 \$HOME/a; setsid sleep $NAP & :"
        run hutch --isolation landlock --timeout 300ms -c "setsid sleep $NAP & sleep $NAP"
        [ "$status" -eq 124 ]
        "$HUTCH_BUILD/hutch" --isolation landlock -c "setsid sleep $NAP & touch up; sleep $NAP" &
        for _ in $(seq 100); do [ -e up ] && break; sleep 0.05; done
        kill -KILL $!
        wait $! || :
        for _ in $(seq 100); do pgrep -f "sleep $NAP" >/dev/null || break; sleep 0.05; done
        ! pgrep -f "sleep $NAP" || differs "a process is left"
        for _ in $(seq 100); do compgen -G "/tmp/hutch-box-$(id -u)-*" >/dev/null || break; sleep 0.05; done
        # another box of this user may live: only those whose lock is free count
        for d in /tmp/hutch-box-"$(id -u)"-*; do [ ! -d "$d" ] || ! flock -n "$d" true || differs "left: $d"; done
        agree
}

# Whatever happens to init: nothing of the box stays. The control is init's own end, which is not the end of its children.
@test "landlock: nothing is left of a box whose init was killed or stopped, nor of one that forks and forks" {
        for signal in KILL STOP; do
                "$HUTCH_BUILD/hutch" --isolation landlock --timeout 2s -c "setsid sleep $NAP & (setsid setsid sleep $NAP &); touch up; exec sleep $NAP" &
                box=$!
                for _ in $(seq 200); do [ -e up ] && break; sleep 0.05; done
                kill -$signal "$(pgrep -P $box)"
                wait $box || :
                ! pgrep -r R,S,D,T -f "sleep $NAP" || differs "$signal: a process is left"
                rm -f up
        done
        cat >roll.py <<'PY'
import os, sys, time
for _ in range(8):
    if os.fork() == 0:
        end = time.monotonic() + 30
        while time.monotonic() < end: # each lives as long as it takes to make the next
            if os.fork():
                os._exit(0)
        os._exit(0)
open("up", "w")
time.sleep(60)
PY
        timeout 20 "$HUTCH_BUILD/hutch" --isolation landlock --timeout 500ms -- python3 roll.py "$NAP" || [ $? -eq 124 ]
        [ -e up ]
        ! pgrep -r R,S,D,T -f "roll.py $NAP" || differs "a process that forks is left"
        agree
}

refused() { # OPTIONS | TEXT
        # shellcheck disable=SC2086
        run hutch --isolation landlock $1 -- touch ran
        told 125 "$2"
        [ ! -e ran ] || differs "'$1': the command was run"
}
@test "landlock: what it cannot enforce is refused" {
        each "
--hide ro | nothing inside a granted directory can be hidden
--ro ro | made read-only
--ro /usr/bin:/srv/bin | cannot appear elsewhere
--tmpfs /srv/x | mount namespace
--net loopback | --net loopback needs a network namespace
--allow-nested | needs the namespace backend
--as root | needs the namespace backend
--cow /usr | only the workspace can be copy-on-write
--cow / | only the workspace can be copy-on-write
--workspace cow --ephemeral | --ephemeral is not possible
--workspace cow --copy-limit 1K | --copy-limit SIZE allows more
--disk 1M | no limit
" refused
        agree
}

# ---- copy-on-write ----

tree() {
        mkdir -p ws/d/e ws/gone/inner ws/shut && cd ws
        echo a >a; echo b >b; echo c >d/e/c; echo x >gone/inner/x; ln -s a link; echo h >h1; ln h1 h2
        dd if=/dev/zero of=big bs=64k count=1 2>/dev/null
        chmod 555 shut
}

@test "landlock: a copy-on-write workspace: diff, discard, apply, and the host as it was until then" {
        tree
        cp -a . ../before
        run hutch --isolation landlock --workspace cow --json -c 'set -e
                echo new >new; echo more >>b; rm -r gone; rm a; mkdir a; echo in >a/in; mkdir -p q/w; echo s >q/w/s; chmod 750 d; mv d/e/c d/moved
                echo changed >>h1; cat h2; stat -c %i h1 h2 | uniq | wc -l; touch -d 2001-01-01 big; python3 -c "import socket"'
        [[ $output == *'"backend":"landlock"'* && $output == *'"box":"'* && $output == *'h\nchanged\n1'* && $output == *'"protected":"enforced"'* ]] || differs "$output"
        diff -r --no-dereference . ../before
        run hutch diff
        for part in 'new file' '+more' 'Directory gone deleted' 'b/a/in' 'q/w/s' 'mode 0755 to 0750' 'd/moved'; do
                [[ $output == *"$part"* ]] || differs "no '$part' in: $output"
        done
        [[ $output != *"b/big"* ]] || differs "a time is no change of a file's content"
        hutch discard new
        hutch apply
        [ ! -e new ] && [ "$(cat b)" = $'b\nmore' ] && [ ! -e gone ] && [ "$(cat a/in)" = in ] && [ -e d/moved ] && [ ! -e d/e/c ] && [ "$(stat -c %a d)" = 750 ]
        [ "$(stat -c %a shut)" = 555 ]
        run hutch boxes
        [[ $output == "no boxes"* ]]
        agree
}

@test "landlock: a further run goes on with the copy, and what the host changed meanwhile is no change of the box" {
        tree
        hutch --quiet --isolation landlock --workspace cow -c 'echo 1 >>b; rm a; mkdir -m 500 closed'
        run hutch --quiet --box '' --isolation landlock --json -c 'cat b; ls a; echo 2 >two; test ! -w closed'
        [[ $output == *'b\n1'* && $output == *'"created":["'*'/two"],"modified":[],"deleted":[]'* ]] || differs "$output"
        hutch --quiet --isolation landlock --workspace cow -c "touch '$T/up' || touch started; until [ -e go ]; do sleep 0.05; done; echo box >other" &
        box=$!
        for _ in $(seq 200); do compgen -G "$HOME/.local/state/hutch/boxes/*/0/copy/ws/started" >/dev/null && break; sleep 0.05; done
        echo host >>d/e/c
        touch "$(compgen -G "$HOME/.local/state/hutch/boxes/*/0/copy/ws/started" | sed 's/started$/go/')"
        wait $box
        run hutch diff
        [[ $output == *b/other* && $output != *d/e/c* ]] || differs "$output"
        hutch apply >/dev/null
        [ "$(cat d/e/c)" = $'c\nhost' ] || differs "the host's change was lost"
        agree
}

@test "landlock: what the box changed in its copy outlives a kill -9" {
        tree
        "$HUTCH_BUILD/hutch" --isolation landlock --workspace cow -c "echo late >late; touch up; sleep $NAP" &
        for _ in $(seq 200); do compgen -G "$HOME/.local/state/hutch/boxes/*/0/copy/ws/up" >/dev/null && break; sleep 0.05; done
        kill -KILL $!
        wait $! || :
        for _ in $(seq 200); do pgrep -f "sleep $NAP" >/dev/null || break; sleep 0.05; done
        run hutch diff
        [[ $output == *"+late"* ]] || differs "$output"
        ! compgen -G "$HOME/.local/state/hutch/boxes/*/0/copy" >/dev/null || differs "the copy is left"
        hutch discard
        [ -z "$(ls "$HOME/.local/state/hutch/boxes")" ]
        agree
}

@test "landlock: the box reaches its copy and neither the workspace nor the rest of hutch's state" {
        tree
        run hutch --isolation landlock --workspace cow -c "cat '$PWD/b'; ls '$PWD' '$HOME/.local/state/hutch/boxes' ../..; touch ../x; echo over >../../upper/b; ln ../../meta m"
        [[ $output != b* && $output != *meta$'\n'* && $output == *"Permission denied"* ]] || differs "$output"
        run hutch diff
        [[ $output == *"no box has changes"* ]] || differs "$output"
        agree
}

# ---- sessions ----

stays() { # OPTIONS…: a session keeps its shell, ends its jobs, and cannot change the channel
        hutch session start "$@" s >/dev/null
        hutch session run s -c 'x=5; f() { echo F; }; cd d; sleep 1000 & true'
        run hutch session run s -c 'echo $x $(basename $PWD); f; jobs; cat <(echo pipe); touch made; chmod 600 made'
        [[ $output == $'5 d\nF\n'*Running*$'\npipe' ]] || differs "$output"
        run hutch session run --timeout 500ms s -c "sleep $NAP"
        [ "$status" -eq 124 ]
        run hutch session run s -c 'kill %1; wait; echo $x'
        grep -qx 5 <<<"$output" || differs "$output"
}
@test "session: on landlock, with a copy-on-write workspace" {
        tree
        stays --isolation landlock
        run hutch session run s -c 'c=$__hutch_channel; for f in "$c/run" "$c/prelude"; do echo x >"$f"; rm "$f"; mv "$f" "$f.x"; chmod 700 "$f"; : >"$c/fresh"; ln -s /etc/passwd "$c/link"; done 2>&1; ls "$c"; kill -0 '$$
        [[ $output != *fresh$'\n'* && $output != *$'\nlink\n'* && $output != *$'\nrun.x'* && $output == *"not permitted"* ]] || differs "$output"
        run hutch session run --json s -c 'echo y >made'
        [[ $output == *'"created":[]'*'/d/made"]'* ]] || differs "$output"
        hutch session stop s
        [ ! -e d/made ]
        hutch apply >/dev/null
        [ -e d/made ]
        for _ in $(seq 100); do compgen -G "/tmp/hutch-box-$(id -u)-*" >/dev/null || break; sleep 0.05; done
        ! pgrep -f "sleep $NAP" || differs "a process is left"
        agree
}

@test "session: on none, which has no copy-on-write" {
        tree
        stays --isolation none --workspace rw
        hutch session stop s
        run hutch session start --isolation none s
        told 125 "--workspace rw"
        agree
}

@test "session: a fork on landlock works in a copy of its own" {
        tree
        hutch session start --isolation landlock s >/dev/null
        hutch session run s -c 'echo 1 >first; cd d'
        hutch fork --session s twin >/dev/null
        hutch session run twin -c 'cat ../first; echo 2 >../second'
        run hutch session run s -c 'ls ..; pwd'
        [[ $output == *first* && $output != *second* ]] || differs "$output"
        hutch session reset s
        run hutch session run s -c 'pwd; ls'
        [[ $output != *first* && $output == *big* ]] || differs "$output"
        hutch session stop s && hutch session stop twin
        agree
}

@test "auto: a session falls back to landlock as well, and a terminal reads of it once" {
        tree
        deny unshare=EPERM clone3=EPERM -- "$HUTCH_BUILD/hutch" session start s >/dev/null
        run hutch session run --json s -- true
        [[ $output == *'"backend":"landlock"'* ]] || differs "$output"
        hutch session stop s
        run deny unshare=EPERM clone3=EPERM -- script -qec "$HUTCH_BUILD/hutch true; $HUTCH_BUILD/hutch true" /dev/null
        [ "$(grep -c "the backend is 'landlock'" <<<"$output")" -eq 1 ] || differs "$output"
        agree
}

@test "auto: landlock where user namespaces are refused, with the reason in explain and the result" {
        run deny unshare=EPERM clone3=EPERM -- "$HUTCH_BUILD/hutch" --json -- true
        [[ $output == *'"backend":"landlock"'* && $output == *'"code":"backend_chosen","severity":"info"'*"user namespaces are not available"* ]]
        run deny unshare=EPERM clone3=EPERM -- "$HUTCH_BUILD/hutch" explain -- true
        [[ $output == *"backend   landlock"* && $output == *"the backend is 'landlock': user namespaces are not available"* ]]
        [ "${HUTCH_BACKEND:-}" != landlock ] || skip 'user namespaces are refused here: there is nothing that auto would take first'
        run hutch --json -- true
        [[ $output == *'"backend":"namespace"'* ]]
}

@test "auto: neither namespaces nor Landlock: refused, and never none" {
        run deny unshare=EPERM landlock_create_ruleset -- "$HUTCH_BUILD/hutch" touch ran
        told 125 "hutch doctor"
        [ ! -e ran ]
        agree
}

# bats test_tags=root
@test "landlock: root reads no secret of /etc, and writes nothing of the system" {
        run hutch --isolation landlock --json -- sh -c 'cat /etc/shadow /etc/gshadow; cat /etc/passwd | head -1; echo x >/etc/x; echo x >/proc/sys/kernel/hostname; chmod 777 /etc/passwd'
        [[ $output == *root:*:0:0:* && $output != *'root:$'* && $output == *'"filesystem":"degraded"'* ]]
        [ ! -e /etc/x ]
        run hutch --isolation landlock -- cat /etc/shadow
        [ "$status" -ne 0 ]
}
