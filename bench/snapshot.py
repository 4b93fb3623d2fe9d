"""Prints the table of bench/snapshot and puts it into the page. usage: snapshot.py TIMES PAGE"""
import re
import statistics
import sys

times = {}
with open(sys.argv[1]) as file:
    for line in file:
        thing, size, *values = line.split()
        times[thing, size] = sorted(int(value) / 1e6 for value in values)
rounds = len(next(iter(times.values())))
lines = ["## Snapshots", "",
         f"`bench/snapshot`: through the C API, median of {rounds} rounds, after the box wrote 1 MB in 4 files and 500 MB in 2,000. The snapshot",
         "and the fork have all of it to freeze, the restore has all of it to throw away. The disk is synced before each, outside of the time.",
         "A session's box is started again with the shell's state, and a fork starts a second session.", "",
         "| | 1 MB, ms | 500 MB, ms | 500 MB / 1 MB |", "|---|---:|---:|---:|"]
for thing in [kind + thing for kind in ("", "session-") for thing in ("snapshot", "restore", "fork")]:
    small, large = (statistics.median(times[thing, size]) for size in ("1MB", "500MB"))
    lines.append(f"| {'' if thing.startswith('session') else 'box '}{thing.replace('-', ' ')} | {small:.2f} | {large:.2f} | {large / small:.2f} |")
section = "\n".join(lines) + "\n"
print(section, end="")
with open(sys.argv[2]) as file:
    page = re.sub(r"\n## Snapshots\n.*?(?=\n## |\Z)", "", file.read(), flags=re.S)
with open(sys.argv[2], "w") as file:
    file.write(page.rstrip("\n") + "\n\n" + section)
