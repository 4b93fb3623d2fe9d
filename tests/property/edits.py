"""Random trees and edits of them, the same for the host and for a box: a list of edits is made from what a tree looks like, and carried out by
`python3 edits.py` with the list as JSON on its stdin; with `begin` or `show` it prints the tree before or after them. `look` is what a tree is:
path -> (type, mode, content)."""
import hashlib, json, os, random, shutil, stat, sys

NAMES = ["a", "b", "c", " d", "e\nf", "-g", "\u00e9", "h\\", "i'j", "k.l"]
CHUNK = 1 << 16


def content(path, st):
    """Of the bytes, with holes skipped where blocks of zeroes are."""
    h = hashlib.sha256(str(st.st_size).encode())
    with open(path, "rb") as f:
        at = 0
        while True:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:
                return h.hexdigest()[:16]
            at -= at % CHUNK
            f.seek(at)
            data = f.read(CHUNK)
            if not data:
                return h.hexdigest()[:16]
            if data.strip(b"\0"):
                h.update(b"%d:" % at + data.rstrip(b"\0"))
            at += len(data)


def look(root):
    tree = {}
    for directory, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(directory, name)
            try:
                st = os.lstat(path)
                if stat.S_ISLNK(st.st_mode):
                    what = ("l", 0, os.readlink(path))
                elif stat.S_ISDIR(st.st_mode):
                    what = ("d", stat.S_IMODE(st.st_mode), "")
                else:
                    what = ("f", stat.S_IMODE(st.st_mode), content(path, st))
            except FileNotFoundError:
                continue
            tree[os.path.relpath(path, root)] = what
    return tree


def make(rng, root, depth=0):
    """A first tree."""
    files = []
    for name in NAMES:
        path = os.path.join(root, name)
        kind = rng.random()
        if kind < 0.25 and depth < 3:
            os.mkdir(path)
            files += make(rng, path, depth + 1)
        elif kind < 0.5:
            with open(path, "w") as f:
                f.write("%f\n" % rng.random() * rng.randrange(1, 30))
            os.chmod(path, rng.choice([0o644, 0o600, 0o755]))
            files.append(path)
        elif kind < 0.55:
            os.symlink(rng.choice(NAMES), path)
        elif kind < 0.58:
            with open(path, "wb") as f:
                f.truncate(1 << 40)
                f.seek(rng.randrange(1 << 30))
                f.write(b"x" * 100)
        elif kind < 0.63 and files:
            os.link(rng.choice(files), path)
    return files


def plan(rng, tree, n):
    """n edits of a tree that looks like that. What is in a repository is written by commits: other names there are held back."""
    known = [p for p in tree if not p.startswith("repo")] or ["a"]
    directories = [""] + [p for p in known if tree.get(p, "f")[0] == "d"]
    edits = []
    for _ in range(n):
        fresh = os.path.join(rng.choice(directories), rng.choice(NAMES))
        old, other = rng.choice(known), os.path.join(rng.choice(directories), rng.choice(NAMES))
        text = "%f\n" % rng.random() * rng.randrange(1, 9)
        edits.append(rng.choice([
            ("write", fresh, text), ("write", old, text), ("write", old, text), ("append", old, text), ("mkdir", fresh, ""),
            ("remove", old, ""), ("remove", old, ""), ("anew", old, text), ("rename", old, other), ("rename", old, fresh),
            ("link", old, other), ("symlink", fresh, rng.choice(NAMES)), ("chmod", old, rng.choice([0o700, 0o755, 0o750])),
            ("touch", old, ""), ("again", old, ""), ("sparse", fresh, text)]))
    return edits


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def one(what, path, more):
    if what == "write":
        with open(path, "w") as f:
            f.write(more)
    elif what == "append":
        with open(path, "a") as f:
            f.write(more)
    elif what == "mkdir":
        os.mkdir(path)
    elif what == "remove":
        remove(path)
    elif what == "anew":  # another directory in the place of one
        remove(path)
        os.mkdir(path)
        with open(os.path.join(path, NAMES[len(more) % len(NAMES)]), "w") as f:
            f.write(more)
    elif what == "rename":
        os.rename(path, more)
    elif what == "link":
        os.link(path, more, follow_symlinks=False)
    elif what == "symlink":
        os.symlink(more, path)
    elif what == "chmod" and not os.path.islink(path):
        os.chmod(path, more)
    elif what == "touch":
        os.utime(path, follow_symlinks=False)
    elif what == "again":  # the same content in another file
        shutil.copy2(path, path + ".new", follow_symlinks=False)
        os.rename(path + ".new", path)
    elif what == "sparse":
        with open(path, "w") as f:
            f.truncate(1 << 35)
            f.write(more)


def carry_out(edits, root):
    os.chdir(root)
    for what, path, more in edits:
        try:
            if what in ("again", "touch") and os.stat(path).st_size > 1 << 20:
                continue  # copyfile() knows no holes, and a large file that is touched counts as changed
            one(what, path, more)
        except (OSError, shutil.Error):
            pass


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    todo, when = json.load(sys.stdin), sys.argv[1] if len(sys.argv) > 1 else None
    begun = look(".") if when == "begin" else None
    carry_out(todo, ".")
    if when:
        json.dump(begun if when == "begin" else look("."), sys.stdout)
