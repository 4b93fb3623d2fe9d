# Real work in a box, with what Debian's packages install. HOME has no toolchain.
load helper

@test "git: init, add, commit, log" {
        need git
        run hutch -c 'git init -q . && echo x >f && git add f && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline && git status --short'
        [ "$status" -eq 0 ] && [[ $output == *one ]]
        [ "$(git -C . rev-list --count HEAD)" = 1 ]
        run hutch -c 'git clone -q . /tmp/clone && git -C /tmp/clone log --oneline && git gc -q'
        [ "$status" -eq 0 ]
}

@test "C: gcc and make" {
        need gcc make
        printf '#include <stdio.h>\n#include "x.h"\nint main(void) { puts(X); return 0; }\n' >main.c
        echo '#define X "built"' >x.h
        printf 'prog: main.o\n\tgcc -o $@ $^\n%%.o: %%.c x.h\n\tgcc -O2 -Wall -c -o $@ $<\n' >Makefile
        run hutch -c 'make -j2 && ./prog'
        [ "$status" -eq 0 ] && [ "${lines[-1]}" = built ]
        [ "$(./prog)" = built ]
}

@test "C: make and CMake with ccache, whose cache of the host is used, and on the host again" {
        need gcc make ccache cmake
        unset XDG_CACHE_HOME # as ccache has it
        printf 'int add(int a, int b) { return a + b; }\n' >add.c
        printf 'int add(int, int);\nint main(void) { return add(1, 2) - 3; }\n' >t.c
        printf 'check: t\n\t./t\nt: t.o add.o\n\tgcc -o $@ $^\n%%.o: %%.c\n\tccache gcc -c -o $@ $<\n' >Makefile
        printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nenable_testing()\nadd_executable(t t.c add.c)\nadd_test(NAME t COMMAND t)\n' >CMakeLists.txt
        make check && rm t *.o
        run hutch --profile c --env CCACHE_LOGFILE="$PWD/log" make check
        [ "$status" -eq 0 ] || differs "make: $output"
        expect hits "$(grep -c 'Result: direct_cache_hit' log)" 2
        echo '/* changed */' >>add.c
        ends 0 hutch --profile c make check # what is not in the cache is compiled
        ends 0 make check
        run hutch --profile c -c 'cmake -S . -B b -D CMAKE_C_COMPILER_LAUNCHER=ccache && cmake --build b && ctest --test-dir b'
        [ "$status" -eq 0 ] || differs "cmake: $output"
        touch add.c
        ends 0 cmake --build b
        agree
}

@test "python3: venv, and its absolute paths hold in the box" {
        need python3
        hutch /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || skip "needs python3-venv"
        run hutch -c '/usr/bin/python3 -m venv --without-pip v && v/bin/python -c "import sys; print(sys.prefix)"'
        [ "$status" -eq 0 ] && [ "$output" = "$T/ws/v" ]
        run hutch "$T/ws/v/bin/python" -c 'print(1)'
        [ "$output" = 1 ]
        run hutch -c '/usr/bin/python3 -m venv w && w/bin/pip --version'
        [ "$status" -eq 0 ] && [[ $output == pip* ]]
}

@test "python3: asyncio, threads, multiprocessing, sockets" {
        need python3
        cat >t.py <<'PY'
import asyncio, multiprocessing, threading, subprocess, tempfile, socket, concurrent.futures

async def serve(r, w):
    w.write((await r.readline()).upper()); await w.drain(); w.close()

async def main():
    s = await asyncio.start_server(serve, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())
    w.write(b"net\n"); print((await r.readline()).decode().strip())
    u = await asyncio.start_unix_server(serve, "/tmp/sock")
    r, w = await asyncio.open_unix_connection("/tmp/sock")
    w.write(b"unix\n"); print((await r.readline()).decode().strip())
    p = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode().strip())

def square(x): return x * x

if __name__ == "__main__":
    asyncio.run(main())
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(sum(pool.map(square, range(10))))
    q = multiprocessing.Queue(); q.put(1); print(q.get())
    with concurrent.futures.ThreadPoolExecutor(4) as e: print(sum(e.map(square, range(10))))
    socket.getaddrinfo("localhost", 80)
PY
        run timeout 30 "$HUTCH_BUILD/hutch" /usr/bin/python3 t.py
        [ "$(xargs <<<"$output")" = "NET UNIX child 285 285 285 1 285" ]
}

@test "node and npm init -y" {
        need npm node
        run hutch -c 'npm init -y >/dev/null && node -e "console.log(require(\"./package.json\").name); new (require(\"worker_threads\").Worker)(\"console.log(1)\", {eval: true})"'
        [ "$status" -eq 0 ] && [[ $output == *ws* ]] && [[ $output == *1 ]]
        [ -e package.json ]
}

@test "Go" {
        need go
        printf 'package main\n\nfunc main() {\n\tc := make(chan string)\n\tgo func() { c <- "hello" }()\n\tprintln(<-c)\n}\n' >main.go
        run timeout 100 "$HUTCH_BUILD/hutch" --env CGO_ENABLED=0 --env GOFLAGS=-mod=mod --env GOTOOLCHAIN=local -c 'go build -o hello main.go && ./hello'
        [ "$status" -eq 0 ] && [ "${lines[-1]}" = hello ]
}

@test "Rust" {
        need rustc cc
        echo 'fn main() { let t = std::thread::spawn(|| "hello"); println!("{}", t.join().unwrap()); }' >main.rs
        run hutch -c 'rustc -o hello main.rs && ./hello'
        [ "$status" -eq 0 ] && [ "${lines[-1]}" = hello ]
}

@test "sqlite3" {
        need sqlite3
        run hutch sqlite3 t.db "pragma journal_mode=wal; create table t(a); insert into t values (1),(2); select sum(a) from t;"
        [ "$status" -eq 0 ] && [ "${lines[-1]}" = 3 ]
        run hutch sqlite3 t.db "select count(*) from t"
        [ "$output" = 2 ]
}

@test "apt" {
        need apt-get apt
        run hutch apt-get --version
        [ "$status" -eq 0 ] && [[ $output == apt* ]]
        run hutch --ro /var/lib/dpkg --ro /var/lib/apt -c 'apt list --installed 2>/dev/null'
        [ "$status" -eq 0 ] && [[ $output == *bash/* ]]
        run hutch --ro /var/lib/dpkg dpkg -s bash
        [ "$status" -eq 0 ]
}

@test "a command that is only on the host's PATH gets a hint" {
        mkdir "$T/bin" && printf '#!/bin/sh\necho mine\n' >"$T/bin/my-tool" && chmod +x "$T/bin/my-tool"
        PATH=$T/bin:$PATH run hutch my-tool
        told 127 "$T/bin"
        agree
        PATH=$T/bin:$PATH run hutch --ro "$T/bin" my-tool
        [ "$output" = mine ]
}

@test "tar, find, sort, xargs, dd, tmpfiles, locks, fifos" {
        run hutch -c 'set -e; mkdir d; seq 1000 >d/a; tar cf t.tar d; tar xf t.tar -C /tmp; sort -rn /tmp/d/a | head -1; find . -name a | xargs wc -l | cut -d" " -f1
                mkfifo p; (echo fifo >p &); cat p; flock d/a echo locked; mktemp >/dev/null; dd if=/dev/zero of=z bs=1M count=8 2>/dev/null; stat -c %s z; ln d/a d/b; chmod 700 d/b; mv d/b d/c; rm z'
        [ "$(xargs <<<"$output")" = "1000 1000 fifo locked 8388608" ]
}
