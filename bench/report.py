"""Makes the table on stdout, benchmarks.md and benchmarks.svg from results.json. usage: report.py RESULTS DIRECTORY"""

import os
import html
import json
import math
import re
import sys

NOTES = {
    "posix_spawn": "no box at all",
    "bwrap": "the same namespaces, mounts and environment; no filter, no Landlock",
    "hutch": "`hutch run -- /bin/true`",
    "hutch on bwrap": "`--isolation bwrap`: bubblewrap builds the box, init checks it",
    "hutch on landlock": "`--isolation landlock`: no namespaces",
    "hutch on systemd-run": "`--isolation systemd-run`: systemd builds the box, init checks it",
    "hutch on docker": "`--isolation container`, the same image: docker builds the box, init checks it",
    "firejail": "`--noprofile --private --net=none --caps.drop=all --seccomp`; setuid root",
    "podman": "rootless, `--network none`, a root of three files",
    "docker": "a daemon of root, `--network none`, an image of three files",
    "srt": "@anthropic-ai/sandbox-runtime",
    "codex": "@openai/codex, `codex sandbox`",
}


def ms(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def thresholds(r):
    """What was promised and what was measured: text, ratio, at most, aim."""
    api, streams = r["api"], r["streams"]
    ratio = lambda table, a, b: table[a]["median"] / table[b]["median"]
    return [
        ("`hutch run -- /bin/true` / bwrap", ratio(r["latency"], "hutch", "bwrap"), 0.65, 0.6),
        *([("`--isolation landlock` / bwrap", ratio(r["latency"], "hutch on landlock", "bwrap"), 0.4, None)]
          if "hutch on landlock" in r["latency"] else []),
        ("one run through the C API, in an open box / bwrap", ratio(api, "small/run", "small/bwrap"), 0.65, 0.5),
        ("the same with opening and closing the box / bwrap", ratio(api, "small/open-run-close", "small/bwrap"), 0.65, 0.5),
        ("from a process with 1 GiB of touched memory / from a small one", ratio(api, "large/run", "small/run"), 1.1, None),
        ("a workspace of 200,000 files / an empty one", ratio(r["files"], "many", "empty"), 1.1, None),
        (f"{streams['mib'] // 1024 or streams['mib']} {'GiB' if streams['mib'] >= 1024 else 'MiB'} piped through a box / through `cat`",
         ratio(streams["pipe"], "hutch", "cat"), 1.35, None),
    ]


def verdict(value, most, aim):
    if value > most:
        return "**missed**"
    if aim and value <= aim:
        return "met, and the aim"
    return "met"


def rows_of(table, base):
    for name, row in sorted(table.items(), key=lambda item: item[1]["median"]):
        yield name, row, row["median"] / table[base]["median"]


def print_tables(r):
    print(f"{'start latency, ms':<18}{'median':>9}{'p10':>9}{'p90':>9}{'/ bwrap':>9}{'runs':>6}")
    for name, row, ratio in rows_of(r["latency"], "bwrap"):
        print(f"{name:<18}{ms(row['median']):>9}{ms(row['p10']):>9}{ms(row['p90']):>9}{ratio:>9.2f}{row['runs']:>6}")
    print(f"\n{'2 workers':<18}{'starts/s':>9}{'/ bwrap':>9}")
    for name, row, ratio in reversed(list(rows_of(r["parallel"], "bwrap"))):
        print(f"{name:<18}{row['median']:>9.1f}{ratio:>9.2f}")
    print(f"\n{'C API, ms':<26}{'median':>9}{'p10':>9}{'p90':>9}{'/ bwrap':>9}")
    for name, row, ratio in rows_of(r["api"], "small/bwrap"):
        print(f"{name:<26}{ms(row['median']):>9}{ms(row['p10']):>9}{ms(row['p90']):>9}{ratio:>9.2f}")
    print(f"\n{'streams, ms':<18}{'median':>9}{'p10':>9}{'p90':>9}{'/ cat':>9}")
    for kind in "pipe", "files":
        for name, row, ratio in rows_of(r["streams"][kind], "cat"):
            print(f"{kind + ' ' + name:<18}{ms(row['median']):>9}{ms(row['p10']):>9}{ms(row['p90']):>9}{ratio:>9.2f}")
    print("\ninstructions in user space")
    for name, count in r["instructions"].items():
        print(f"{count:>12,}  {name}")
    print(f"\n{'ratio':>7}{'at most':>9}{'aim':>6}")
    for text, value, most, aim in thresholds(r):
        print(f"{value:>7.2f}{most:>9}{aim or '':>6}  {verdict(value, most, aim).replace('*', '')}: {text.replace('`', '')}")
    for name, reason in r["missing"].items():
        print(f"without {name}: {reason}")


def svg(r):
    """Start latency as bars on a logarithmic axis, with the spread from p10 to p90."""
    rows = list(rows_of(r["latency"], "bwrap"))
    left, right, top, step = 110, 150, 46, 30
    width, height = 820, top + step * len(rows) + 44
    low, high = 0.2, 10 ** math.ceil(math.log10(max(row["p90"] for _, row, _ in rows)))
    x = lambda value: left + (width - left - right) * math.log(max(value, low) / low) / math.log(high / low)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="14">',
        "<title>Time to start, run and end /bin/true</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<text x="14" y="24" font-weight="600" fill="#222">Start, run and end /bin/true: median in milliseconds, p10 to p90, '
        "logarithmic</text>",
    ]
    tick = 1 if low <= 1 else low
    while tick <= high:
        out.append(f'<line x1="{x(tick):.1f}" y1="{top - 8}" x2="{x(tick):.1f}" y2="{height - 34}" stroke="#ddd"/>')
        out.append(f'<text x="{x(tick):.1f}" y="{height - 14}" text-anchor="middle" fill="#555">{tick:g} ms</text>')
        tick *= 10
    for i, (name, row, ratio) in enumerate(rows):
        y = top + i * step
        colour = "#c2571a" if name == "hutch" else "#5b7c99" if name != "posix_spawn" else "#a9b4bd"
        out.append(f'<text x="{left - 10}" y="{y + 15}" text-anchor="end" fill="#222">{html.escape(name)}</text>')
        out.append(f'<rect x="{left}" y="{y}" width="{x(row["median"]) - left:.1f}" height="20" rx="2" fill="{colour}"/>')
        out.append(f'<line x1="{x(row["p10"]):.1f}" y1="{y + 10}" x2="{x(row["p90"]):.1f}" y2="{y + 10}" stroke="#111" stroke-width="1.5"/>')
        for edge in "p10", "p90":
            out.append(f'<line x1="{x(row[edge]):.1f}" y1="{y + 6}" x2="{x(row[edge]):.1f}" y2="{y + 14}" stroke="#111" stroke-width="1.5"/>')
        out.append(f'<text x="{x(row["p90"]) + 8:.1f}" y="{y + 15}" fill="#222">{ms(row["median"])} ({ratio:.2f} of bwrap)</text>')
    return "\n".join(out + ["</svg>", ""])


