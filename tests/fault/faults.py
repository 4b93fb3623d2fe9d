"""Every system call of a start made to fail in turn.

A trace without faults lists the points: the N-th call of a kind in one process. Each point is then run again with that call
failing. Either hutch refuses (125, one line, the probe did not run), or it could do without (0, and the probe tells of the same
walls, to the letter, as it did without a fault). After each nothing is left."""
import collections
import json
import os
import re

import world
from world import TOOLS, LONG, ROOT, complaint

# What each call can fail with, the likeliest first. In a short run the second and later ones are tried on a call's first
# occurrences only.
ERRORS = {
    "openat": ("EMFILE", "EACCES", "ENOENT", "EINTR", "EIO"), "openat2": ("EMFILE", "EACCES", "ENOENT", "EAGAIN"),
    "read": ("EIO", "EINTR", "short"), "write": ("ENOSPC", "EIO", "EINTR", "short"), "pread64": ("EIO",), "close": ("EIO",),
    "newfstatat": ("ENOMEM", "EACCES"), "statfs": ("ENOMEM", "EACCES"), "fstatfs": ("ENOMEM", "EIO"), "readlink": ("ENOMEM", "EACCES"),
    "access": ("EIO",), "faccessat2": ("EIO",), "getcwd": ("ENOENT", "ENOMEM"), "getdents64": ("EIO", "ENOENT"),
    "mmap": ("ENOMEM",), "brk": ("ENOMEM",), "mprotect": ("ENOMEM",), "memfd_create": ("EMFILE", "ENOMEM"),
    "clone": ("EAGAIN", "ENOMEM", "ENOSPC", "EPERM"), "clone3": ("EAGAIN", "ENOMEM", "ENOSPC", "EPERM"),
    "pipe2": ("EMFILE", "ENFILE"), "socketpair": ("EMFILE", "ENOBUFS"), "socket": ("EMFILE", "EACCES"), "dup2": ("EBUSY", "EINTR"),
    "dup3": ("EBUSY", "EINTR"), "fcntl": ("EMFILE", "EINVAL"), "pidfd_open": ("EMFILE", "ENOSYS"), "signalfd4": ("EMFILE", "ENOMEM"),
    "epoll_create1": ("EMFILE", "ENOMEM"), "epoll_ctl": ("ENOSPC", "ENOMEM"), "epoll_wait": ("EINTR", "ENOMEM"),
    "poll": ("EINTR", "ENOMEM"), "recvmsg": ("EINTR", "ENOMEM", "ECONNRESET"), "sendmsg": ("EINTR", "ENOBUFS", "EPERM"),
    "recvfrom": ("EINTR", "ENOMEM"), "sendto": ("EINTR", "ENOBUFS"), "wait4": ("EINTR",), "waitid": ("EINTR",), "capget": ("EINVAL",), "fsetxattr": ("ENOSPC",), "fremovexattr": ("ENOSPC",), "getsockopt": ("ENOBUFS",),
    "mount": ("EPERM", "ENOMEM"), "umount2": ("EBUSY", "EPERM"), "pivot_root": ("EINVAL", "EPERM"), "open_tree": ("EPERM", "EMFILE", "ENOSPC"),
    "move_mount": ("ENOMEM", "EINVAL", "ENOSPC"), "mount_setattr": ("EPERM", "EINVAL", "ENOMEM"), "fsopen": ("EPERM", "EMFILE"),
    "fsconfig": ("ENOMEM", "EINVAL"), "fsmount": ("EPERM", "ENOSPC"), "unshare": ("ENOSPC", "EPERM"), "setns": ("EPERM", "ENOMEM"),
    "mkdir": ("ENOSPC", "EACCES"), "mkdirat": ("ENOSPC", "EACCES"), "rmdir": ("EBUSY",), "symlinkat": ("ENOSPC",), "unlinkat": ("EBUSY", "EROFS"),
    "fchmodat": ("EPERM", "EROFS"), "fchmod": ("EPERM",), "chmod": ("EPERM",), "fgetxattr": ("ENOMEM", "EACCES"), "renameat": ("ENOSPC",), "renameat2": ("ENOSPC",), "fchown": ("EPERM",), "flock": ("EINTR", "ENOMEM"), "chdir": ("EACCES",), "fchdir": ("EACCES",), "ftruncate": ("EIO",),
    "setgroups": ("EPERM",), "setresuid": ("EAGAIN", "EPERM"), "setresgid": ("EPERM",), "sethostname": ("EINVAL",),
    "prctl": ("EPERM", "EINVAL"), "capset": ("EPERM",), "seccomp": ("ENOMEM", "EINVAL", "EACCES"), "prlimit64": ("EPERM",),
    "setpriority": ("EACCES",), "setpgid": ("EPERM",), "setsid": ("EPERM",), "getgroups": ("EINVAL",), "ioctl": ("EIO", "ENOTTY"),
    "landlock_create_ruleset": ("ENOMEM", "EOPNOTSUPP"), "landlock_add_rule": ("ENOMEM",), "landlock_restrict_self": ("ENOMEM", "E2BIG"),
    "close_range": ("ENOMEM", "ENOSYS"), "execve": ("ENOMEM", "EACCES", "EAGAIN"), "lseek": ("EINVAL",),
    "sched_getaffinity": ("EINVAL",), "getrandom": ("EAGAIN",), "getrusage": ("EINVAL",), "statx": ("ENOMEM", "EACCES"),
    "inotify_init1": ("EMFILE", "ENOMEM"), "inotify_add_watch": ("ENOSPC", "ENOMEM"),
}
# These cannot fail, or not with arguments that hutch gives them; failing kill(2) would leave what nothing could end.
NEVER = {"getpid", "gettid", "getppid", "geteuid", "getegid", "getuid", "getgid", "umask", "uname", "exit_group", "exit", "rt_sigprocmask",
         "rt_sigaction", "rt_sigreturn", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "munmap", "kill", "pause",
         "pidfd_send_signal", "restart_syscall", "clock_nanosleep", "futex", "madvise", "sched_yield", "tgkill",
         "rt_sigtimedwait", "sysinfo"}
