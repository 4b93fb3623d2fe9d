"""What the parts of this suite share: where things are, a private world for each worker, what must not be left, TAP."""
import ctypes
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SRC = pathlib.Path(os.environ.get("HUTCH_SRC", HERE.parents[1]))
BUILD = pathlib.Path(os.environ.get("HUTCH_BUILD", SRC / "build"))
HUTCH, WARDEN = BUILD / "hutch", BUILD / "hutch-warden"
TOOLS = BUILD / "tests/fault"
ROOT = os.geteuid() == 0
LONG = os.environ.get("HUTCH_LONG") == "1"
WORKERS = 2
ERRNO_TEXTS = {os.strerror(number) for number in range(140)}
CONTROLLERS = ("memory", "cpu", "cpuacct", "pids")

base = pathlib.Path(tempfile.mkdtemp(prefix="fault.", dir=os.environ.get("HUTCH_TMP")))
base.chmod(0o755)
listener = socket.create_server(("127.0.0.1", 0))
NAMESPACES = " ".join(os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt", "pid", "ipc", "uts", "net", "cgroup"))

# ---- TAP ----

number = failed = 0
told = []  # every line, for the table


def report(good, what, details=()):
    global number, failed
    number += 1
    failed += not good
    told.append((bool(good), what))
    print(f"{'ok' if good else 'not ok'} {number} - {what}")
    for line in list(details)[:60] if not good else ():
        print("#   " + str(line).replace("\n", "\n#     "))
    sys.stdout.flush()


def skip(what, why):
    global number
    number += 1
    print(f"ok {number} - {what} # SKIP {why}")


def note(text):
    print("# " + text)
    sys.stdout.flush()


# ---- control groups: each worker gets groups of its own, so that what it finds there is its own doing ----


def own_group(controller):
    """The directory of this process' group of version 1, or None."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            directory = pathlib.Path(f"/sys/fs/cgroup/{controller}{path}")
            return directory if (directory / "cgroup.procs").exists() else None
    return None


def enter_groups(name):
    """Moves this process into new groups; the list of them."""
    made = []
    for controller in CONTROLLERS if ROOT else ():
        directory = own_group(controller)
        if not directory or not os.access(directory, os.W_OK):
            continue
        mine = directory / name
        try:
            mine.mkdir(exist_ok=True)
            (mine / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            continue
        made.append(mine)
    return made


def leave_groups(groups):
    for group in groups:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        for directory in subgroups([group]):
            pathlib.Path(directory).rmdir()
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.02)


def subgroups(groups):
    return sorted(str(entry) for group in groups for entry in group.iterdir() if entry.is_dir())


# ---- a place to run boxes in ----


class Place:
    """A workspace with the probe in it, a secret beside it, a home and a TMPDIR, all of which must stay as they are."""

    def __init__(self, name, groups=()):
        self.path = base / name
        self.groups = list(groups)
        self.workspace, self.tmp, self.home = self.path / "ws", self.path / "tmp", self.path / "home"
        for directory in (self.path, self.workspace, self.tmp, self.home):
            directory.mkdir(exist_ok=True)
        for tool in ("probe", "bomb"):
            shutil.copy(TOOLS / tool, self.workspace / tool)
        self.secret = self.path / "secret"
        self.secret.write_text("secret\n")
        (self.path / "stdin").write_text("nothing much\n")
        self.leak = os.open(self.secret, os.O_RDONLY)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "USER": os.environ.get("USER", "root"), "LANG": "C.UTF-8",
                    "TMPDIR": str(self.tmp)}
        self.probe_args = [str(self.secret), str(listener.getsockname()[1]), NAMESPACES]
        self.before = self.look()

    def look(self):
        """Everything that a run must leave as it was."""
        seen = {"workspace": self.tree(self.workspace), "tmp": self.tree(self.tmp), "home": self.tree(self.home),
                "cgroups": subgroups(self.groups)}
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        # An ordinary user's mount namespace is the host's, where others may mount.
        seen["mounts"] = sorted(line for line in lines if ROOT or str(base) in line)
        return seen

    @staticmethod
    def tree(path):
        return sorted((str(p.relative_to(path)), p.lstat().st_size if p.is_file() else 0) for p in path.rglob("*"))

    def leftovers(self, except_for=()):
        now = self.look()
        more = {what: sorted(set(map(str, now[what])) - set(map(str, self.before[what]))) for what in now}
        return [f"left in {what}: {more[what]}" for what in now if what not in except_for and more[what]]

    def empty_state(self):
        for box in self.home.glob(".local/state/hutch/boxes/*"):
            shutil.rmtree(box, ignore_errors=True)

    def hutch(self, *options, command=None):
        return [str(HUTCH), "run", "-d", str(self.workspace), *options, "--", *(command or ["./probe", *self.probe_args])]

    def host(self, how, *options, command=None):
        return [str(TOOLS / "host"), *how, str(self.workspace), *options, "--", *(command or ["/workspace/probe", *self.probe_args])]

    def run(self, argv, timeout=30, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(argv, capture_output=True, env=self.env, cwd=self.workspace, timeout=timeout, errors="replace",
                              pass_fds=(self.leak,), **more)


def adopt_orphans():
    """Whoever outlives a command becomes a child of this process."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def children():
    """pid → name of the children of this process that are not its workers."""
    found = {}
    for pid in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        try:
            found[int(pid)] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            pass
    return found


def stragglers(patience=2):
    """Orphans that are still there after a moment, as complaints; ended and reaped."""
    until = time.monotonic() + patience
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    left = children()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return [f"process {pid} {name}" for pid, name in left.items()]


def complaint(stderr):
    """The one line that says why hutch did not run something, or None if there is not exactly that. The bare text of an errno
    names no step."""
    lines = stderr.splitlines()
    if len(lines) != 1 or not lines[0].startswith("hutch: ") or "Success" in lines[0]:
        return None
    text = lines[0][len("hutch: "):]
    return None if text in ERRNO_TEXTS or len(text) < 8 else text


# ---- workers ----

place = None


def start_worker():
    global place
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    adopt_orphans()
    name = f"hutch-fault-{os.getpid()}"
    place = Place(f"w{os.getpid()}", enter_groups(name))


def in_parallel(function, tasks, chunk=4):
    """Each task by one of the workers, in whatever order; function(place, task)."""
    with multiprocessing.Pool(WORKERS, start_worker) as pool:
        results = pool.map(Call(function), tasks, chunksize=chunk)
        pool.close()
        pool.join()
    clean_groups()
    return results


class Call:
    def __init__(self, function):
        self.function = function

    def __call__(self, task):
        return self.function(place, task)


def clean_groups():
    for controller in CONTROLLERS if ROOT else ():
        directory = own_group(controller)
        for group in directory.glob("hutch-fault-*") if directory else ():
            if not (group / "cgroup.procs").read_text() and not os.path.exists("/proc/" + group.name.split("-")[2]):
                for entry in subgroups([group]):
                    os.rmdir(entry)
                group.rmdir()
