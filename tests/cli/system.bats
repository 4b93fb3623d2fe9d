# `--cow /`: write wherever root could, and keep nothing of it on the host.
load helper

more_setup() {
        unset XDG_STATE_HOME
        # One skeleton serves all tests of this file.
        export XDG_CACHE_HOME=$HUTCH_TMP/cache
        mkdir -p "$XDG_CACHE_HOME"
        echo mine >kept
        [ -d /usr/bin ] || skip "needs a /usr"
}

# What the host has where a box writes. Of directories only names and modes: their times and sizes change when another process works in them.
host() {
        find /usr /usr/bin /usr/lib /usr/local /usr/local/bin /etc /opt /var/lib/dpkg -maxdepth 1 \( -type d -printf '%p %M %U:%G\n' -o -printf '%p %M %U:%G %s %T+ %l\n' \) || :
        find / -mindepth 1 -maxdepth 1 -printf '%p %M %U:%G %l\n'
        cat /etc/passwd /var/lib/dpkg/status || :
}
inside() { hutch --cow / "$@" 2>"$T/said" || differs "[$*] ended with $?: $(cat "$T/said")"; }

@test "new files, directories, replaced and removed ones, wherever root could; the host is as it was" {
        host >"$T/before" 2>/dev/null
        inside -c 'set -e
                echo new >/usr/bin/new; mkdir -p /usr/local/lib/x/y /etc/app.d /opt/tool /var/lib/app /foo/bar
                echo 1 >/foo/bar/f; echo 2 >/etc/app.d/f; echo 3 >/opt/tool/f; echo 4 >/var/lib/app/f; echo 5 >/file
                cp /usr/bin/env /usr/bin/env.new; mv /usr/bin/env.new /usr/bin/env; rm /usr/bin/yes; rm -r /usr/share/doc
                [ -O /usr/bin/env ] && [ ! -e /usr/bin/yes ] && [ ! -e /usr/share/doc ] && /usr/bin/env true
                cat /usr/bin/new /foo/bar/f /etc/app.d/f /opt/tool/f /var/lib/app/f /file' >"$T/out"
        [ "$(tr '\n' ' ' <"$T/out")" = "new 1 2 3 4 5 " ] || differs "$(cat "$T/out")"
        host 2>/dev/null | diff "$T/before" - >"$T/changed" || differs "the host changed: $(cat "$T/changed")"
        [ -z "$(find "$HOME/.local/state/hutch/boxes" -mindepth 1 2>/dev/null)" ] || differs "left: $(find "$HOME/.local/state/hutch/boxes")"
        agree
}

@test "it implies a copy-on-write workspace; only that is kept and reviewed" {
        inside -c 'echo changed >kept; echo >/usr/x; echo >/etc/x'
        [ "$(cat kept)" = mine ] || differs "the workspace was written"
        [[ $(cat "$T/said") == *"kept 1 change "* ]] || differs "$(cat "$T/said")"
        [ "$(hutch diff --name-only)" = kept ] || differs "diff: $(hutch diff --name-only)"
        # Whoever goes on in the box finds its system as it was left.
        inside --box "$(sed -n 's/.*hutch: kept .* in box \([^ ]*\) .*/\1/p' "$T/said")" -c '[ -e /usr/x ] && [ -e /etc/x ]'
        hutch apply >/dev/null
        [ "$(cat kept)" = changed ] || differs "not applied"
        [ -z "$(find "$HOME/.local/state/hutch/boxes" -mindepth 1 2>/dev/null)" ] || differs "a box is left"
        inside --workspace ro -c '! echo >kept; true' 2>/dev/null
        inside --workspace none -c '[ ! -e /workspace/kept ]'
        ! memory_layers || inside --ephemeral -c 'echo >/usr/x && echo >x'
        [ ! -e x ] || differs "ephemeral wrote to the workspace"
        agree
}