OFTEN = {"close": 2, "read": 6, "prctl": 6}  # so many first and last ones in one process; those between say nothing new

# The warden's first look tells it whether a person started it; no socket of ours makes it fail.
EXEMPT = {("warden", "getsockopt", 1)}


ENDS_WITH_KEYS = re.compile(r"another box: \['-mount: /proc/(keys|key-users) of tmpfs [^']*'\]$")


class Variant:
    """One way to start a box."""

    def __init__(self, name, argv, processes=None, json=False, start_only=False):
        self.name, self.argv, self.json, self.start_only = name, argv, json, start_only
        self.processes = processes  # None: all


def limits():
    return ["--memory", "64M", "--pids", "40", "--timeout", "20s", "--output-cap", "1M"] + ([] if ROOT else ["--allow-degraded"])


# `auto` would go on with the landlock backend where a call that makes namespaces fails, and the probe knows the walls of one backend.
NAMESPACE = ("--isolation", "namespace")
VARIANTS = [
    Variant("hutch run", lambda p: p.hutch(*NAMESPACE)),
    Variant("hutch run with limits", lambda p: p.hutch(*NAMESPACE, "--json", "--stdin", str(p.path / "stdin"), *limits()),
            ("hutch", "helper", "target"), json=True),
    Variant("hutch run with layers", lambda p: p.hutch(*NAMESPACE, "--workspace", "cow", "--disk", "64M", "--allow-degraded"), ("hutch", "init") if LONG else ("hutch",),
            start_only=True),  # what comes after it is a review, see src/review
    Variant("libhutch", lambda p: p.host(["once"], "isolation=namespace"), ("host program", "spawner", "warden")),
]


