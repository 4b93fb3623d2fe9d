"""Too few descriptors, too little memory, a full process table, a full disk: 125 with one line, or a correct result."""
import os
import resource
import subprocess

import world
from faults import limits
from world import HUTCH, ROOT, complaint


def sweep(place, task):
    """One run under one limit: a complaint, or None."""
    what, amount, with_limits = task
    which = {"descriptors": resource.RLIMIT_NOFILE, "memory": resource.RLIMIT_AS, "processes": resource.RLIMIT_NPROC}[what]

    def lower():
        resource.setrlimit(which, (amount, resource.getrlimit(which)[1]))

    argv = place.hutch(*(["--json", *limits()] if with_limits else []))
    done = place.run(argv, preexec_fn=lower, timeout=15)
    left = world.stragglers() + place.leftovers()
    if left:
        return f"{what} {amount}: {left}"
    if done.returncode == 0 and "WALLS OK" in done.stdout:
        return "result"
    if done.returncode == 125 and complaint(done.stderr) and "RAN" not in done.stdout:
        return "refused"
    return f"{what} {amount}{' with limits' if with_limits else ''}: exit {done.returncode}: {done.stderr!r} {done.stdout[:200]!r}"


def capture(place, megabytes):
    """4 MiB captured with so much memory: all of it, or 125."""
    def lower():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, resource.getrlimit(resource.RLIMIT_AS)[1]))

    done = place.run(place.hutch("--capture", command=["./bomb", "output"]), preexec_fn=lower, timeout=15)
    if world.stragglers() + place.leftovers():
        return f"{megabytes} MiB: something is left"
    if done.returncode == 0 and len(done.stdout) == 4 << 20:
        return "result"
    return "refused" if done.returncode == 125 and complaint(done.stderr) else f"{megabytes} MiB: exit {done.returncode}: {done.stderr!r}"


def count_processes():
    uid = os.getuid()
    return sum(os.stat(f"/proc/{pid}").st_uid == uid for pid in os.listdir("/proc") if pid.isdigit() and os.path.exists(f"/proc/{pid}"))


def least_memory():
    """In KiB, for hutch to come to its main at all: what is below is the kernel's and the C library's to tell."""
    low, high = 256, 1 << 20
    while high - low > 4:
        middle = (low + high) // 2
        done = subprocess.run(["sh", "-c", f"ulimit -v {middle} && exec {HUTCH} --version"], capture_output=True)
        low, high = (low, middle) if done.returncode == 0 else (middle, high)
    return high


def sweeps():
    least = least_memory()
    tasks = [("descriptors", n, w) for n in range(3, 41) for w in (False, True)]
    tasks += [("memory", (least + n) * 1024, w) for n in range(0, 1200, 24) for w in (False, True)]
    if not ROOT:
        tasks += [("processes", n, False) for n in [0, 1] + [count_processes() + k for k in range(0, 10)]]
    results = world.in_parallel(sweep, tasks)
    for what in ("descriptors", "memory", "processes"):
        mine = [result for task, result in zip(tasks, results) if task[0] == what]
        bad = [result for result in mine if result not in ("result", "refused")]
        if mine:
            world.report(not bad, f"scarce {what}: {len(mine)} runs, {mine.count('refused')} refused, {mine.count('result')} with a result", bad)


def full_group(place, room):
    """As root: a control group with room for so many more processes."""
    group = next(group for group in place.groups if "/pids/" in str(group))
    (group / "pids.max").write_text(str(int((group / "pids.current").read_text()) + room))
    try:
        done = place.run(place.hutch(), timeout=15)
    except BlockingIOError:
        return "refused"  # not even hutch could be started
    finally:
        (group / "pids.max").write_text("max")
    left = world.stragglers() + place.leftovers()
    if not left and (done.returncode == 0 and "WALLS OK" in done.stdout or done.returncode == 125 and complaint(done.stderr)):
        return "fine"
    return f"room for {room}: exit {done.returncode}: {done.stderr!r} {left}"


def full_disk():
    place = world.Place("disk")
    disk = place.path / "disk"
    disk.mkdir()
    place.before = place.look()
    script = f"""mount -t tmpfs -o size=64k none {disk} || exit 77
                 head -c 1M /dev/zero > {disk}/filler 2>/dev/null
                 {HUTCH} run -d {place.workspace} --result {disk}/result -- true; echo "status $?" """
    # As an ordinary user: mounting needs a user namespace around.
    inside = [] if ROOT else ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
    done = place.run([*inside, "sh", "-c", script])
    if ROOT:
        subprocess.run(["umount", disk], check=False)
    if done.returncode == 77:
        world.skip("--result on a full disk", "no tmpfs can be mounted here")
        return
    lines = done.stderr.splitlines()
    world.report(done.stdout == "status 125\n" and len(lines) == 1 and "No space left" in lines[0],
                 "--result on a full disk: 125 and one line", [done.stdout, done.stderr])
    for options in [], ["--json"], ["--capture"]:
        done = subprocess.run([*place.hutch(*options, command=["echo", "hello"])], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE,
                              text=True, stdin=subprocess.DEVNULL, env=place.env)
        world.report(done.returncode == 125 and complaint(done.stderr), f"stdout onto a full disk, {' '.join(options) or 'relayed'}: 125 and one line",
                     [done.returncode, done.stderr])
    disk.rmdir()


def main(table):
    sweeps()
    results = world.in_parallel(capture, list(range(3, 40)))
    bad = [result for result in results if result not in ("result", "refused")]
    world.report(not bad, f"scarce memory for output: {len(results)} runs, {results.count('refused')} refused, {results.count('result')} with a result",
                 bad)
    if ROOT:
        results = world.in_parallel(full_group, list(range(0, 9)))
        bad = [result for result in results if result not in ("fine", "refused")]
        world.report(not bad, f"a full process table: {len(results)} runs", bad)
    full_disk()
