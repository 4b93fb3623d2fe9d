"""See run. A tree is told by its seed alone.

For every path there are four states: what the box began with (base), what it left (box), what the host had before the apply (host), and what it has
after it (end). Where the host changed a path since the box covered it, end must be host. Where it did not, end must be box, or host with the
path still listed by `hutch diff`.

When the host changes a path while the box exists, the box may have covered it before or after, so there are several bases. A box that leaves one of them
has changed nothing there: its directory was only copied up, for what was made in it, and still has the mode from before the host's chmod."""
import json, os, random, shutil, signal, subprocess, sys, threading, time

import edits

HUTCH = os.path.join(os.environ["HUTCH_BUILD"], "hutch")
HERE = os.path.dirname(os.path.abspath(__file__))
TMP = os.environ["HUTCH_TMP"]
EDITS = open(os.path.join(HERE, "edits.py")).read()
IS_ROOT = os.geteuid() == 0
MOST = 120  # seconds for one command: what takes longer hangs


class Failed(Exception):
    pass


def hutch(*args, text=None, check=True):
    for _ in range(600):
        done = hutch_once(args, text)
        if done.returncode != 125 or "is in use" not in done.stderr:  # by what was killed, and is about to end
            break
        time.sleep(0.02)
    if check and done.returncode != 0:
        raise Failed("hutch %s: %d: %s%s" % (" ".join(args)[:80], done.returncode, done.stderr, done.stdout[-300:]))
    return done


def hutch_once(args, text):
    try:
        return subprocess.run([HUTCH, *args], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="surrogateescape", timeout=MOST)
    except subprocess.TimeoutExpired:
        raise Failed("hutch %s: not done after %d s" % (" ".join(args)[:80], MOST))


def settle(root):
    """Waits until the clock of files has moved on: two edits of one tick are one moment, for everybody."""
    time.sleep(0.012)


def in_box(options, todo, show=None, kill_after=None):
    """`show`: "begin" or "show", the tree that the box sees before or after its edits."""
    args = [HUTCH, "run", "--json", *options, "--", "python3", "-c", EDITS, *([show] if show else [])]
    for box in options[1:] if options[0] == "--box" else []:
        hutch("diff", "--box", box, "--stat", check=False)  # waits until it is free
    p = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if kill_after is not None:
        threading.Timer(kill_after, p.kill).start()
    try:
        out, err = p.communicate(json.dumps(todo), timeout=MOST)
    except subprocess.TimeoutExpired:
        p.kill()
        raise Failed("the box is not done after %d s" % MOST)
    if kill_after is not None and p.returncode < 0:
        return None, {}
    try:
        result = json.loads(out)
    except ValueError:
        raise Failed("no result: %s%s" % (out[:300], err[:300]))
    if result["exit_code"] != 0:
        raise Failed("the box ended with %d: %s" % (result["exit_code"], result["stderr"][-600:] or result["error"]))
    return result, {p: tuple(v) for p, v in json.loads(result["stdout"]).items()} if show else {}


def attributes(root, tree):
    """Access control lists of files."""
    found = {}
    for path in tree:
        full = os.path.join(root, path)
        if tree[path][0] == "f" and not os.path.islink(full):
            try:
                found[path] = os.getxattr(full, "system.posix_acl_access")
            except OSError:
                pass
    return found


def make_repository(rng, root):
    """As git makes one; its parts stand for a whole."""
    git = os.path.join(root, "repo", ".git")
    os.makedirs(os.path.join(git, "objects", "aa"))
    os.makedirs(os.path.join(git, "refs", "heads"))
    for name, text in ("HEAD", "ref: refs/heads/main\n"), ("refs/heads/main", "%040x\n" % 1), ("objects/aa/" + "0" * 38, "1"), ("index", "1"):
        with open(os.path.join(git, name), "w") as f:
            f.write(text)


def commit(rng):
    n = rng.randrange(2, 1 << 30)
    return [("write", "repo/.git/objects/aa/%038x" % n, "%d" % n), ("write", "repo/.git/refs/heads/main", "%040x\n" % n),
            ("write", "repo/.git/index", "%d" % n), ("write", "repo/file", "%d" % n)]


def is_above(path, other):
    return other.startswith(path + "/")


def remaining(box):
    done = hutch("diff", "--box", box, "--json", check=False)
    if done.returncode != 0:
        return set()
    paths = set()

    def gather(node):
        if isinstance(node, dict):
            if isinstance(node.get("path"), str):
                paths.add(node["path"])
            for value in node.values():
                gather(value)
        elif isinstance(node, list):
            for value in node:
                gather(value)
    gather(json.loads(done.stdout))
    return paths


def is_alike(one, other, lists):
    """Group bits next to an access control list are its mask, and are kept apart."""
    return one == other or (lists and one and other and one[0] == other[0] == "f" and one[2] == other[2] and (one[1] ^ other[1]) & ~0o70 == 0)


