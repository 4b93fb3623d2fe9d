"""Prints the tables of bench/session, writes them as JSON and puts them into the page. usage: session.py WORK JSON PAGE"""

import json
import os
import platform
import re
import sys
import time

from table import read_peers, table_of, version_of

NAMES = {  # in the table's order, the peers behind them by their time
    "pipe/builtin": "`:` over a pipe to a bare bash",
    "session/builtin": "`:` in a session, through the C API",
    "pipe/builtin-again": "back to back: `:` over a pipe to a bare bash",
    "session/builtin-again": "back to back: `:` in a session",
    "pipe/builtin-alone": "in a loop: `:` over a pipe to a bare bash",
    "session/builtin-alone": "in a loop: `:` in a session",
    "pipe/builtin-paced": "5 ms between: `:` over a pipe to a bare bash",
    "session/builtin-paced": "5 ms between: `:` in a session",
    "pipe/external-again": "back to back: `/bin/true` in a bare bash",
    "session/external-again": "back to back: `/bin/true` in a session",
    "pipe/external": "`/bin/true` in a bare bash",
    "session/external": "`/bin/true` in a session, through the C API",
    "hutch-session-run": "`hutch session run NAME -- /bin/true`",
    "hutch-run": "`hutch run -- /bin/true`, a box for each",
    "bwrap/external": "bwrap for each `/bin/true`",
    "bwrap/bash": "bwrap for each `bash -c :`",
    "session/open-run-close": "a new session, `:`, and its end, through the C API",
    "codex": "`codex sandbox -- /bin/true`",
    "srt": "`srt /bin/true`",
    "docker-exec": "`docker exec CONTAINER /bin/true`",
}
PROMISED = (
    ("a builtin through the API / over the bare pipe", "session/builtin", "pipe/builtin", None),
    ("the same, back to back", "session/builtin-again", "pipe/builtin-again", None),
    ("the same, each in a loop of its own", "session/builtin-alone", "pipe/builtin-alone", None),
    ("an external command / in the bare shell", "session/external", "pipe/external", 1.3),
    ("the same, back to back", "session/external-again", "pipe/external-again", None),
    ("an external command / bwrap for each", "session/external", "bwrap/external", None),
    ("open, `:`, close / `bash -c :` in bwrap", "session/open-run-close", "bwrap/bash", 2.5),
)


def measure(work):
    peers, missing = read_peers(work)
    with open(work + "/times") as file:
        times = table_of(file.read(), 1e-3)
    for name, row in list(times.items()):
        if "failed" in row:
            missing[name] = f"it failed while it was measured, with wait status {row['failed']}"
            del times[name]
    with open(work + "/memory") as file:
        init, shell = map(int, file.read().split()[1:])
    return {
        "date": time.strftime("%Y-%m-%d"), "commit": os.environ.get("BENCH_COMMIT", ""), "kernel": platform.release(),
        "load": os.getloadavg()[0], "cpus": os.cpu_count(), "times_us": times, "missing": missing,
        "memory_kib": {"init": init, "shell": shell} if init >= 0 and shell >= 0 else None,
        "versions": {name: version_of(argv[:1] + ["--version"]) for name, (_, argv) in peers.items()},
    }


def section(r, runs):
    times = r["times_us"]
    lines = ["## Sessions", "",
             f"`bench/session {runs}` on {r['date']} at `{r['commit'] or 'unknown'}`, by turns in one run, load {r['load']:.1f} of {r['cpus']} CPUs. "
             "The bare pipe and the bare shell are the same bash without", "hutch.", "",
             "| | median | p10 | at most | |", "|---|---:|---:|---:|---|"]
    for text, a, b, most in PROMISED:
        ratio = {q: times[a][q] / times[b][q] for q in ("median", "p10")}
        verdict = "" if not most else "met" if ratio["median"] <= most else "missed"
        lines.append(f"| {text} | {ratio['median']:.2f} | {ratio['p10']:.2f} | {most or ''} | {verdict} |")
    more = (times["session/builtin-paced"]["median"] - times["pipe/builtin-paced"]["median"]) / 1000
    lines.append(f"| a builtin through the API, more than over the bare pipe, 5 ms between commands | {more:.2f} ms | | 0.5 ms | {'met' if more <= 0.5 else 'missed'} |")
    fresh = times["session/open-run-close"]["median"] / 1000
    lines.append(f"| a new session, `:`, and its end | {fresh:.1f} ms | {times['session/open-run-close']['p10'] / 1000:.1f} ms | 8 ms | {'met' if fresh <= 8 else 'missed'} |")
    if r["memory_kib"]:
        mib = sum(r["memory_kib"].values()) / 1024
        lines.append(f"| an idle session, proportional memory of init and shell | {mib:.2f} MiB | | 4 MiB | {'met' if mib <= 4 else 'missed'} |")
    base = times["session/external"]["median"]
    lines += ["", "One command after the other, in a session and with peers. The last column is against `/bin/true` in a session.", "",
              "| | median µs | p10 | p90 | / session | runs |", "|---|---:|---:|---:|---:|---:|"]
    for name, row in sorted(times.items(), key=lambda item: item[1]["median"]):
        version = r["versions"].get(name)
        lines.append(f"| {NAMES.get(name, name)}{' (' + version + ')' if version else ''} | {row['median']:,.0f} | {row['p10']:,.0f} | {row['p90']:,.0f} | "
                     f"{row['median'] / base:,.2f} | {row['runs']} |")
    lines += ["", *(f"Without {name}: {reason}." for name, reason in r["missing"].items())] if r["missing"] else []
    return "\n".join(lines) + "\n"


def main():
    work, out, page = sys.argv[1:]
    results = measure(work)
    text = section(results, results["times_us"]["pipe/builtin"]["runs"])
    print(text, end="")
    with open(out, "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    with open(page) as file:
        before = file.read()
    after = re.sub(r"(?<=\n)## Sessions\n.*?(?=\n## |\Z)", lambda _: text, before, flags=re.S)
    with open(page, "w") as file:
        file.write(after if after != before or "## Sessions\n" in before else before.rstrip("\n") + "\n\n" + text)


main()
