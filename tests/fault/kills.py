"""hutch, the library's warden, its host program and init killed with SIGKILL at each system call of a start and of an end.

No process and no mount survives, not even for a moment that would need a cleaner. Control groups are swept by the next start,
which leaves a running neighbour's alone."""
import os
import subprocess

import world
from faults import NEVER, OFTEN, Run, Variant, list_points, limits, told
from world import LONG, ROOT, complaint

API_LIMITS = ["memory=64M", "pids=40"] + ([] if ROOT else ["allow-degraded"])

VARIANTS = [
    Variant("hutch run", lambda p: p.hutch("--json", *limits()), ("hutch", "init", "target"), json=True),
    Variant("libhutch", lambda p: p.host(["once"], *API_LIMITS), ("host program", "warden")),
]
# Of those that are killed more often than they differ, every so many-th.
EVERY = {"init": 8, "close": 3, "read": 3, "prctl": 10, "newfstatat": 2, "readlink": 4}


class Neighbour:
    """A box with limits that runs all the while, in the same control groups."""

    def __init__(self, place):
        self.place = place
        self.process = subprocess.Popen(place.hutch(*limits()[:4], *limits()[8:], command=["sh", "-c", "echo up; exec cat"]), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=place.env,
                                        cwd=place.workspace)
        self.up = self.process.stdout.readline() == "up\n"
        place.before = place.look()

    def end(self):
        """True if it was and is well."""
        out, _ = self.process.communicate("still here\n", timeout=20)
        return self.up and out == "still here\n" and self.process.returncode == 0


def judge(variant, who, run, baseline):
    if run.hang or run.left:
        return f"{run.end()} {run.left}"
    if who in ("hutch", "host program"):
        return "killed" if run.signal == 9 else f"{run.end()} though killed"
    if run.status == 0 and told(variant, run) == baseline:
        return "tolerated"
    if run.status == 125 and complaint(run.stderr):
        return "refused"
    if who == "target" and run.status == 137:  # it is the command's process by then
        return "refused"
    return f"{run.end()}: {run.stderr!r}"


def sweep(place):
    """The next start; what it leaves of control groups that were not there before."""
    place.run(place.hutch(*limits(), command=["true"]))
    return place.leftovers()


def try_batch(place, batch):
    """[(point, verdict)], number of leftover groups seen."""
    neighbour = Neighbour(place)
    results, groups, baselines = [], 0, {}
    for index, role, who, call, nth in batch:
        variant = VARIANTS[index]
        if index not in baselines:
            baselines[index] = told(variant, Run(place, variant.argv(place), "list"))
        run = Run(place, variant.argv(place), "kill", role, call, nth)
        if run.hang:
            run = Run(place, variant.argv(place), "kill", role, call, nth)
        verdict = "missed" if run.hit is None else judge(variant, who, run, baselines[index])
        left = place.leftovers(except_for=("cgroups",))
        if left:
            verdict = f"{verdict}, but {left}"
        if place.leftovers():
            groups += 1
            left = sweep(place)
            if left:
                verdict = f"{verdict}, not swept: {left}"
                place.before = place.look()
        results.append(((index, role, who, call, nth), verdict))
    if not neighbour.end():
        results.append((("neighbour",), "the neighbour was disturbed"))
    return results, groups


def choose(index, points, names):
    variant, seen = VARIANTS[index], {}
    for role, call, nth, _ in points:
        who = names[role]
        if who not in variant.processes or (call == "exit_group" and who != "hutch"):
            continue
        for key in {who, call} & set(EVERY):
            seen[role, key] = seen.get((role, key), -1) + 1
        if not LONG and any(seen[role, key] % EVERY[key] for key in {who, call} & set(EVERY)):
            continue
        yield index, role, who, call, nth


def main(table):
    place = world.Place("kills")
    tasks = []
    for index, variant in enumerate(VARIANTS):
        points, names, run = list_points(place, variant)
        if run.status != 0:
            world.report(False, f"{variant.name}: runs when nobody is killed", [run.end(), run.stderr])
            return
        tasks += choose(index, points, names)
    done = world.in_parallel(try_batch, [tasks[i::40] for i in range(40)], 1)
    results = [result for batch, _ in done for result in batch]
    for index, variant in enumerate(VARIANTS):
        for who in variant.processes:
            mine = [(point, verdict) for point, verdict in results if point[0] == index and point[2] == who and verdict != "missed"]
            bad = [f"{point[2:]}: {verdict}" for point, verdict in mine if verdict not in ("killed", "refused", "tolerated")]
            world.report(not bad and mine, f"{variant.name}: {who} killed at {len(mine)} points: nothing is left", bad)
            table.extend((variant.name, who, "SIGKILL at " + point[3], "SIGKILL", verdict, "") for point, verdict in mine)
    disturbed = [verdict for point, verdict in results if point == ("neighbour",)]
    world.report(not disturbed, f"{sum(n for _, n in done)} starts swept control groups of the killed, and no neighbour was disturbed")
