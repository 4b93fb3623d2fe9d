# What the benchmarks with peers share; sourced by bench/run and bench/session, which set src and build. shellcheck shell=bash
#
# $work is a directory that is gone at the end, $work/peers the list of those that take part: a file for each peer with its name, its
# number of runs and its command, a line each; or NAME.missing with the reason. Root installs peers, starts a docker daemon of its
# own and measures as $user; anybody else does with what is there.
# shellcheck disable=SC2154
user=hutch-test
# Not below /tmp: codex refuses a home there.
work=$(mktemp -d /var/tmp/hutch-bench.XXXXXX) || exit 1
dockerd='' docker=()
finish() {
        # podman leaves a process behind that keeps its user namespace.
        [ -s "$work/run/libpod/tmp/pause.pid" ] && kill "$(cat "$work/run/libpod/tmp/pause.pid")" 2>/dev/null
        [ -n "$dockerd" ] && "${docker[@]}" rm -f stays >/dev/null 2>&1
        [ -n "$dockerd" ] && kill "$dockerd" 2>/dev/null && wait "$dockerd" 2>/dev/null
        rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
chmod 755 "$work"
mkdir "$work/home" "$work/out" "$work/peers" "$work/bin"
mkdir -m 700 "$work/run"

say() { echo "# $*" >&2; }
root() { [ "$(id -u)" = 0 ]; }
has() { command -v "$1" >/dev/null; }
as_user() {
        if root; then
                local first=()
                [ "$1" = chrt ] && first=("${@:1:3}") && shift 3 # while it is still allowed
                (cd "$work/home" && "${first[@]}" setpriv --reuid $user --regid $user --clear-groups env -i PATH="$PATH" HOME="$work/home" XDG_RUNTIME_DIR="$work/run" \
                        USER=$user LOGNAME=$user LANG=C.UTF-8 "$@")
        else
                (cd "$work/home" && env HOME="$work/home" XDG_RUNTIME_DIR="$work/run" "$@")
        fi
}

# peer NAME RUNS ARGV…   NAME takes part;   no_peer NAME REASON   it does not.   try SECONDS ARGV…   does it work at all?
peer() { printf '%s\n' "$@" >"$work/peers/$1"; }
no_peer() { printf '%s\n' "$2" >"$work/peers/$1.missing"; say "without $1: $2"; }
try() { as_user timeout "$1" "${@:2}" >/dev/null 2>"$work/why" </dev/null; }
offer() { # offer NAME RUNS ARGV…
        local why
        if try 30 "${@:3}"; then peer "$@"; return; fi
        why=$(grep -iE 'error|fail|denied|cannot|not ' "$work/why" | tail -n 1)
        why=${why:-$(tail -n 1 "$work/why")}
        no_peer "$1" "it does not run here: $(printf %s "${why:-no message}" | sed "s#$work#…#g" | cut -c 1-160)"
}
package() { # package NAME PACKAGE…   what a peer needs; the peer's first package names the peer's program
        if root && ! timeout 90 "$src/tools/need" "${@:2}" >/dev/null 2>&1; then
                no_peer "$1" "its Debian packages cannot be installed here"
                return 1
        fi
        return 0
}

add_firejail() {
        package firejail firejail || return
        has firejail || { no_peer firejail "not installed"; return; }
        offer firejail 40 firejail --quiet --noprofile --private --net=none --caps.drop=all --seccomp --nonewprivs /bin/true
}

# A root of its own for containers: these programs and what they are linked to.
make_rootfs() { # make_rootfs PROGRAM…
        local file
        mkdir -p "$work"/rootfs/{bin,dev,etc,proc,run,sys,tmp}
        # shellcheck disable=SC2046
        for file in "$@" $(ldd "$@" | grep -o '/[^ ]*' | tr -d : | sort -u); do
                mkdir -p "$work/rootfs$(dirname "$file")"
                cp -L "$file" "$work/rootfs$file"
        done
        root && chown -R $user: "$work/rootfs"
}

add_podman() {
        local runtime
        package podman podman runc uidmap || return
        has podman || { no_peer podman "not installed"; return; }
        for runtime in crun runc; do # crun refuses a host with both cgroup versions
                try 30 podman --runtime $runtime --cgroup-manager cgroupfs run --rm --network none --ulimit host \
                        --rootfs "$work/rootfs" /bin/true && break
        done
        offer podman 10 podman --runtime $runtime --cgroup-manager cgroupfs run --rm --network none --ulimit host \
                --rootfs "$work/rootfs" /bin/true
}

# A daemon of our own, with an image of the root above.
start_docker() { # start_docker PEER
        if ! root; then
                no_peer "$1" "its daemon needs root"
                return 1
        fi
        package "$1" docker.io || return
        if [ ! -x /usr/bin/docker ] || ! has dockerd; then
                no_peer "$1" "not installed"
                return 1
        fi
        mkdir "$work/docker"
        docker=(/usr/bin/docker -H "unix://$work/docker/socket")
        dockerd --iptables=false --ip6tables=false --bridge=none -H "unix://$work/docker/socket" --data-root "$work/docker/data" \
                --exec-root "$work/docker/exec" --pidfile "$work/docker/pid" -G $user >"$work/docker/log" 2>&1 &
        dockerd=$!
        for _ in $(seq 100); do
                "${docker[@]}" version >/dev/null 2>&1 && break
                kill -0 $dockerd 2>/dev/null || { no_peer "$1" "its daemon does not start here"; dockerd=; return 1; }
                sleep 0.1
        done
        tar -C "$work/rootfs" -c . | "${docker[@]}" import - hutch-bench >/dev/null 2>&1
}

add_docker() {
        start_docker docker || return
        printf 'container: {engine: docker, image: hutch-bench}\n' >"$work/container.yaml"
        chmod a+r "$work/container.yaml"
        printf '#!/bin/sh\n[ "$1" != --version ] || exec %q --version\nDOCKER_HOST=%q exec %q run --isolation container --config %q --workspace none -- "$@"\n' \
                "$work/bin/hutch" "unix://$work/docker/socket" "$work/bin/hutch" "$work/container.yaml" >"$work/bin/hutch-on-docker"
        chmod a+rx "$work/bin/hutch-on-docker"
        offer 'hutch on docker' 10 "$work/bin/hutch-on-docker" /bin/true
        offer docker 10 "${docker[@]}" run --rm --network none hutch-bench /bin/true
}

# One container that stays, and a command in it.
add_docker_exec() {
        start_docker docker-exec || return
        if ! "${docker[@]}" run -d --network none --name stays hutch-bench /bin/sleep 100000 >/dev/null 2>"$work/why"; then
                no_peer docker-exec "it does not run here: $(tail -n 1 "$work/why" | cut -c 1-160)"
                return
        fi
        offer docker-exec 20 "${docker[@]}" exec stays /bin/true
}

add_npm() {
        has npm || package codex npm || { no_peer srt "npm cannot be installed here"; return; }
        has npm || { no_peer srt "there is no npm"; no_peer codex "there is no npm"; return; }
        root && timeout 90 "$src/tools/need" ripgrep socat >/dev/null 2>&1
        mkdir "$work/npm"
        if ! timeout 90 npm install --silent --no-audit --no-fund --prefix "$work/npm" @anthropic-ai/sandbox-runtime @openai/codex \
                >/dev/null 2>&1; then
                no_peer srt "npm could not fetch it"
                no_peer codex "npm could not fetch it"
                return
        fi
        chmod -R a+rX "$work/npm"
        offer srt 12 "$work/npm/node_modules/.bin/srt" /bin/true
        if try 30 "$work/npm/node_modules/.bin/codex" sandbox -- /bin/true; then
                peer codex 30 "$work/npm/node_modules/.bin/codex" sandbox -- /bin/true
        else # as it was called before
                offer codex 30 "$work/npm/node_modules/.bin/codex" sandbox linux -- /bin/true
        fi
}

# What is measured: the user may not be able to reach the checkout, and nobody shall rebuild it meanwhile.
copy_build() {
        cp -a "$build/hutch" "$build/hutch-init" "$build/hutch-warden" "$build"/libhutch.so* "$work/bin/" && cp -a "$src/bench" "$work/copy"
}

compile() { # compile PROGRAM…: those that use the library
        local program
        for program; do
                gcc -O2 -I"$src/include" -o "$work/bin/$program" "$src/bench/$program.c" -L"$work/bin" -lhutch -Wl,-rpath,"\$ORIGIN" || return
        done
}

if root; then
        id -u $user >/dev/null 2>&1 || useradd --system --no-create-home --shell /bin/bash $user || exit 1
        chown $user: "$work/home" "$work/out" "$work/run"
fi
