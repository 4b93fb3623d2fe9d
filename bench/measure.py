"""Takes the measurements, as an ordinary user; called by bench/run, which has put everything in place.

Reads $BENCH_WORK: bin/ (hutch, libhutch and the programs that take the time), peers/ (a file for each peer: its name, its number
of runs and its command, a line each; or NAME.missing with the reason). Writes out/results.json; report.py makes the
documents of it. Every ratio is of medians of one interleaved run.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

from table import read_peers, table_of, quantiles, version_of

WORK = os.environ["BENCH_WORK"]
BIN = WORK + "/bin"
HUTCH = BIN + "/hutch"
HOME = os.environ["HOME"]
QUICK = bool(os.environ.get("BENCH_QUICK"))
MIB = 1 << 20


def say(text):
    print("#", text, file=sys.stderr, flush=True)


def driver(contenders, *options, scale=1e-6):
    """Runs bench/spawn; contenders: {name: (runs, argv)}. Times are milliseconds."""
    args = []
    for name, (runs, argv) in contenders.items():
        args += (["+++"] if args else []) + [f"{name}:{max(3, runs // 10) if QUICK else runs}", *argv]
    done = subprocess.run([BIN + "/spawn", *options, *args], stdout=subprocess.PIPE, text=True, check=True, timeout=150)
    return table_of(done.stdout, scale)


def run_of(workspace):
    return [HUTCH, "run", "-d", workspace, "--", "/bin/true"]


def bwrap_of(workspace):
    """bwrap's command for the box that `hutch run` makes of this workspace, read from hutch's own plan."""
    plan = json.loads(subprocess.check_output([HUTCH, "explain", "--json", "-d", workspace, "--", "/bin/true"]))
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    dev = False
    for step in plan["steps"]:
        kind, dest = step["kind"], step["dest"]
        if dest == "/dev" or dest.startswith("/dev/"):  # --dev makes the same nodes, links, terminals and shm
            argv += [] if dev else ["--dev", "/dev"]
            dev = True
        elif kind == "bind":
            argv += ["--bind" if step["access"] == "rw" else "--ro-bind", step["source"], dest]
        elif kind == "symlink":
            argv += ["--symlink", step["target"], dest]
        elif kind == "tmpfs":
            argv += ["--tmpfs", dest]
        elif kind == "proc":
            argv += ["--proc", dest]
        elif kind == "hide":
            argv += ["--tmpfs", dest] if os.path.isdir(dest) else ["--ro-bind", "/dev/null", dest]
        elif kind == "file":
            name = f"{WORK}/out/file-{len(argv)}"
            with open(name, "w") as file:
                file.write(step.get("text") or "")
            argv += ["--ro-bind", name, dest]
        elif kind != "seal":  # of /proc/sys: bwrap does that by itself
            say(f"bwrap's command leaves out a step: {kind} {dest}")
    for variable in plan["env"]:
        argv += ["--setenv", variable["name"], variable.get("value") or ""]
    if plan["identity"].get("host_name"):
        argv += ["--hostname", plan["identity"]["host_name"]]
    return argv + ["--chdir", plan["cwd"], "/bin/true"]


def shown(argv):
    """The command without what is of this machine: the scratch directory, the values of variables."""
    return ["…" if i > 1 and argv[i - 2] == "--setenv" else arg.replace(WORK + "/home", "~") for i, arg in enumerate(argv)]


def backends(workspace, missing):
    """Contenders for hutch's other backends, those that work here; {name: (runs, argv)}."""
    found = {}
    for backend, runs in (("landlock", 800), ("bwrap", 400), ("systemd-run", 40)):
        argv = [*run_of(workspace)[:2], "--isolation", backend, *run_of(workspace)[2:]]
        tried = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        if tried.returncode == 0:
            found["hutch on " + backend] = (runs, argv)
        else:
            missing["hutch on " + backend] = "it does not run here: " + (tried.stderr.strip().splitlines() or ["no message"])[-1][:160]
    return found


def make_files(directory, count):
    for i in range(0, count, 1000):
        part = f"{directory}/{i // 1000:03}"
        os.makedirs(part)
        at = os.open(part, os.O_PATH)
        for k in range(1000):
            os.close(os.open(f"file-{k:03}.txt", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at))
        os.close(at)


def pipelines(pairs, rounds):
    """Shell lines, in turns; the time until the last of each ends, in milliseconds."""
    times = {name: [] for name in pairs}
    names = list(pairs)
    for i in range(rounds):
        for name in names if i % 2 == 0 else reversed(names):
            before = time.monotonic()
            subprocess.run(["bash", "-c", "set -o pipefail; " + pairs[name]], check=True, timeout=60, stdin=subprocess.DEVNULL)
            times[name].append((time.monotonic() - before) * 1000)
    return {name: quantiles(values) for name, values in times.items()}


