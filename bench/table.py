"""What the benchmarks with peers share: times as they are printed, and the list of peers (bench/peers.bash)."""

import os
import re
import subprocess


def quantiles(values):
    values = sorted(values)
    at = lambda q: values[min(len(values) - 1, int(q * len(values)))]
    return {"median": at(0.5), "p10": at(0.1), "p90": at(0.9), "runs": len(values)}


def table_of(text, scale):
    """Lines of `name value…` or `name failed STATUS`; a name may have spaces."""
    found = {}
    for line in text.splitlines():
        name, failed, values = re.fullmatch(r"(.*?)(?: failed (\d+)|((?: [\d.]+)+))", line).groups()
        found[name] = {"failed": int(failed)} if failed else quantiles([float(v) * scale for v in values.split()])
    return found


def read_peers(work):
    """{name: (runs, argv)} of those that take part, {name: reason} of the others."""
    peers, missing = {}, {}
    for name in sorted(os.listdir(work + "/peers")):
        with open(f"{work}/peers/{name}") as file:
            lines = file.read().splitlines()
        if name.endswith(".missing"):
            missing[name[: -len(".missing")]] = lines[0]
        else:
            peers[name] = (int(lines[1]), lines[2:])
    return peers, missing


def version_of(argv, pattern=r"\d+(\.\d+)+"):
    try:
        text = subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout
        return re.search(pattern, text)[0]
    except (OSError, TypeError, subprocess.TimeoutExpired):
        return None