def check_merge(base, earlier, box, host, end, left, lists, unsure):
    wrong = []
    for path in sorted(set(base) | set(box) | set(host) | set(end)):
        b, x, h, e = (t.get(path) for t in (base, box, host, end))
        if is_alike(e, x, lists):
            e = x
        if e != h and e != x:
            wrong.append("%r: is neither the host's nor the box's: %s (base %s, box %s, host %s)" % (path, e, b, x, h))
        elif e != h and h != b and path not in unsure:
            wrong.append("%r: the host's change was lost: %s (base %s, box %s, host %s)" % (path, e, b, x, h))
        elif any(is_alike(x, one, lists) for one in earlier.get(path, [])):
            continue
        elif e != x and h == b and x != b and not any(path == l or is_above(path, l) or is_above(l, path) for l in left):
            wrong.append("%r: the box's change was lost: %s (base %s, box %s)" % (path, e, b, x))
    return wrong


def check_unit(box, host, end):
    inside = [p for p in set(box) | set(host) if p.startswith("repo/.git/")]
    if all(end.get(p) == host.get(p) for p in inside) or all(end.get(p) == box.get(p) for p in inside):
        return []
    return ["repo/.git was applied in part: %s is the box's, %s the host's" % (
        [p for p in inside if end.get(p) != host.get(p)], [p for p in inside if end.get(p) != box.get(p)])]


def merge_case(seed):
    rng = random.Random(seed)
    top = os.path.join(TMP, "property", str(seed))  # of its own: a box of an earlier tree may be left
    shutil.rmtree(top, ignore_errors=True)
    root, outer = os.path.join(top, "ws"), os.path.join(top, "beside")
    for directory in (root, outer):
        os.makedirs(directory)
        edits.make(rng, directory)
    if rng.random() < 0.4:
        make_repository(rng, root)
    for path in list(edits.look(root)):
        full = os.path.join(root, path)
        if rng.random() < 0.1 and not os.path.islink(full):
            subprocess.run(["setfacl", "-m", "u:daemon:r", full], stderr=subprocess.DEVNULL)
    if IS_ROOT:  # what a box of root's may write
        subprocess.run(["chmod", "-R", "a+rwX", root])
    os.chmod(top, 0o755)
    outside = edits.look(outer)
    settle(root)
    base, unsure, earlier = edits.look(root), set(), {}  # earlier: what else the box may have begun with
    repository = "repo/.git/HEAD" in base

    todo = edits.plan(rng, base, rng.randrange(1, 12)) + (commit(rng) if repository and rng.random() < 0.7 else [])
    other = edits.plan(rng, base, rng.randrange(0, 5))
    during = rng.random() < 0.3
    if during:
        beside = threading.Timer(rng.random() * 0.15, edits_of_host, (other, root))
        beside.start()
    killed = None if rng.random() < 0.8 else rng.random() * 0.2
    result, _ = in_box(["-d", root, "--workspace", "cow"], todo, kill_after=killed)
    boxes = [b["id"] for b in json.loads(hutch("boxes", "--json").stdout) if b.get("workspace") == root]
    if during:
        beside.join()
        # What both changed at the same time may be either's, and is what the box saw from now on.
        now = edits.look(root)
        unsure |= {p for p in set(now) | set(base) if now.get(p) != base.get(p)}
        earlier = {p: [base.get(p)] for p in unsure}
    if not boxes:
        return []
    box = boxes[0]
    settle(root)
    if rng.random() < 0.4:
        before = edits.look(root)
        edits_of_host(edits.plan(rng, base, rng.randrange(1, 5)), root)
        now = edits.look(root)
        changed = {p for p in set(now) | set(before) if now.get(p) != before.get(p)}
        unsure |= changed  # the second run may see them, and change them then
        for path in changed:
            earlier.setdefault(path, []).append(before.get(path))
        settle(root)
        _, begun = in_box(["--box", box], edits.plan(rng, now, rng.randrange(1, 6)), show="begin")
        # Where it saw the host's, it began with that alone.
        earlier = {p: states for p, states in earlier.items() if begun.get(p) != now.get(p)}
        if not any(b["id"] == box for b in json.loads(hutch("boxes", "--json").stdout)):
            return []
        settle(root)
    _, seen = in_box(["--box", box], [], show="show")
    middle = edits.look(root)
    edits_of_host(edits.plan(rng, base, rng.randrange(0, 6)) + (commit(rng) if repository and rng.random() < 0.3 else []), root)
    settle(root)
    host, lists = edits.look(root), attributes(root, edits.look(root))
    # What the box did not change it sees as the host has it.
    changed_now = {p for p in set(middle) | set(host) if middle.get(p) != host.get(p)}
    in_view = dict(seen)
    for path in changed_now:
        if seen.get(path) == middle.get(path):
            seen.pop(path, None)
            if path in host:
                seen[path] = host[path]
    start = {p: base.get(p) for p in base}
    for path in unsure:
        start.pop(path, None)
        if path in middle:
            start[path] = middle[path]
    unsure -= changed_now
    # A directory that the host removed comes back for what the box has in it.
    for path in list(seen):
        while (path := os.path.dirname(path)) in in_view and path not in seen:
            seen[path] = in_view[path]
            unsure.add(path)

    for _ in range(rng.randrange(0, 3)):
        p = subprocess.Popen([HUTCH, "apply", "--box", box], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.03)
        p.kill()
        p.wait()
    done = hutch("apply", "--box", box, check=False)
    if done.returncode not in (0, 1) and "no such box" not in done.stderr and "no box" not in done.stderr:
        raise Failed("apply ended with %d: %s" % (done.returncode, done.stderr))
    end, left = edits.look(root), remaining(box)
    wrong = check_merge(start, earlier, seen, host, end, left, lists, unsure)
    if repository and not during and killed is None:
        wrong += check_unit(seen, host, end)
    for path, value in attributes(root, end).items():
        if path in lists and lists[path] != value and host[path] == end[path]:
            wrong.append("%r: its access control list changed" % path)
    wrong += ["%r: was left behind" % p for p in end if ".hutch-apply" in p]
    if edits.look(outer) != outside:
        wrong.append("something beside the workspace changed")
    if wrong:
        wrong.append("during %s, killed %s, todo %s, meanwhile %s" % (during, killed, todo, other))
    hutch("apply", "--box", box, check=False)
    if edits.look(root) != end:
        wrong.append("a second apply changed something: %s" % [p for p in edits.look(root) if edits.look(root).get(p) != end.get(p)])
    hutch("discard", "--box", box, check=False)
    return wrong