class Run:
    """A command under `inject`, and what became of it."""

    def __init__(self, place, argv, action, role="-", call="-", nth=0):
        path = place.path / f"report{os.getpid()}"
        done = place.run([TOOLS / "inject", path, action, role, call, str(nth), "--", *argv])
        self.stdout, self.stderr = done.stdout, done.stderr
        self.lines = [line.split() for line in path.read_text().splitlines()]
        path.unlink()
        words = {line[0]: line[1:] for line in self.lines}
        self.hit = words.get("hit", [None])[0]
        self.status = int(words["end"][0]) if "end" in words else None
        self.signal = int(words["signal"][0]) if "signal" in words else None
        self.hang = "hang" in words
        self.left = ["process " + " ".join(line[1:]) for line in self.lines if line[0] == "left"]

    def end(self):
        return "hang" if self.hang else f"signal {self.signal}" if self.signal else f"exit {self.status}"


def name_roles(points):
    """0.3.1 → target: from what they do."""
    target = next(role for role, call, *_ in points if call == "seccomp")
    init = target.rpartition(".")[0]
    warden = init.rpartition(".")[0]
    names = {target: "target", init: "init"}
    if warden == "0":
        names["0"] = "hutch"
    else:
        names.update({warden: "warden", warden.rpartition(".")[0]: "spawner", "0": "host program"})
    return collections.defaultdict(lambda: "helper", names)


def list_points(place, variant):
    run = Run(place, variant.argv(place), "list")
    points = [(role, call, int(nth), phase) for role, call, nth, phase in (line for line in run.lines if len(line) == 4)]
    return points, name_roles(points), run


def choose(points, names, variant):
    """(role, call, nth, error) for every point that is worth a run."""
    unknown = set()
    total = collections.Counter((role, call) for role, call, *_ in points)
    for role, call, nth, phase in points:
        if variant.start_only and phase == "after":
            continue
        if call in NEVER or (variant.processes and names[role] not in variant.processes):
            continue
        if call not in ERRORS:
            unknown.add(call)
        if OFTEN.get(call, 1000) < nth <= total[role, call] - OFTEN.get(call, 1000) and not LONG:
            continue
        if (names[role], call, nth) in EXEMPT:
            continue
        errors = ERRORS.get(call, ("ENOMEM", "EPERM"))
        if call == "landlock_create_ruleset" and nth == 1:
            errors = ("EOPNOTSUPP", "ENOSYS")  # a question only: has this kernel Landlock?
        for i, error in enumerate(errors):
            if i == 0 or nth <= 2 or LONG:
                yield role, call, nth, error
    if unknown:
        world.note(f"new calls, for which tests/fault/faults.py should know the errors: {sorted(unknown)}")


def told(variant, run):
    """What the probe said, or None where nothing can be read."""
    if not variant.json:
        return run.stdout
    try:
        return json.loads(run.stdout)["stdout"]
    except (ValueError, KeyError):
        return None


def judge(place, variant, run, baseline, call):
    """refused or tolerated, or a complaint."""
    said = told(variant, run)
    if run.hang or run.left or run.signal:
        return f"{run.end()} {run.left}"
    if run.status == 0 and said == baseline:
        return "tolerated"
    if run.status == 0:
        return f"exit 0, but the probe tells of another box: {difference(baseline, said)}"
    if run.status in (125, 126) and (run.status == 125 or call == "execve"):
        if complaint(run.stderr) is None:
            return f"{run.status}, but the complaint is {run.stderr!r}"
        if run.hit == "before" and "RAN" in (said or ""):
            return "125, but the probe ran"
        return "refused"
    breaches = [line for line in (said or "").splitlines() if line.startswith("BREACH")]
    return f"{run.end()}: {run.stderr!r} {breaches}"


def difference(a, b):
    if b is None:
        return "nothing"
    a, b = a.splitlines(), b.splitlines()
    return [f"-{line}" for line in a if line not in b][:5] + [f"+{line}" for line in b if line not in a][:5]


