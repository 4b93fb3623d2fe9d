#!/bin/bash
# Limits on real cgroup v2: as an ordinary user in a scope that the user's manager delegates, as root where root may write.
#
# In short, for root, where only the way to the group differs, a part of it.
#
# Everything that runs away here is bounded by itself as well, so that a limit that does not hold costs seconds, not the machine.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1

# use MIB: perl text that reads that many from /dev/zero, one at a time, and keeps them.
use() { echo "open Z, '</dev/zero'; sysread Z, \$x[\$_], 1 << 20 for 1..$1;"; }
groups() { find /sys/fs/cgroup -type d -printf '%P\n' | grep -vE '\.(service|slice)$' | sort; } # those two are systemd's own
no_new_groups() { # those of $1 and no others, soon
        local now
        for _ in {1..20}; do
                now=$(groups | comm -13 "$1" -)
                [ -n "$now" ] || return 0
                sleep 0.25
        done
        echo "$now"
        return 1
}
ended() { # ended WHAT REASON: the last run was stopped by this limit, which the cgroup enforced
        same "$1: kill_reason" "$2" "${got[kill_reason]}" "$result"
        same "$1: exit status 137" "137 137 true" "$status ${got[exit_code]} ${got[killed]}"
        same "$1: enforced" enforced "${got[$2]}"
}
# measured WHAT LOW HIGH FIELD OPTION… COMMAND: a run of which a number is to lie between two others. The machine below this one may be
# busy with something else at that moment, which nothing here can see: five times, then it counts.
measured() {
        local what=$1 low=$2 high=$3 field=$4 number
        shift 4
        for _ in 1 2 3 4 5; do
                box "$@"
                number=${got[$field]%%.*}
                [[ ! $number =~ ^[0-9]+$ ]] || [ "$number" -lt "$low" ] || [ "$number" -gt "$high" ] || break
                echo "# $what: $number"
        done
        between "$what" "$low" "$high" "$number" "$result"
}
nobody_runs() { # nobody_runs PATTERN: soon
        for _ in {1..20}; do
                pgrep -f "$1" >/dev/null || return 0
                sleep 0.1
        done
        pgrep -af "$1"
        return 1
}

all() { [ "$(id -u)" != 0 ] || [ "${HUTCH_SHORT:-}" != 1 ]; }

groups >before
own=$(cat /proc/self/cgroup)

# ---- a neighbour, which has to go on whatever happens next to it, like the same loop outside of any box ----
mkdir neighbour
loop='while sleep 0.2; do echo >>ticks; done'
sh -c "$loop" &
control=$!
"$hutch" run -d neighbour --memory 64M --pids 16 -c "$loop" >neighbour.log 2>&1 &
neighbour=$!
for _ in {1..50}; do
        [ ! -s neighbour/ticks ] || break
        sleep 0.2
done
check "the neighbour runs" test -s neighbour/ticks
: >ticks
: >neighbour/ticks

# ---- memory ----
box --memory 64M -- perl -e "$(use 1024)"
ended "memory bomb" memory
between "memory bomb: peak_memory_bytes is the limit" $((60 << 20)) $((65 << 20)) "${got[peak]}" "$result"

if all; then
        box --memory 256M -c "for i in \$(seq 20); do perl -e \"$(use 20 | sed 's/\$/\\$/g') sleep 4242\" & done; wait"
        ended "20 processes of 20 MB against 256M" memory
        check "20 processes of 20 MB: the whole tree is gone" nobody_runs 'sleep 4242'
        box --memory 256M -c "for i in 1 2 3 4 5 6; do perl -e \"$(use 20 | sed 's/\$/\\$/g') sleep 2\" & done; wait; echo fine"
        same "6 processes of 20 MB fit into 256M" "0 null fine" "$status ${got[kill_reason]} ${got[stdout]}" "$result"
        box --memory 512M -- perl -e "$(use 100)"
        same "100 MB under 512M: ends well" "0 null" "$status ${got[kill_reason]}" "$result"
        between "100 MB under 512M: peak_memory_bytes within 10 %" $((100 << 20)) $((110 << 20)) "${got[peak]}" "$result"
        # A limit holds for what a process left behind as well.
        box --memory 64M -c "setsid perl -e \"$(use 1024 | sed 's/\$/\\$/g')\" & sleep 100"
        ended "memory bomb in a session of its own" memory