def edits_of_host(todo, root):
    subprocess.run([sys.executable, os.path.join(HERE, "edits.py")], input=json.dumps(todo), text=True, cwd=root)


def changes_case(seed):
    """A session that is snapshotted now and then: each result names what that run changed."""
    rng = random.Random(seed)
    root = os.path.join(TMP, "property", "ws")
    shutil.rmtree(os.path.dirname(root), ignore_errors=True)
    os.makedirs(root)
    edits.make(rng, root)
    if IS_ROOT:
        subprocess.run(["chmod", "-R", "a+rwX", root])
    name, wrong, snapshots = "property%d" % seed, [], []
    hutch("session", "start", name, "-d", root)
    try:
        def run(todo, *options):
            with_text = "python3 -c \"$EDITS\" show"
            done = hutch("session", "run", *options, name, "--env", "EDITS=" + EDITS, "--stdin", "inherit", "-c", with_text, text=json.dumps(todo))
            return done.stdout
        before = json.loads(run([]))
        for _ in range(4):
            if rng.random() < 0.35:
                snapshots.append(hutch("snapshot", "--session", name).stdout.strip())
            if rng.random() < 0.35:
                before = json.loads(run(edits.plan(rng, before, 3)))
            result = json.loads(run(edits.plan(rng, before, 6), "--json"))
            after = json.loads(result["stdout"])
            where = "/workspace/"
            want = {"created": set(after) - set(before), "deleted": set(before) - set(after),
                    "modified": {p for p in after if p in before and after[p] != before[p]}}
            for kind in want:
                got = {p[len(where):] for p in (result["changes"] or {}).get(kind, []) if p.startswith(where)}
                if got != want[kind]:
                    wrong.append("%s: too many %s, missing %s" % (kind, sorted(got - want[kind]), sorted(want[kind] - got)))
            before = after
    finally:
        hutch("session", "stop", name, "--discard", check=False)
        for one in snapshots:
            hutch("snapshot", "--remove", one, check=False)
    return wrong


def main():
    seconds, seeds = float(sys.argv[1]), [int(s) for s in sys.argv[2:]]
    count = 0
    for title, case in ("apply leaves the three-way merge, or says what it left", merge_case), ("changes are what a run changed", changes_case):
        # The same trees each time, but for the long run: what fails in one run of .ci/run failed before it was landed.
        seed = random.randrange(1 << 30) if os.environ.get("HUTCH_LONG") else 1000
        until, first, n, bad = time.monotonic() + seconds, seed, 0, []
        while not bad and (n == 0 or time.monotonic() < until or n < len(seeds)):
            seed = seeds[n] if n < len(seeds) else seed + 1
            try:
                wrong = case(seed)
            except Failed as e:
                wrong = [str(e)]
            bad = ["# seed %d: %s" % (seed, w) for w in wrong]
            n += 1
            if seeds and n >= len(seeds):
                break
        count += 1
        print("%s %d - %s (%d trees, from seed %d)" % ("not ok" if bad else "ok", count, title, n, first))
        print("\n".join(bad))
        shutil.rmtree(os.path.join(TMP, "property"), ignore_errors=True)
    print("1..%d" % count)


main()
