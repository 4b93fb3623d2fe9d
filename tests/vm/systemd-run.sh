#!/bin/bash
# The systemd-run backend with a real user manager: what the unit keeps, what it shows, what is left of it.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1
XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
HOME=$(getent passwd "$(id -u)" | cut -d: -f6) # the one that the manager knows
export XDG_RUNTIME_DIR HOME
nap=6$RANDOM.$$
mkdir -p ws "$HOME/.ssh" && echo key >"$HOME/.ssh/id_rsa" && cd ws || exit 1
hutch=("$HUTCH_BUILD/hutch" --isolation systemd-run)
units() { systemctl --user list-units --all --plain --no-legend 'hutch-*' | wc -l; }

check 'a box runs' "${hutch[@]}" true
"${hutch[@]}" sh -c 'echo made >made; exit 3'
same 'its status' 3 $?
same 'what it made' made "$(cat made)"
check 'the result reports the walls' sh -c '"$@" --json true | grep -q "\"backend\":\"systemd-run\",\"enforced\":{\"filesystem\":\"enforced\",\"network\":\"enforced\",\"processes\":\"enforced\""' - "${hutch[@]}"
same 'the home is empty' '' "$("${hutch[@]}" sh -c 'ls -A "$1" 2>/dev/null; cat "$1/.ssh/id_rsa" 2>/dev/null' - "$HOME")"
same 'the control: it is not' key "$(cat "$HOME/.ssh/id_rsa")"
check '/usr is read-only' sh -c '! "$@" sh -c "echo x >/usr/x || echo x >/etc/x || touch /usr/bin/true" 2>/dev/null' - "${hutch[@]}"
same 'there is no network' lo "$("${hutch[@]}" --env PATH sh -c 'sed -n "s/^ *\([a-z0-9]*\):.*/\1/p" /proc/net/dev 2>/dev/null || echo lo')"
sleep "$nap" &
victim=$!
check 'no process of the host is signalled' sh -c '! "$@" 2>/dev/null' - "${hutch[@]}" kill -0 "$victim"
check 'the control: it can be' kill -0 "$victim"
kill "$victim"
check 'a word stays a word' sh -c '[ "$("$@")" = "\$(touch pwned)" ] && [ ! -e pwned ]' - "${hutch[@]}" printf %s '$(touch pwned)'

ANTHROPIC_API_KEY=secret-$nap "${hutch[@]}" --env ANTHROPIC_API_KEY sh -c 'echo "$ANTHROPIC_API_KEY"; sleep '"$nap" >up 2>"$scratch/err" &
pid=$!
for _ in {1..200}; do [ ! -s up ] || break; sleep 0.1; done
same 'the variable is there' "secret-$nap" "$(cat up)"
{ systemctl --user show 'hutch-*'; ps -eo args | grep -v "^sh -c\|^grep\|hutch --isolation"; for p in $(pgrep -u "$(id -u)"); do tr '\0' '\n' <"/proc/$p/environ"; done; } >"$scratch/shown" 2>/dev/null
same 'neither ps nor the unit shows it' 0 "$(grep -c "ANTHROPIC_API_KEY=secret-$nap" <(grep -v '^ANTHROPIC_API_KEY=' "$scratch/shown"))"
same 'the unit is there' 1 "$(units)"
kill -9 $pid
wait $pid 2>/dev/null
for _ in {1..200}; do [ "$(units)" != 0 ] || break; sleep 0.1; done
same 'after kill -9 no unit is left' 0 "$(units)"
same 'and no process' '' "$(pgrep -f "^sleep $nap")"
"${hutch[@]}" --timeout 1s sleep "$nap" 2>/dev/null
same 'a timeout' 124 $?
same 'leaves no unit' 0 "$(units)"
same 'a lack of memory' memory "$("${hutch[@]}" --json --memory 48M perl -e '$x = "a" x 200000000; print length $x' | jq -r .kill_reason)"
same 'too many processes' true "$("${hutch[@]}" --json --pids 5 sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait' | jq '.exit_code != 0')"