fi

# ---- processes ----
# shellcheck disable=SC2016
box --pids 40 -c 'i=0; while [ $i -lt 400 ]; do sleep 4243 & i=$((i + 1)); done; wait'
ended "400 processes against 40" pids
check "400 processes: the whole tree is gone" nobody_runs 'sleep 4243'
if [ "${got[kill_reason]}" = pids ]; then
        box --pids 40 --timeout 100s -c 'bomb() { bomb | bomb & }; bomb; sleep 90'
        ended "fork bomb" pids
else
        say "not ok" "fork bomb" "not tried: the bounded one was not stopped"
fi
if all; then
        # shellcheck disable=SC2016
        box --pids 40 -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait; echo fine'
        same "10 processes fit into 40" "0 null fine" "$status ${got[kill_reason]} ${got[stdout]}" "$result"
fi

# ---- processor ----
measured "spinner with --cpu-time 1s: cpu_ms" 900 1800 cpu_ms --cpu-time 1s --timeout 100s -c 'while :; do :; done'
same "spinner with --cpu-time 1s: kill_reason" cpu "${got[kill_reason]}" "$result"
same "spinner with --cpu-time 1s: exit status 137" 137 "$status"

if all; then
        measured "three spinners share --cpu-time 2s: cpu_ms" 1900 3200 cpu_ms --cpu-time 2s --timeout 100s \
                -c 'for i in 1 2 3; do (while :; do :; done) & done; wait'
        same "three spinners share --cpu-time 2s: kill_reason" cpu "${got[kill_reason]}" "$result"
fi

# Two seconds by the wall clock; prints the part of them that it (and a child, if asked) had the processor.
# shellcheck disable=SC2016
spin='use Time::HiRes "time"; sub used { my $t = 0; $t += $_ for times; $t } $was = used; $e = time + 2; $child = fork if $ARGV[0];
        1 while time < $e; exit if defined $child && !$child; wait; printf "%.0f", (used() - $was) * 50'
measured "spinner with --cpu 50%: part of two seconds, in per cent" 40 60 stdout --cpu 50% -- perl -e "$spin" 0
same "spinner with --cpu 50%: ends well, enforced" "0 enforced" "$status ${got[cpu]}" "$result"
check "spinner with --cpu 50%: the result says that it waited" grep -qE 'the box waited [0-9]+ ms of its [0-9]+ ms for a processor' result.json
if all; then
        measured "two spinners with --cpu 50%: part of two seconds, in per cent" 40 60 stdout --cpu 50% -- perl -e "$spin" 1
fi
# The control: more than the limit would have given it, whatever else this machine and the one below do.
measured "spinner without --cpu: part of two seconds, in per cent" 61 105 stdout --memory 64M -- perl -e "$spin" 0
check "spinner without --cpu: nothing is said of waiting" sh -c '! grep -q "the box waited" result.json'
if all; then
        for _ in 1 2 3 4 5; do
                # shellcheck disable=SC2016
                box --memory 64M -- perl -e '1 while (times)[0] < 3; $t = 0; $t += $_ for times; printf "%d", $t * 1000'
                low=$((${got[stdout]:-0} * 98 / 100)) high=$((${got[stdout]:-0} * 110 / 100)) number=${got[cpu_ms]%%.*}
                [ "${number:-0}" -lt $low ] || [ "${number:-0}" -gt $high ] || break
        done
        between "cpu_ms within 10 % of what the program counted" $low $high "${got[cpu_ms]}" "$result"