def throughput_of_streams(workspace):
    size = 64 if QUICK else 1024
    hutch = f"{HUTCH} -d {workspace} cat"
    rounds = 3 if QUICK else 7
    piped = {
        "cat": f"head -c {size}M /dev/zero | cat | cat >/dev/null",
        "hutch": f"head -c {size}M /dev/zero | {hutch} | cat >/dev/null",
    }
    files = {
        "cat": f"cat <{HOME}/in >{HOME}/out",
        "hutch": f"{hutch} <{HOME}/in >{HOME}/out",
    }
    found = {"mib": size, "pipe": pipelines(piped, rounds)}
    with open(HOME + "/in", "wb") as file:
        for _ in range(size):
            file.write(bytes(MIB))
    open(HOME + "/out", "wb").close()
    # A dirty file that is truncated is never written to the disk, but do not begin in the middle of a flush.
    os.sync()
    found["files"] = pipelines(files, rounds if size > 64 else 3)
    os.unlink(HOME + "/in")
    os.unlink(HOME + "/out")
    return found


def instructions(workspace):
    """User-space instructions; they do not depend on the load of the machine."""
    found = {}
    if os.environ.get("BENCH_REALTIME"):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    if shutil.which("valgrind"):
        for name, argv in {"explain": [HUTCH, "explain", "-d", workspace, "--", "/bin/true"]}.items():
            done = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={WORK}/out/callgrind.{name}", *argv],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            counted = re.search(r"Collected : (\d+)", done.stderr)
            if counted:
                found["callgrind " + name] = int(counted[1])
    try:
        done = subprocess.run([BIN + "/steps", *run_of(workspace)], capture_output=True, text=True, timeout=30)
        warden, box = map(int, done.stdout.split())
        found["run: warden"], found["run: init, up to the exec of the target"] = warden, box
    except (subprocess.TimeoutExpired, ValueError):
        say("stepping through hutch run did not work here")
    return found


def main():
    empty, many = HOME + "/empty", HOME + "/many"
    os.mkdir(empty)
    os.mkdir(many)
    peers, missing = read_peers(WORK)
    realtime = bool(os.environ.get("BENCH_REALTIME"))
    if realtime:  # runtimes that spin are no good neighbours there
        peers = {name: (runs, ["chrt", "--other", "0", *argv]) for name, (runs, argv) in peers.items()}
    bwrap = bwrap_of(empty)
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": os.environ.get("BENCH_COMMIT", ""),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "realtime": realtime,
        "missing": missing,
        "bwrap": shown(bwrap),
        "versions": {"bwrap": version_of(["bwrap", "--version"])},
    }
    for name, (_, argv) in peers.items():
        results["versions"][name] = version_of(argv[3 if realtime else 0 :][:1] + ["--version"])

    say("start latency")
    fast = {"posix_spawn": (800, ["/bin/true"]), "bwrap": (800, bwrap), "hutch": (800, run_of(empty)),
            **backends(empty, missing)}
    results["latency"] = driver({**fast, **peers})
    for name, row in list(results["latency"].items()):
        if "failed" in row:
            if name in fast:
                sys.exit(f"bench: {name} failed with status {row['failed']}")
            missing[name] = f"it failed while it was measured, with status {row['failed']}"
            del results["latency"][name]
            peers.pop(name, None)

    say("starts per second")
    parallel = {name: (3, argv) for name, (_, argv) in {**fast, **peers}.items()}
    results["parallel"] = driver(parallel, "-p", "2", "-s", "700", scale=1)
    results["parallel"] = {name: row for name, row in results["parallel"].items() if "failed" not in row}

    say("starts through the C API, small and with 1 GiB")
    done = subprocess.run([BIN + "/api", "20" if QUICK else "400", "1024", empty, *bwrap], stdout=subprocess.PIPE,
                          text=True, check=True, timeout=100)
    results["api"] = table_of(done.stdout, 1e-6)

    say("a workspace of 200,000 files")
    make_files(many, 2000 if QUICK else 200000)
    results["files"] = driver({"empty": (500, run_of(empty)), "many": (500, run_of(many))})

    say("streams")
    results["streams"] = throughput_of_streams(empty)

    say("instructions")
    results["instructions"] = instructions(empty)
    with open(WORK + "/out/results.json", "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


main()
