"""More output than anybody wants, and commands that do not end."""
import json
import os
import pathlib
import re
import subprocess
import time

import world
from world import LONG

FLOOD = "10G" if LONG else "1G"
BYTES = (10 if LONG else 1) << 30


def peak(pid):
    """VmHWM in KiB."""
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))
    except (OSError, AttributeError):
        return 0


def drain(place, *options):
    """Runs a flood; the result and the most that hutch itself had in memory."""
    with open(place.path / "flood", "w+") as out:
        process = subprocess.Popen(place.hutch("--output-cap", "1M", "--output-overflow", "truncate", *options,
                                               command=["head", "-c", FLOOD, "/dev/zero"]), stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.PIPE, text=True, env=place.env)
        most = 0
        while process.poll() is None:
            most = max(most, peak(process.pid))
            time.sleep(0.02)
        return process, most, process.stderr.read(), len(unmarked((place.path / "flood").read_bytes()))


def unmarked(output):
    """What the command printed: the line that marks the cut is hutch's own."""
    return re.sub("\\n?\\[… [0-9,]+ bytes dropped …\\]\\n".encode(), b"", output, count=1)


def main(table):
    world.adopt_orphans()
    place = world.Place("floods")
    process, most, errors, size = drain(place)
    dropped = re.search(r"(\d+) bytes of stdout", errors)
    world.report(process.returncode == 0 and most < 20 * 1024 and size <= 1 << 20 and dropped and int(dropped.group(1)) + size == BYTES,
                 f"{FLOOD} drained in truncate mode: hutch's own memory peaks at {most} KiB", [process.returncode, size, errors])
    process, most, errors, size = drain(place, "--json")
    result = json.loads((place.path / "flood").read_text())
    kept, lost = len(unmarked(result["stdout"].encode())), result["truncated"]["stdout"]
    world.report(process.returncode == 0 and most < 20 * 1024 and kept <= 1 << 20 and kept + lost == BYTES,
                 f"… with --json: {most} KiB", [process.returncode, kept, lost, errors])

    began = time.monotonic()
    done = place.run(place.hutch("--output-cap", "1M", "--json", command=["yes"]))
    result = json.loads(done.stdout)
    world.report(done.returncode == 137 and result["kill_reason"] == "output" and len(result["stdout"]) <= 1 << 20 and time.monotonic() - began < 3,
                 f"`yes` ends at its cap: {len(result['stdout'])} bytes, {time.monotonic() - began:.2f} s", [done.returncode, result["kill_reason"]])

    for _ in range(3):  # the machine may be busy
        began = time.monotonic()
        done = place.run([str(world.HUTCH), "run", "-d", str(place.workspace), "--timeout", "500ms", "-c", "echo begun; setsid sleep 60 & sleep 60"])
        seconds = time.monotonic() - began
        left = world.stragglers(patience=0.1)
        if seconds < 1:
            break
    world.report(done.returncode == 124 and done.stdout == "begun\n" and seconds < 1 and not left,
                 f"a timeout of 500 ms ends the whole tree in {seconds * 1000:.0f} ms, what was printed is kept", [done.returncode, done.stdout, left])
    (place.path / "flood").unlink()
    world.report(not place.leftovers(), "nothing is left of it", place.leftovers())