fi

# ---- disk ----
for place in /tmp $(! all || echo /var/tmp /dev/shm); do
        # shellcheck disable=SC2016
        box --disk 16M -- sh -c 'for i in $(seq 200); do head -c 1M /dev/zero >>$0/filler; done; sleep 60; echo over' $place
        ended "disk filler in $place" disk
done
box --disk 16M -c 'head -c 8M /dev/zero >/tmp/filler && echo fine'
same "8 MB fit into --disk 16M" "0 null fine" "$status ${got[kill_reason]} ${got[stdout]}" "$result"

# A copy-on-write layer: a watch on disk. In memory it would have a wall, but this kernel cannot keep one there.
mkdir layered
box -d layered --workspace cow --disk 16M --ephemeral -- touch ran
same "a layer in memory is refused" "125 guarantee_unavailable" "$status ${got[code]}" "$result"
check "a layer in memory is refused: the line says why" grep -q "^hutch: .*in memory: that needs Linux 6.6; without --ephemeral it is kept in the state directory" stderr
box -d layered --workspace cow --disk 16M --allow-degraded -- sh -c 'head -c 40M /dev/zero >filler; sleep 100'
same "disk filler in a layer on disk: it is watched" "137 disk degraded" "$status ${got[kill_reason]} ${got[disk]}" "$result"

# ---- all at once ----
pids=()
for i in {1..8}; do
        "$hutch" run --memory 64M --pids 20 --cpu 50% --json -c "sleep 2; echo $i" >"many.$i" 2>&1 </dev/null &
        pids+=($!)
done
wait "${pids[@]}"
same "eight limited boxes at once" "1 2 3 4 5 6 7 8 " "$(cat many.* | jq -rj 'select(.enforced.memory == "enforced" and .enforced.pids == "enforced") | .stdout' 2>&1 | tr '\n' ' ')" \
        "$(head -c 200 many.1)"

# ---- what is left, and for whom ----
check "the neighbour still runs" kill -0 $neighbour
between "the neighbour's ticks in per cent of those outside" 50 110 "$(($(wc -l <neighbour/ticks) * 100 / ($(wc -l <ticks) + 1)))"
kill -TERM $control $neighbour 2>/dev/null
wait $control $neighbour 2>/dev/null
check "no cgroup is left behind" no_new_groups before
same "the caller was not moved" "$own" "$(cat /proc/self/cgroup)"

# ---- hutch killed ----
"$hutch" run --memory 64M -- sleep 4244 &
victim=$!
for _ in {1..100}; do
        ! pgrep -xf 'sleep 4244' >/dev/null || break
        sleep 0.1
done
check "a box to be killed runs" pgrep -xf 'sleep 4244'
kill -KILL $victim 2>/dev/null
wait $victim 2>/dev/null
check "kill -9 of hutch: no process is left" nobody_runs 'sleep 4244'
box --memory 64M -- true
same "kill -9 of hutch: the next box starts" "0 enforced" "$status ${got[memory]}" "$result"
check "kill -9 of hutch: no cgroup is left after the next start" no_new_groups before

# ---- a limit that cannot be had ----
if [ "$(id -u)" != 0 ]; then
        timeout 60 env XDG_RUNTIME_DIR=/nonexistent DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent "$hutch" run --memory 64M -- echo ran >out 2>err
        same "no user manager to ask: --memory is refused" "125  1" "$? $(cat out) $(grep -c '^hutch: ' err)" "$(cat err)"
        timeout 60 env XDG_RUNTIME_DIR=/nonexistent DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent \
                "$hutch" run --memory 64M --allow-degraded --json -- echo ran >out 2>err
        same "no user manager to ask: --allow-degraded runs and says so" "0 ran degraded" "$? $(jq -r '.stdout + " " + .enforced.memory' out | xargs)" "$(cat out err)"
fi
finish
