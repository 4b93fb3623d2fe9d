"""What a run found, as the table of docs/security.md."""
import collections
import os
import re

import world

ORDER = ["hutch", "host program", "spawner", "warden", "helper", "init", "target"]


def rows(table):
    groups = collections.defaultdict(list)
    for variant, who, call, error, verdict, _ in table:
        groups["hutch" if who == "hutch" else who, call].append((error, verdict))
    for (who, call), found in sorted(groups.items(), key=lambda item: (ORDER.index(item[0][0]), item[0][1].startswith("SIGKILL"), item[0][1])):
        yield who, call, found


def summary(found):
    """points, refused or ended, tolerated, otherwise"""
    ended = sum(verdict in ("refused", "killed") for _, verdict in found)
    tolerated = sum(verdict == "tolerated" for _, verdict in found)
    return len(found), ended, tolerated, len(found) - ended - tolerated


def markdown(table):
    faults = [row for row in table if row[3] != "SIGKILL"]
    kills = [row for row in table if row[3] == "SIGKILL"]
    lines = ["| process | system call | made to fail with | points | refused | tolerated | otherwise |", "|---|---|---|---|---|---|---|"]
    for who, call, found in rows(faults):
        points, ended, tolerated, other = summary(found)
        errors = " ".join(dict.fromkeys(error for error, _ in found))
        lines.append(f"| {who} | `{call}` | {errors} | {points} | {ended} | {tolerated} | {other or 'none'} |")
    points, ended, tolerated, other = summary([row[3:5] for row in faults])
    lines.append(f"| **all** | | | **{points}** | **{ended}** | **{tolerated}** | **{other or 'none'}** |")
    if kills:
        lines += ["", "| killed with SIGKILL | stages | left over |", "|---|---|---|"]
        for who in ORDER:
            mine = [row[3:5] for row in kills if row[1] == who]
            if mine:
                lines.append(f"| {who} | {len(mine)} | {summary(mine)[3] or 'nothing'} |")
    lines += [""] + [f"- {what}{'' if good else ' **failed**'}" for good, what in world.told if "walls stand" not in what and "otherwise" not in what
                     and "killed at" not in what]
    return lines


def write(path, table):
    """Puts it between the marks of this user in the file."""
    who = "root" if world.ROOT else "user"
    text = "\n".join(markdown(table))
    with open(path) as file:
        page = file.read()
    begin, end = f"<!-- tests/fault, {who} -->\n", f"\n<!-- end, {who} -->"
    page = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: begin + text + end, page, flags=re.S)
    with open(path, "w") as file:
        file.write(page)