def try_point(place, task):
    index, role, call, nth, error = task
    variant = VARIANTS[index]
    if not hasattr(place, "baselines"):
        place.baselines = {}
    if index not in place.baselines:
        place.baselines[index] = told(variant, Run(place, variant.argv(place), "list"))
        place.before = place.look()  # with the state directory that a first run makes
    for attempt in range(2):
        run = Run(place, variant.argv(place), error, role, call, nth)
        verdict = "missed" if run.hit is None else judge(place, variant, run, place.baselines[index], call)
        if verdict in ("refused", "tolerated"):
            left = place.leftovers()
            if left and variant.name.endswith("layers") and run.hit == "after" and verdict == "refused" and not place.leftovers(("home",)):
                place.empty_state()  # hutch cannot tell what was changed: that is for a person to look at
                left = []
            if not left:
                break
            verdict = f"{verdict}, but {left}"
            for directory in world.subgroups(place.groups):
                os.rmdir(directory)
            place.empty_state()
            place.before = place.look()
            break
        # A crowded machine is not a hang: once more. hutch was killed then, and its box is kept for a person to look at.
        if not run.hang and verdict != "missed":
            break
        place.empty_state()
    # A kernel that says it has no /proc/keys is believed: there is nothing to cover then, and that it lied no other call would tell.
    # (tests/escape/proc_keys.c tries whether what is there is covered.)
    if call == "openat2" and error == "ENOENT" and ENDS_WITH_KEYS.search(verdict):
        verdict = "tolerated"
    # Landlock stands where the kernel has it: one that says it has none is believed.
    if call == "landlock_create_ruleset" and nth == 1 and "Landlock domains: 1" in verdict:
        verdict = "tolerated"
    return verdict, complaint(run.stderr) or ""


def find_points(index, tasks, roles):
    """Appends the points of one variant; false if it does not work without a fault."""
    variant, place = VARIANTS[index], world.Place(f"baseline{index}")
    Run(place, variant.argv(place), "list")  # makes the state directory
    place.before = place.look()
    points, names, run = list_points(place, variant)
    roles.append(names)
    said, left = told(variant, run) or "", run.left + place.leftovers()
    if left and variant.name.endswith("layers"):
        # Layers are kept for a person to look at. Once a box without changes leaves none, faults can be told by what is left.
        world.note(f"{variant.name}: not tried, a run without a fault leaves {left[0][:100]}…")
        return
    good = run.status == 0 and said.endswith("WALLS OK\n") and not left
    world.report(good, f"{variant.name}: the walls stand without a fault", [run.end(), run.stderr, said[-2000:], *left])
    if good:
        tasks += [(index, *point) for point in choose(points, names, variant)]


def main(table):
    tasks, roles = [], []
    for index in range(len(VARIANTS)):
        find_points(index, tasks, roles)
    results = world.in_parallel(try_point, tasks)
    for index, variant in enumerate(VARIANTS):
        mine = [(task, *result) for task, result in zip(tasks, results) if task[0] == index and result[0] != "missed"]
        bad = [f"{roles[index][role]} {call} #{nth} {error} ({role}): {verdict}" for (_, role, call, nth, error), verdict, _ in mine
               if verdict not in ("refused", "tolerated")]
        refused = sum(verdict == "refused" for _, verdict, _ in mine)
        if mine:
            world.report(not bad, f"{variant.name}: each fault is refused or tolerated", bad)
            world.note(f"{variant.name}: {len(mine)} faults: {refused} refused, {len(mine) - refused - len(bad)} tolerated, "
                       f"{len(bad)} otherwise")
        for (_, role, call, nth, error), verdict, text in mine:
            table.append((variant.name, roles[index][role], call, error, verdict, text))
    world.note(f"{len(results)} points, {sum(verdict == 'missed' for verdict, _ in results)} not reached")
