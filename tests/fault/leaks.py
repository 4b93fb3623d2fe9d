"""Many runs in a row, many boxes at once, by the command and by the library: as many descriptors, processes, mounts, control groups
and directories after as before. And a neighbour that goes on while others are bombed."""
import json
import os
import pathlib
import select
import subprocess
import threading
import time

import world
from faults import limits
from kills import API_LIMITS
from world import LONG, ROOT

ROW = 10000 if LONG else 300
CROWD = 200 if LONG else 100
WAIT = ["sh", "-c", "until [ -e gate ]; do sleep 0.5; done"]  # until all are there


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def row_of_commands(place, options, n):
    bad = 0
    before = fds("self")
    for _ in range(n):
        done = subprocess.run(place.hutch(*options, command=["true"]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=place.env)
        bad += done.returncode != 0 or done.stdout != b""
    return bad, [f"fds {before} → {fds('self')}"] if fds("self") != before else []


def crowd_of_commands(place, options, n):
    """All are up before the first may end: they wait for the end of one pipe."""
    reader, writer = os.pipe()
    answers, answer = os.pipe()
    boxes = [subprocess.Popen(place.hutch(*options, command=["sh", "-c", "echo up; exec cat"]), stdin=reader, stdout=answer,
                              stderr=subprocess.STDOUT, env=place.env) for _ in range(n)]
    os.close(answer)
    os.close(reader)
    up, until = b"", time.monotonic() + 120
    while up.count(b"up\n") < n and time.monotonic() < until and select.select([answers], [], [], 30)[0]:
        up += os.read(answers, 65536)
    os.close(writer)
    bad = sum(box.wait(60) != 0 for box in boxes)
    os.close(answers)
    return bad, [] if up == b"up\n" * n else [up[-500:].decode()]


class Host:
    """The host program, stopped between what it does, and looked at."""

    def __init__(self, place, how, n, options, command):
        self.gate = place.workspace / "gate"
        self.gate.touch()
        self.process = subprocess.Popen(place.host([how, str(n)], *options, command=command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=place.env)
        self.ready = self.process.stdout.readline() == "ready\n"
        self.warden = next((pid for pid, name in world.children().items() if name == "hutch-warden"), None)
        self.before, self.most, self.after, self.good = self.look(), 0, None, 0

    def look(self):
        """Descriptors of both, boxes; once the warden has put away the last one."""
        last = None
        for _ in range(100):
            now = fds(self.process.pid), fds(self.warden), self.boxes()
            if now == last and now[2] == 0:
                break
            last = now
            time.sleep(0.05)
        return now

    def boxes(self):
        return len(pathlib.Path(f"/proc/{self.warden}/task/{self.warden}/children").read_text().split())

    def go(self, n):
        self.gate.unlink()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        until = time.monotonic() + 240
        while not select.select([self.process.stdout], [], [], 0.05)[0]:
            self.most = max(self.most, self.boxes())
            if self.most == n or time.monotonic() > until:
                self.gate.touch()
        self.good = int(self.process.stdout.readline().split()[1])
        self.after = self.look()
        self.process.stdin.write("\n")
        self.errors = self.process.communicate(timeout=30)[1]


def library(place, how, n, options, command):
    host = Host(place, how, n, options, command)
    if not host.ready or not host.warden:
        return n, [host.process.communicate()[1]]
    host.go(n if how == "crowd" else 1)
    host.gate.unlink(missing_ok=True)
    details = [] if host.before == host.after else [f"fds of host and warden, boxes: {host.before} → {host.after}"]
    if how == "crowd" and host.most < n:
        details.append(f"only {host.most} at once")
    return n - host.good, details + host.errors.splitlines()[:5]


def measure(place, what, function, *arguments):
    began = time.monotonic()
    bad, details = function(place, *arguments)
    details = details + world.stragglers() + place.leftovers()
    seconds = time.monotonic() - began
    world.report(not bad and not details, f"{what}: the same number of fds, processes, mounts, cgroups and directories before and after "
                 f"({seconds:.1f} s)", ([f"{bad} failed"] if bad else []) + details)


BOMBS = {"memory": ["--memory", "64M"], "fork": ["--pids", "20"], "cpu": ["--cpu-time", "300ms", "--allow-degraded"], "disk": ["--disk", "16M"]}
REASONS = {"memory": "memory", "fork": "pids", "cpu": "cpu", "disk": "disk"}


def bombs(place):
    """A neighbour ticks while each bomb goes off beside it; each has an end of its own, and one from outside."""
    ticker = subprocess.Popen(place.hutch(command=["sh", "-c", "while echo tick; do sleep 0.05; done"]), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=place.env)
    ticks = []

    def listen():
        for _ in ticker.stdout:
            ticks.append(time.monotonic())

    thread = threading.Thread(target=listen)
    thread.start()
    extra = [] if ROOT else ["--allow-degraded"]
    for bomb, options in BOMBS.items():
        done = subprocess.run(["timeout", "-s", "KILL", "30", *place.hutch("--json", *options, *extra, command=["./bomb", bomb])], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, env=place.env)
        try:
            result = json.loads(done.stdout)
        except ValueError:
            result = {}
        world.report(done.returncode == 137 and result.get("kill_reason") == REASONS[bomb], f"a {bomb} bomb ends with its reason",
                     [done.returncode, result.get("kill_reason"), done.stderr])
    alive = ticker.poll() is None
    ticker.terminate()
    ticker.wait(20)
    thread.join()
    longest = max((b - a for a, b in zip(ticks, ticks[1:])), default=99)
    world.report(alive and longest < 2, f"a neighbour goes on undisturbed meanwhile: {len(ticks)} ticks, the longest pause {longest * 1000:.0f} ms")
    left = world.stragglers() + place.leftovers()
    world.report(not left, "nothing of the bombs is left", left)


def main(table):
    world.adopt_orphans()
    groups = world.enter_groups(f"hutch-fault-{os.getpid()}")
    place = world.Place("leaks", groups)
    limited = limits()[:4] + limits()[8:]
    try:
        measure(place, f"{ROW} runs in a row, hutch run", row_of_commands, [], ROW)
        measure(place, f"{ROW} runs in a row, hutch run with limits", row_of_commands, limited, ROW)
        measure(place, f"{CROWD} boxes at once, hutch run", crowd_of_commands, [], CROWD)
        measure(place, f"{CROWD} boxes at once, hutch run with limits", crowd_of_commands, limited, CROWD)
        measure(place, f"{ROW} runs in a row, libhutch", library, "row", ROW, [], ["true"])
        measure(place, f"{ROW} runs in a row, libhutch with limits", library, "row", ROW, API_LIMITS, ["true"])
        measure(place, f"{CROWD} boxes at once, libhutch", library, "crowd", CROWD, [], WAIT)
        measure(place, f"{CROWD} boxes at once, libhutch with limits", library, "crowd", CROWD, API_LIMITS, WAIT)
        bombs(place)
    finally:
        world.leave_groups(groups)