# The network of a unit, by a relay that enters its namespaces as their owner.
said() { # said OPTIONS… -- PYTHON: what it prints, and afterwards the denials
        "${hutch[@]}" --json "${@:1:$#-2}" python3 -c 'import errno, socket
def to(*a):
    try: return socket.create_connection(a, 20).recv(9)
    except OSError as e: return errno.errorcode.get(e.errno)
'"${!#}" | jq -r '.stdout + ([.denials[].target] | join(" "))'
}
python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True)
while True: c = s.accept()[0]; c.send(b"answer"); c.close()' >port &
server=$!
for _ in {1..300}; do [ ! -s port ] || break; sleep 0.1; done
port=$(cat port)
same 'net deny: the host is out of reach' ECONNREFUSED "$(said -- "print(to('127.0.0.1', $port))")"
same 'net open: the control' "b'answer'" "$(said --net open -- "print(to('127.0.0.1', $port))")"
same 'a port of the host' "b'answer'" "$(said --allow-host-port "$port" -- "print(to('127.0.0.1', $port))")"
same 'an allowlist refuses, and says what' $'ECONNREFUSED\n203.0.113.8:80' "$(said --allow-host 203.0.113.7 -- "print(to('203.0.113.8', 80))")"
kill $server
"${hutch[@]}" --json --publish 0:8123 python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 8123)); s.listen(); print("up", flush=True); s.accept()[0].send(b"in")' >"$scratch/result" &
pid=$!
for _ in {1..300}; do at=$(ss -Hltn 2>/dev/null | awk '$4 ~ /^127.0.0.1:/ { sub(/.*:/, "", $4); print $4 }' | tail -1); [ -z "$at" ] || break; sleep 0.1; done
same 'a published port' in "$(python3 -c "import socket, time
for i in range(200):
    data = b''
    try: data = socket.create_connection(('127.0.0.1', ${at:-1}), 20).recv(9)
    except OSError: pass
    if data: break
    time.sleep(0.2)
print(data.decode())")"
wait $pid
same 'no --net loopback in a unit' 125 "$("${hutch[@]}" --net loopback true 2>/dev/null; echo $?)"
same 'the network leaves no unit' 0 "$(units)"

mkdir 'odd name'
same 'a name that properties give a meaning is refused' 125 "$("${hutch[@]}" -d 'odd name' true 2>/dev/null; echo $?)"
same 'a further path' text "$(mkdir "$scratch/more" && echo text >"$scratch/more/f" && "${hutch[@]}" --ro "$scratch/more" cat "$scratch/more/f")"

"$HUTCH_BUILD/hutch" session start --isolation systemd-run --workspace rw s >/dev/null 2>"$scratch/err"
"$HUTCH_BUILD/hutch" session run s -c 'x=5; sleep 1000 &'
same 'a session keeps its shell' 5 "$("$HUTCH_BUILD/hutch" session run s -c 'echo $x')" "$(cat "$scratch/err")"
"$HUTCH_BUILD/hutch" session stop s >/dev/null
same 'and leaves no unit' 0 "$(units)"

# A manager that ignores a property, as some do with what they cannot do.
mkdir "$scratch/bin"
real=$(command -v systemd-run)
for ignored in TemporaryFileSystem ProtectSystem PrivateUsers PrivateNetwork; do
        printf '#!/bin/bash\nargs=()\nwhile [ $# -gt 0 ]; do if [ "$1" = -p ] && [[ $2 = %s=* ]]; then shift; else args+=("$1"); fi; shift; done\nexec %q "${args[@]}"\n' \
                "$ignored" "$real" >"$scratch/bin/systemd-run"
        chmod +x "$scratch/bin/systemd-run"
        PATH=$scratch/bin:$PATH "${hutch[@]}" touch ran 2>"$scratch/err"
        same "$ignored ignored: refused" "125 no" "$? $([ -e ran ] && echo yes || echo no)" "$(cat "$scratch/err")"
done
for limit in MemoryMax:memory:48M CPUQuota:cpu:50% TasksMax:pids:20; do
        IFS=: read -r ignored name value <<<"$limit"
        printf '#!/bin/bash\nargs=()\nwhile [ $# -gt 0 ]; do if [ "$1" = -p ] && [[ $2 = %s=* ]]; then shift; else args+=("$1"); fi; shift; done\nexec %q "${args[@]}"\n' \
                "$ignored" "$real" >"$scratch/bin/systemd-run"
        PATH=$scratch/bin:$PATH "${hutch[@]}" "--$name" "$value" touch ran 2>"$scratch/err"
        same "$ignored ignored: refused" "125 no" "$? $([ -e ran ] && echo yes || echo no)" "$(cat "$scratch/err")"
        same "$ignored ignored: degraded where that is accepted" degraded "$(PATH=$scratch/bin:$PATH "${hutch[@]}" --json --allow-degraded "--$name" "$value" true | jq -r ".enforced.$name")"
done
rm -rf "$HOME/.ssh"
finish