@test "it shows no more of the host than the plain box does" {
        run hutch --cow / -c "ls -A $HOME; cat $HOME/.ssh/id_rsa; ls -d /home/* /root/* /boot/* /srv/* /mnt/* /media/* /lost+found /sys/* | grep -v ^${HOME%/*/*/*}"' 2>/dev/null
                ls -d /var/log/*.log /var/lib/postgresql /var/lib/docker /var/spool/* /var/www /var/mail/* /var/backups/* /var/tmp/* 2>/dev/null; true' 2>/dev/null
        output=$(grep -v -e 'No such file' <<<"$output") || :
        [ -z "$output" ] || differs "shown: $output"
        # What the host's shadow holds is not what the box has.
        run hutch --cow / -c 'cat /etc/shadow'
        [ "$output" = "root:*:19000:0:99999:7:::" ] || differs "shadow: $output"
        # A directory that the caller cannot look into is an empty one of the box's.
        if [ -d /etc/ssl/private ]; then
                run hutch --cow / -c 'ls -A /etc/ssl/private | wc -l; echo key >/etc/ssl/private/k; cat /etc/ssl/private/k'
                [ "$output" = $'0\nkey' ] || differs "private: $output"
        fi
        agree
}

@test "files of the host can be replaced, not written, and keep their owner's secrets" {
        inside -c '! echo x >>/etc/services 2>/dev/null && cp /etc/services /etc/s && echo x >>/etc/s && mv /etc/s /etc/services && tail -n 1 /etc/services' >"$T/out"
        [ "$(cat "$T/out")" = x ] || differs "$(cat "$T/out")"
        ! grep -qx x /etc/services || differs "the host's file was written"
        for unreadable in /var/cache/debconf/passwords.dat /etc/gshadow /etc/sudoers; do
                [ -e $unreadable ] || continue
                run hutch --cow / -c "cat $unreadable 2>&1 | grep -v -e denied -e '^root:\*::\$'"
                [ -z "$output" ] || differs "$unreadable: $output"
        done
        agree
}

@test "rm -rf --no-preserve-root / harms nothing, and the box is gone" {
        ! am_root || return 0 # the ordinary user's pass runs it
        local before
        # The canary first: that which a box removes is there afterwards, in the workspace and in the system.
        mkdir deep && echo 1 >deep/file
        inside -c 'rm -rf deep kept /usr/share /etc/ssl; ls /usr /etc' >"$T/out"
        [ -e deep/file ] && [ -e kept ] && [ -d /usr/share ] && [ -d /etc/ssl ] && [ -z "$(grep -x -e share -e ssl "$T/out")" ] || {
                echo "the walls do not stand: $(cat "$T/out")"
                return 1
        }
        hutch discard
        before=$(host; find "$T/ws" "$HOME" -printf '%p %y %m %s\n' | grep -v -e "$HOME/.local" | sort)
        run timeout 300 "$HUTCH_BUILD/hutch" --cow / -- /bin/rm -rf --no-preserve-root /
        [ "$status" -lt 125 ] || differs "status $status: $(tail -n 3 <<<"$output")"
        [ "$before" = "$(host; find "$T/ws" "$HOME" -printf '%p %y %m %s\n' | grep -v -e "$HOME/.local" | sort)" ] || differs "the host is not as it was"
        run hutch --cow / -c 'ls /usr/bin/env && cat kept'
        [ "$output" = $'/usr/bin/env\nmine' ] || differs "the next box: $output"
        hutch discard
        [ -z "$(find "$HOME/.local/state/hutch/boxes" -mindepth 1)" ] || differs "left: $(find "$HOME/.local/state/hutch/boxes")"
        agree
}

@test "the skeleton: made once, by one of many; for its owner alone; renewed, and swept when nobody holds it" {
        export XDG_CACHE_HOME=$T/cache
        local keys i pids=()
        for i in 1 2 3 4; do
                "$HUTCH_BUILD/hutch" --cow / --workspace none -c 'touch /usr/bin/x && echo ok' >"$T/out.$i" 2>&1 &
                pids+=($!)
        done
        wait "${pids[@]}"
        [ "$(cat "$T"/out.*)" = $'ok\nok\nok\nok' ] || differs "at once: $(cat "$T"/out.*)"
        keys=("$T"/cache/hutch/skeleton/*.lock)
        [ ${#keys[@]} -eq 1 ] || differs "not one: ${keys[*]}"
        [ "$(stat -c %a "$T/cache/hutch/skeleton")" = 700 ] || differs "others can read it"
        [ -z "$(find "$T/cache/hutch/skeleton" -maxdepth 1 -name '.*' -mindepth 1)" ] || differs "unfinished: $(ls -A "$T/cache/hutch/skeleton")"
        # Another key, of a host that has changed since; one is held by a box, one is not, one was left half made.
        mkdir -p "$T"/cache/hutch/skeleton/{held,free,.new-dead}/usr
        touch "$T"/cache/hutch/skeleton/{held,free}.lock
        rm -rf "${keys[0]%.lock}"
        flock -s "$T/cache/hutch/skeleton/held.lock" "$HUTCH_BUILD/hutch" --cow / --workspace none -- /bin/true
        [ -d "${keys[0]%.lock}/usr/bin" ] || differs "not made anew"
        [ -d "$T/cache/hutch/skeleton/held" ] || differs "one that is held was removed"
        # One that nobody holds is followed up, and is then as one that was made anew.
        local key=${keys[0]%.lock} older=$T/cache/hutch/skeleton/older made inode
        made=$(cd "$key" && find . -printf '%P %y %m\n' | sort)
        rm -rf "$T"/cache/hutch/skeleton/held*
        mv "$key" "$older" && mv "$key.lock" "$older.lock"
        inode=$(stat -c %i "$older/usr")
        rmdir "$(find "$older/usr" -mindepth 1 -type d -empty -print -quit)"
        mkdir "$older/usr/gone" && chmod 700 "$older/usr/bin" && echo old >"$older/var/lib/dpkg/old"
        find "$older/usr" -type d -exec touch {} + # as if the host's had another ctime since
        inside -- /bin/true
        [ "$(stat -c %i "$key/usr")" = "$inode" ] || differs "made anew, not followed up"
        [ "$(cd "$key" && find . -printf '%P %y %m\n' | sort)" = "$made" ] || differs "not as one that is made anew: $(diff <(cd "$key" && find . -printf '%P %y %m\n' | sort) - <<<"$made" | head)"
        [ ! -e "$T/cache/hutch/skeleton/free" ] && [ ! -e "$T/cache/hutch/skeleton/free.lock" ] && [ ! -e "$T/cache/hutch/skeleton/.new-dead" ] || differs "left: $(ls -A "$T/cache/hutch/skeleton")"
        agree
}

@test "a terminal reports a preparation that takes more than a second" {
        export XDG_CACHE_HOME=$T/slow
        local at_terminal="script -qec '$HUTCH_BUILD/hutch %s --cow / --workspace none true' /dev/null < <(exec sleep 5 2>/dev/null 3>&-)"
        said() { # said COMMAND: what it prints in two seconds, while another process makes the skeleton
                timeout 2 bash -c "$1" 2>&1 || true
        }
        mkdir -p "$T/slow/hutch/skeleton"
        exec 9>"$T/slow/hutch/skeleton/lock"
        flock 9
        # shellcheck disable=SC2059
        [[ $(said "$(printf "$at_terminal" "")") == *"note: making the system's directories copy-on-write takes some seconds"* ]] || differs "a terminal: nothing reported"
        # shellcheck disable=SC2059
        [[ $(said "$(printf "$at_terminal" --quiet)") != *copy-on-write* ]] || differs "--quiet: reported"
        expect "no terminal" "$(said "exec $HUTCH_BUILD/hutch --cow / --workspace none true")" ""
        expect json "$(said "exec $HUTCH_BUILD/hutch run --json-lines --cow / --workspace none true" | jq -r .code)" system_prepared
        exec 9>&-
        agree
}

@test "what cannot be had is refused or told" {
        refused "--cow /:/x | it would give the box the host's /
--cow / --isolation none | copy-on-write is not supported with --isolation none"
}

@test "no box may have the cache, in which the skeleton is" {
        mkdir -p "$HOME/.cache/hutch"
        unset XDG_CACHE_HOME
        refused "--rw \$HOME/.cache | hutch's own directory
--rw \$HOME/.cache/hutch | hutch's own directory"
}

@test "as root of the box, and as its user; runs of one box see each other's files only within it" {
        prints "--cow / --as root | touch /usr/bin/r /r && id -u && stat -c %u /usr/bin/r | 0 0
--cow / --as user | touch /usr/bin/u && id -un && stat -c %U /usr/bin/u | user user
--cow / --as user | if [ -e /usr/bin/u ]; then echo there; else echo none; fi | none"
}

@test "a workspace and further paths in /var, and rules in the system's directories" {
        local place
        place=$(mktemp -d /var/tmp/hutch-cow.XXXXXX)
        echo there >"$place/f"
        mkdir "$place/ro" && echo ro >"$place/ro/f"
        run hutch --cow / -d "$place" --ro "$place/ro:/var/spool/app" --hide /usr/share/doc --ro /etc/ssl:/opt/new/ssl --tmpfs /var/cache/x -c 'cat f /var/spool/app/f; echo new >f; pwd; ls -A /usr/share/doc | wc -l
                ! touch /var/spool/app/x 2>/dev/null && ! mv /usr/share /usr/s 2>/dev/null && ! rmdir /usr/share/doc 2>/dev/null && touch /var/cache/x/y /usr/share/z && ls /opt/new'
        [ "${lines[*]:0:5}" = "there ro $place 0 ssl" ] || differs "$output"
        [ "$(cat "$place/f")" = there ] || differs "the workspace was written"
        rm -rf "$place"
        hutch discard --older-than 0s >/dev/null 2>&1 || :
        place=/var/tmp/hutch-home-$$
        [ "$(HOME=$place hutch --cow / --workspace none -c 'touch ~/x && cd && pwd')" = "$place" ] || differs "a home in /var"
        rm -rf "$place"
        agree
}