def markdown(r):
    out = [
        "# Benchmarks", "",
        "Made by `make bench`; do not edit. It installs the peers when root runs it, takes less than five minutes, measures as an ordinary",
        "user, and rewrites this page, the picture and `bench/out/results.json`. Times depend on the machine and on what else it does;",
        "the ratios, of medians from one interleaved run, much less.", "",
        f"Measured on {r['date']}, Linux {r['kernel']} ({r['machine']}, {r['cpus']} CPUs), hutch at `{r['commit'] or 'unknown'}`.",
        *(["The machine had other work: bwrap, hutch and posix_spawn were measured under SCHED_FIFO (`BENCH_REALTIME=1 make bench`)."] if r["realtime"] else []), "",
        "## What was promised", "",
        "| ratio | measured | at most | aim | |", "|---|---:|---:|---:|---|",
    ]
    for text, value, most, aim in thresholds(r):
        out.append(f"| {text} | {value:.2f} | {most} | {aim or '–'} | {verdict(value, most, aim)} |")
    out += ["", "## Start latency", "",
            "From posix_spawn() to the end of waitpid(), `/bin/true`, contenders in turns, in an order drawn anew for each round.", "",
            "![Start latency of hutch and its peers](benchmarks.svg)", "",
            "| | median ms | p10 | p90 | / bwrap | runs | |", "|---|---:|---:|---:|---:|---:|---|"]
    for name, row, ratio in rows_of(r["latency"], "bwrap"):
        version = r["versions"].get(name)
        out.append(f"| {name}{' ' + version if version else ''} | {ms(row['median'])} | {ms(row['p10'])} | {ms(row['p90'])} | "
                   f"{ratio:.2f} | {row['runs']} | {NOTES.get(name, '')} |")
    out += [""] if r["missing"] else []
    out += [f"Without {name}: {reason}." for name, reason in r["missing"].items()]
    out += ["", "What bwrap was asked for, so that its box is hutch's (read from `hutch explain --json`):", "", "```"]
    line = ""
    for word in r["bwrap"]:
        word = word if word and " " not in word else f"'{word}'"
        if word.startswith("--") and len(line) + len(word) > 90:
            out.append(line + " \\")
            line = "   "
        line += (" " if line else "") + word
    out += [line, "```", "", "## Starts per second, two workers", "", "| | starts/s | / bwrap |", "|---|---:|---:|"]
    for name, row, ratio in reversed(list(rows_of(r["parallel"], "bwrap"))):
        out.append(f"| {name} | {row['median']:.1f} | {ratio:.2f} |")
    out += ["", "## The C API", "",
            "One context; `run` is `hutch_box_run` of `/bin/true` in a box that is open, with captured output; `large` is a process that holds",
            "1 GiB of touched memory.", "",
            "| | median ms | p10 | p90 | / bwrap |", "|---|---:|---:|---:|---:|"]
    for name, row, ratio in rows_of(r["api"], "small/bwrap"):
        out.append(f"| {name} | {ms(row['median'])} | {ms(row['p10'])} | {ms(row['p90'])} | {ratio:.2f} |")
    out += ["", "## A large workspace", "", "| files | median ms | p10 | p90 |", "|---|---:|---:|---:|"]
    for name, label in ("empty", "none"), ("many", "200,000"):
        row = r["files"][name]
        out.append(f"| {label} | {ms(row['median'])} | {ms(row['p10'])} | {ms(row['p90'])} |")
    streams = r["streams"]
    out += ["", "## Streams", "",
            f"{streams['mib']} MiB: `head -c … /dev/zero | hutch cat | cat >/dev/null`, where pipes are passed into the box, and `hutch cat <in >out`,",
            "where hutch relays two files (in the page cache) that the box must not hold itself.", "",
            "| | median ms | p10 | p90 | / cat |", "|---|---:|---:|---:|---:|"]
    for kind, label in ("pipe", "pipe to pipe"), ("files", "file to file"):
        for name, row, ratio in rows_of(streams[kind], "cat"):
            out.append(f"| {label}, {name} | {ms(row['median'])} | {ms(row['p10'])} | {ms(row['p90'])} | {ratio:.2f} |")
    out += ["", "## Instructions", "",
            "In user space, and the same whatever else the machine does. callgrind counts `hutch explain`: everything up to the plan, and",
            "printing it. It follows nobody into namespaces, so `hutch run` is counted one instruction at a time by ptrace (`bench/steps.c`).", "",
            "| | instructions |", "|---|---:|"]
    out += [f"| {name} | {count:,} |" for name, count in r["instructions"].items()]
    return "\n".join(out) + "\n"


def main():
    with open(sys.argv[1]) as file:
        results = json.load(file)
    print_tables(results)
    kept = []  # what other programs of this directory measured and wrote there themselves
    if os.path.exists(sys.argv[2] + "/benchmarks.md"):
        with open(sys.argv[2] + "/benchmarks.md") as file:
            kept = re.findall(r"\n## [^\n]*\n.*?(?=\n## |\Z)", file.read(), re.S)
    page = markdown(results)
    with open(sys.argv[2] + "/benchmarks.md", "w") as file:
        file.write(page + "".join(text for text in kept if text.splitlines()[1] + "\n" not in page))
    with open(sys.argv[2] + "/benchmarks.svg", "w") as file:
        file.write(svg(results))


main()
