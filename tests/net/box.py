"""What the tests of the network share: hutch in the network of scene.py, and tests with a title. run and strict.py import it."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import scene

HERE = os.path.dirname(os.path.abspath(__file__))
HUTCH = os.path.join(os.environ.get("HUTCH_BUILD", os.path.join(HERE, "../../build")), "hutch")
MUST = os.environ.get("HUTCH_MUST_WORK") == "1"
BACKEND = ["--isolation", os.environ["HUTCH_BACKEND"]] if os.environ.get("HUTCH_BACKEND") else []
SLOW = int(os.environ.get("HUTCH_SLOW", 1))  # how many times longer a machine that is emulated takes
TOP = os.path.realpath(tempfile.mkdtemp(dir=os.environ.get("HUTCH_TMP"), prefix="net."))
WS, HOME = TOP + "/ws", TOP + "/home"
TOP_OF_UNITS, MANAGER = [], []  # the imitated manager, once it is started
tests = []


class Skip(Exception):
    pass


def test(title):
    def add(f):
        tests.append((title, f))
        return f
    return add


def hutch(options, command, **more):
    env = {"PATH": os.environ["PATH"], "HOME": HOME, "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR", "")}
    argv = [HUTCH, "--json", "--timeout", "60s", *BACKEND, *options]
    argv += ["-c", command] if isinstance(command, str) else ["--", *command]
    r = subprocess.run(argv, cwd=WS, env=env, capture_output=True, text=True, timeout=90, **more)
    try:
        return json.loads(r.stdout)
    except ValueError:
        raise AssertionError(f"no result: {r.stdout!r} {r.stderr!r}")


def python(options, text):
    return hutch(options, ["python3", "-c", PRELUDE + text])


PRELUDE = """
import errno, os, socket, struct, sys
def tcp(host, port, text=b'GET / HTTP/1.0\\r\\n\\r\\n'):
    s = socket.create_connection((host, port), timeout=10)
    s.sendall(text)
    data = b''
    while True:
        more = s.recv(65536)
        if not more:
            return data
        data += more
def udp(host, port, text=b'hi'):
    f, k, p, _, a = socket.getaddrinfo(host, port, 0, socket.SOCK_DGRAM)[0]
    s = socket.socket(f, k, p)
    s.settimeout(3)
    s.connect(a)
    s.send(text)
    return s.recv(65536)
def outcome(f, *a):
    try:
        f(*a)
        return 'through'
    except socket.gaierror:
        return 'no such name'
    except OSError as e:
        return errno.errorcode.get(e.errno, type(e).__name__)
"""


def expect(got, want, what=""):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def through(options, text, want):
    r = python(options, text)
    assert r["exit_code"] == 0, r["stderr"]
    expect(r["stdout"].strip(), want)
    return r


ALLOW = ["--allow-host", "allowed.example"]


def start(options, text):
    return subprocess.Popen([HUTCH, "--json-lines", "--timeout", "30s", *options, "--", "python3", "-c", text], cwd=WS, stdout=subprocess.PIPE,
                            text=True, env={"PATH": os.environ["PATH"], "HOME": HOME})


def wait_for(what, message):
    until = time.time() + 30
    while not what():
        assert time.time() < until, message
        time.sleep(0.02)


def children(pid):  # their names by process id
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        pids = f.read().split()
    names = {}
    for p in pids:
        with open(f"/proc/{p}/comm") as f:
            names[int(p)] = f.read().strip()
    return names


def relay_of(p):
    return next(pid for pid, name in children(p.pid).items() if name == "hutch-relay")


def codes(result):
    return [n["code"] for n in result["notices"]]


def write_in_place(path, text):  # the files are mounts of the scene's own
    with open(path, "w") as f:
        f.write(text)


# Once more where another program builds the box: bubblewrap, and an imitation of systemd's user manager.
ELSEWHERE = ("curl, by name", "another name in the Host", "proxy: names are", "UDP to an", "refused at once", "a port of the host", "attack: a connected UDP",
             "a credential: the stub", "a credential: in no")


def use_backend(name):
    if name:
        BACKEND[:] = ["--isolation", name]
    if name == "bwrap" and not shutil.which("bwrap"):
        raise Skip("needs bubblewrap")
    if name == "systemd-run" and not TOP_OF_UNITS:
        TOP_OF_UNITS.append(tempfile.mkdtemp(prefix="hutch-units."))
        top = TOP_OF_UNITS[0]
        MANAGER.append(subprocess.Popen([os.path.join(HERE, "../tools/systemd-run"), "--manager", top]))
        while not os.path.exists(top + "/systemd/private"):
            time.sleep(0.05)
        os.environ.update(PATH=f"{top}:{os.environ['PATH']}", XDG_RUNTIME_DIR=top)


def main(serve=None):
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    for d in (WS, HOME):
        os.makedirs(d)
    scene.enter()
    scene.serve_all()
    if serve:
        serve()
    words = sys.argv[1:]
    chosen = [(*t, None) for t in tests if not words or any(w in t[0] for w in words)]
    if not words and not BACKEND and os.geteuid() != 0:
        chosen += [(f"on {b}: {title}", f, b) for b in ("bwrap", "systemd-run") for title, f in tests if any(w in title for w in ELSEWHERE)]
    print(f"1..{len(chosen)}", flush=True)
    for n, (title, f, backend) in enumerate(chosen, 1):
        try:
            use_backend(backend)
            f()
            print(f"ok {n} - {title}", flush=True)
        except Skip as e:
            print(f"{'not ok' if MUST else 'ok'} {n} - {title} # SKIP {e}", flush=True)
        except Exception as e:  # noqa: BLE001
            print(f"not ok {n} - {title}\n# " + f"{type(e).__name__}: {e}".replace("\n", "\n# "), flush=True)
    for p in MANAGER:
        p.kill()
    for d in (TOP, *TOP_OF_UNITS):
        shutil.rmtree(d, ignore_errors=True)
    for f in scene.files:
        os.unlink(f)
    os._exit(0)

