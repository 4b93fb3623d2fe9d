"""Measures named sessions from the command line, and puts the table into the page.
usage: named.py measure WORKSPACE ROUNDS   |   named.py report TIMES JSON PAGE"""

import glob
import json
import os
import re
import subprocess
import sys
import time

from table import quantiles

HUTCH = os.environ.get("HUTCH", "hutch")
FILES = (0, 1000, 10000)
FOLLOWED = 5  # rounds of what takes seconds
ROWS = {  # what, at most in ms
    "start": ("`hutch session start NAME`", 8),
    "start-rw": ("the same with `--workspace rw`", 8),
    "stop": ("`hutch session stop NAME --discard`", None),
    **{f"run-{n}": (f"`hutch session run NAME --json -c :`, {n:,} changed files", None) for n in FILES},
    "first": ("the first session of a user: the skeleton of the system is made", None),
    "followed": ("the first session after a package change: the skeleton is followed up", 1000),
}


def timed(times, name, *argv):
    before = time.monotonic()
    # No timeout: with one, Python asks after 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 ms whether the command has ended.
    subprocess.run([HUTCH, *argv], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    times.setdefault(name, []).append((time.monotonic() - before) * 1000)


def skeleton():
    locks = glob.glob(os.path.expanduser("~/.cache/hutch/skeleton/*.lock"))
    if len(locks) != 1:
        sys.exit(f"named: not one skeleton: {locks}")
    return locks[0][: -len(".lock")]


def age(path):
    """As if the host's packages had changed since it was made: another key, and 50 directories that differ."""
    older = os.path.dirname(path) + "/older"
    os.rename(path, older)
    os.rename(path + ".lock", older + ".lock")
    for directory in sorted(glob.glob(older + "/usr/share/*/"))[:50]:
        os.utime(directory)


def measure(workspace, rounds):
    times = {}
    os.chdir(workspace)
    timed(times, "first", "session", "start", "first")
    subprocess.run([HUTCH, "session", "stop", "first"], check=True, stdout=subprocess.DEVNULL)
    for i in range(FOLLOWED):
        age(skeleton())
        timed(times, "followed", "session", "start", "followed")
        subprocess.run([HUTCH, "session", "stop", "followed"], check=True, stdout=subprocess.DEVNULL)
    for i in range(rounds):
        timed(times, "start", "session", "start", f"s{i}")
        timed(times, "stop", "session", "stop", f"s{i}", "--discard")
        timed(times, "start-rw", "session", "start", f"r{i}", "--workspace", "rw")
        subprocess.run([HUTCH, "session", "stop", f"r{i}"], check=True, stdout=subprocess.DEVNULL)
    for n in FILES:
        subprocess.run([HUTCH, "session", "start", f"n{n}"], check=True, stdout=subprocess.DEVNULL)
        if n:
            subprocess.run([HUTCH, "session", "run", f"n{n}", "-c", f"seq {n} | xargs touch"], check=True)
        subprocess.run([HUTCH, "session", "run", f"n{n}", "--json", "-c", ":"], check=True, stdout=subprocess.DEVNULL)
    for i in range(rounds):
        for n in FILES:
            timed(times, f"run-{n}", "session", "run", f"n{n}", "--json", "-c", ":")
    for n in FILES:
        subprocess.run([HUTCH, "session", "stop", f"n{n}", "--discard"], check=True, stdout=subprocess.DEVNULL)
    json.dump({"load": os.getloadavg()[0], "times_ms": {name: quantiles(values) for name, values in times.items()}}, sys.stdout)


def section(r, realtime, commit):
    lines = ["## Named sessions", "",
             f"`bench/named` on {time.strftime('%Y-%m-%d')} at `{commit or 'unknown'}`, load {r['load']:.1f} of {os.cpu_count()} CPUs"
             + (", under SCHED_FIFO (`BENCH_REALTIME=1`)." if realtime else "."),
             "From the start of the command to its end; the changed files are empty, and the last run changed nothing.", "",
             "| | median ms | p10 | p90 | at most | |", "|---|---:|---:|---:|---:|---|"]
    for name, (label, most) in ROWS.items():
        row = r["times_ms"][name]
        verdict = "" if most is None else "met" if row["median"] <= most else "**missed**"
        lines.append(f"| {label} | {row['median']:,.1f} | {row['p10']:,.1f} | {row['p90']:,.1f} | {most or ''} | {verdict} |")
    return "\n".join(lines) + "\n"


def report(times, out, page):
    with open(times) as file:
        results = json.load(file)
    text = section(results, bool(os.environ.get("BENCH_REALTIME")), os.environ.get("BENCH_COMMIT", ""))
    print(text, end="")
    with open(out, "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    with open(page) as file:
        before = file.read()
    after = re.sub(r"\n## Named sessions\n.*?(?=\n## |\Z)", "", before, flags=re.S)
    with open(page, "w") as file:
        file.write(after.rstrip("\n") + "\n\n" + text)


if sys.argv[1] == "measure":
    measure(sys.argv[2], int(sys.argv[3]))
else:
    report(*sys.argv[2:])
