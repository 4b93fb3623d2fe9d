"""Tests of an allowlist without a network namespace: the landlock backend, where the box shares the host's network. Called by run.

An attack has a control: the same program with --net open reaches what it is after."""
import os
import socket
import subprocess
import threading
import time

import scene

LANDLOCK = ["--isolation", "landlock"]
ALLOW = [*LANDLOCK, "--allow-host", "allowed.example", "--allow-host", scene.HOST4, "--allow-host", scene.HOST6]
OPEN = [*LANDLOCK, "--net", "open"]
COUNTED = 9190  # for controls; the port after it for attacks
counts, own = {}, [0]  # connections by address, our own among them

# In the box, after run's own prelude.
MORE = """
import ctypes, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def address(host, port):
    if ':' in host:
        return struct.pack('=HHI', socket.AF_INET6, socket.htons(port), 0) + socket.inet_pton(socket.AF_INET6, host) + bytes(4)
    return struct.pack('=HH', socket.AF_INET, socket.htons(port)) + socket.inet_aton(host) + bytes(8)
def raw_connect(fd, where):
    r = libc.connect(fd, where, len(where))
    return 'through' if r == 0 else errno.errorcode[ctypes.get_errno()]
def peer(s):
    try:
        return s.getpeername()[0]
    except OSError:
        return None
def tried(f, *a):
    try:
        return f(*a) or 'through'
    except OSError as e:
        return errno.errorcode.get(e.errno, type(e).__name__)
"""


class _Reads(scene.socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(4096):
            pass


class _Counting(scene._Tcp):
    def verify_request(self, request, client_address):  # in the order in which they were accepted
        counts[self.server_address] = counts.get(self.server_address, 0) + 1
        return True


def reached():
    """How many connections of boxes have arrived where none may; the last one is our own."""
    where = (scene.OTHER4, COUNTED + 1)
    before = own[0]
    own[0] += 1
    socket.create_connection(where).close()
    until = time.monotonic() + 20
    while counts.get(where, 0) <= before and time.monotonic() < until:
        time.sleep(0.01)
    return counts[where] - own[0]


def define(run):
    """Adds the tests to run's list; `run` has its names."""
    test, expect, python, hutch = run["test"], run["expect"], run["python"], run["hutch"]

    def inside(options, text):
        r = python(options, MORE + text)
        assert r["exit_code"] == 0, r["stderr"]
        return r

    def prints(options, text, want):
        r = inside(options, text)
        expect(r["stdout"].strip(), want)
        return r

    def attack(text, want, control="through", allow=ALLOW):
        """`want` in the box, `control` with the host's network."""
        prints(OPEN, text, control)
        return prints(allow, text, want)

    @test("landlock: names and addresses, IPv4 and IPv6; the network is enforced")
    def _():
        for flag, a in (("-4", scene.HOST4), ("-6", scene.HOST6)):
            r = hutch(ALLOW, f"curl -sS {flag} http://allowed.example/")
            expect(r["stdout"], f"page of {a}\n", r["stderr"])
            expect((r["backend"], r["enforced"]["network"]), ("landlock", "enforced"))
        r = hutch([*LANDLOCK, "--allow-host", scene.HOST4, "--allow-host", "2001:db8::/64"],
                  f"curl -sS http://{scene.HOST4}/; curl -sS http://[{scene.HOST6}]/; curl -sS http://{scene.OTHER4}/")
        expect(r["stdout"], f"page of {scene.HOST4}\npage of {scene.HOST6}\n", r["stderr"])
        expect([d["target"] for d in r["denials"]], [scene.OTHER4 + ":80"])

    @test("landlock: the rule's port and no other; the denial names the option")
    def _():
        r = prints([*LANDLOCK, "--allow-host", "four.example:80"],
                   "print(outcome(tcp, 'four.example', 80), outcome(tcp, 'four.example', 8080), outcome(tcp, 'other.example', 80))",
                   "through ECONNREFUSED no such name")
        found = {d["kind"]: d for d in r["denials"]}
        expect((found["connect"]["target"], found["connect"]["fix"]), ("four.example:8080", "--allow-host four.example:8080"))
        expect(found["resolve"]["fix"], "--allow-host other.example")

    @test("landlock: git and node")
    def _():
        r = hutch(ALLOW, "git -c protocol.version=0 ls-remote http://allowed.example:8081/repo.git; git ls-remote http://other.example:8081/repo.git 2>&1")
        assert "refs/heads/main" in r["stdout"] and "Could not resolve host" in r["stdout"], r
        if not run["shutil"].which("node", path="/usr/bin:/bin:/usr/local/bin"):
            raise run["Skip"]("needs node in a system directory")
        r = hutch(ALLOW, ["node", "-e", """
const http = require('http');
http.get('http://allowed.example/', r => { r.on('data', d => process.stdout.write(d)); });
http.get('http://other.example/').on('error', e => console.log(e.code));"""])
        assert "page of" in r["stdout"] and "ENOTFOUND" in r["stdout"], r

    @test("landlock: connect() blocks, polls, fails and is repeated as it does without a box")
    def _():
        text = f"""
import select
s = socket.socket()
print(s.connect_ex(('{scene.HOST4}', 81)), s.connect_ex(('{scene.HOST4}', 80)), time.sleep(0.2), s.connect_ex(('{scene.HOST4}', 80)) == errno.EISCONN)
n = socket.socket()
n.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
n.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
n.setblocking(False)
p = select.epoll(); p.register(n, select.EPOLLOUT)
r = n.connect_ex(('{scene.HOST4}', 80))
p.poll(5)
print(r == errno.EINPROGRESS, n.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), n.getpeername(), n.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) > 0)
n.sendall(b'x\\n'); n.shutdown(socket.SHUT_WR); n.setblocking(True); print(n.recv(10, socket.MSG_WAITALL))
f = socket.socket(); f.setblocking(False)
f.connect_ex(('{scene.HOST4}', 81)); select.select([], [f], [], 5)
print(f.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED)
print(outcome(socket.create_connection, ('{scene.HOST6}', 80)), raw_connect(99, address('{scene.HOST4}', 80)), raw_connect(0, address('{scene.HOST4}', 80)))
t, t6 = socket.socket(), socket.socket(socket.AF_INET6)
print(raw_connect(t.fileno(), address('{scene.HOST4}', 80)[:8]), raw_connect(t6.fileno(), address('{scene.HOST4}', 80)),
      libc.connect(t.fileno(), ctypes.c_void_p(8), 16), errno.errorcode[ctypes.get_errno()])
"""
        want = inside(OPEN, text)["stdout"]
        expect(inside(ALLOW, text)["stdout"], want)
        assert "111 0 None True" in want and "EBADF ENOTSOCK" in want and "EINVAL EINVAL -1 EFAULT" in want, want

    @test("landlock: a connection ends when the box closes it, not when the box ends")
    def _():
        seen = []

        class Until(scene.socketserver.BaseRequestHandler):
            def handle(self):
                while self.request.recv(100):
                    pass
                seen.append(time.monotonic())
        scene.serve(scene._Tcp, scene.HOST4, 9091, Until)

        def note():
            run["wait_for"](lambda: seen, "the server saw no end")
            open(run["WS"] + "/seen", "w").close()
        for how in "s = socket.create_connection(a)", "s = socket.socket(); s.setblocking(False); s.connect_ex(a); select.select([], [s], [], 5)":
            seen.clear()
            threading.Thread(target=note, daemon=True).start()
            inside(ALLOW, f"import select\na = ('{scene.HOST4}', 9091)\n{how}\ns.close()" + """
until = time.time() + 20
while not os.path.exists('seen') and time.time() < until: time.sleep(0.02)
assert os.path.exists('seen')""")
            os.unlink(run["WS"] + "/seen")

    @test("landlock: a host that does not answer holds up nothing but its caller")
    def _():
        held = scene.be_silent(scene.HOST4, 9092)
        text = f"""
import signal
def slow(): tried(socket.socket().connect, ('{scene.HOST4}', 9092))
for i in range(8): threading.Thread(target=slow, daemon=True).start()
time.sleep(0.2)
begin = time.time()
print(outcome(tcp, 'allowed.example', 80), os.chmod('made', 0o600) if os.path.exists('made') else None)
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 300000))
print(raw_connect(s.fileno(), address('{scene.HOST4}', 9092)))
class Alarm(Exception): pass
def ring(*a): raise Alarm
signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.3)
try: socket.socket().connect(('{scene.HOST4}', 9092))
except Alarm: print('alarm')
print(time.time() - begin < 15, flush=True); os._exit(0)
"""
        prints(ALLOW, text, "through None\nEINPROGRESS\nalarm\nTrue")
        r = python([*ALLOW, "--timeout", "2s"], MORE + f"socket.socket().connect(('{scene.HOST4}', 9092))")
        expect((r["exit_code"], r["kill_reason"]), (124, "timeout"))
        for s in held:
            s.close()

    @test("landlock: a call that a signal interrupts is repeated, and its connection stands")
    def _():
        prints(ALLOW, f"""
import signal
signal.signal(signal.SIGUSR1, lambda *a: None); signal.siginterrupt(signal.SIGUSR1, False)
main, done = threading.main_thread().ident, []
def knock():
    while not done: signal.pthread_kill(main, signal.SIGUSR1)
threading.Thread(target=knock, daemon=True).start()
bad = []
for i in range(200):
    s = socket.socket(); r = raw_connect(s.fileno(), address('{scene.HOST4}', {COUNTED}))
    if r not in ('through', 'EINTR') or (r == 'through' and not peer(s)): bad.append(r)
    s.close()
done.append(1)
print(bad)""", "[]")

    @test("landlock: 3,000 sockets that were closed unconnected, 300 connections at once")
    def _():
        prints(ALLOW, f"""
early = socket.socket()
for i in range(3000): socket.socket().close()
print(outcome(tcp, '{scene.HOST4}', 80))
held = []
for i in range(300): held.append(socket.create_connection(('{scene.HOST4}', 8083)))
for s in held: s.sendall(b'x')
print(sum(s.recv(1) == b'x' for s in held), tried(early.connect, ('{scene.HOST4}', 80)))""", "through\n300 through")

    @test("landlock: names as the C library has them, by each of its functions")
    def _():
        resolv = open("/etc/resolv.conf").read()
        try:
            run["write_in_place"]("/etc/resolv.conf", resolv + "search corp.example example\n")
            prints([*ALLOW, "--allow-host", "many.example"], f"""
def names(n, **k): return sorted({{a[4][0] for a in socket.getaddrinfo(n, 80, **k)}}, reverse=True)
print(names('allowed.example'), names('ALLOWED.example.', family=socket.AF_INET), names('allowed'))
print(socket.gethostbyname_ex('allowed.example')[2], names('localhost'), names('hosts.example'), outcome(tcp, 'hosts.example', 80), names('203.0.113.9'))
print(len(names('many.example')), outcome(names, 'absent.allowed.example'), outcome(names, 'other.example'), outcome(socket.gethostbyaddr, '{scene.HOST4}') == 'through')
import pwd; print(pwd.getpwuid(os.getuid()).pw_uid == os.getuid())
""", f"['{scene.HOST4}', '{scene.HOST6}'] ['{scene.HOST4}'] ['{scene.HOST4}', '{scene.HOST6}']\n['{scene.HOST4}'] ['::1', '127.0.0.1'] ['{scene.OTHER4}'] ECONNREFUSED ['203.0.113.9']\n"
                   "32 no such name no such name False\nTrue")
        finally:
            run["write_in_place"]("/etc/resolv.conf", resolv)

    @test("landlock: a static Go program finds names; questions by a connected datagram socket are answered")
    def _():
        prints(ALLOW, f"""
def ask(name, where, kind=1, more=b''):
    q = b'\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + b''.join(bytes([len(l)]) + l for l in name.split(b'.')) + struct.pack('>BHH', 0, kind, 1)
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(5); u.connect(where)
    u.send(more or q)
    try: a = u.recv(2000)
    except TimeoutError: return 'nothing'
    return a[3] & 15, a[-4:] == socket.inet_aton('{scene.HOST4}')
print(ask(b'allowed.example', ('192.0.2.1', 53)), ask(b'other.example', ('127.0.0.53', 53)), ask(b'secret.allowed.example', ('203.0.113.53', 53)), ask(b'allowed.example', ('203.0.113.53', 53), 16))
print(outcome(ask, b'allowed.example', ('203.0.113.53', 5353)), outcome(ask, b'x', ('203.0.113.53', 53), 1, bytes(1400)) in ('through', 'EPIPE', 'ECONNRESET'))
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); print(outcome(s.sendto, b'x', ('{scene.HOST6}', 53)) != 'through')""",
               "(0, True) (3, False) (3, False) (0, False)\nEACCES True\nTrue")
        go = run["shutil"].which("go")
        if not go:
            raise run["Skip"]("needs go")
        with open(run["TOP"] + "/shared.go", "w") as f:
            f.write('package main\nimport ("fmt";"io";"net/http";"os")\nfunc main() { for _, u := range os.Args[1:] { r, e := http.Get(u); '
                    'if e != nil { fmt.Println("refused"); continue }; b, _ := io.ReadAll(r.Body); fmt.Print(string(b)) } }\n')
        env = {"PATH": os.environ["PATH"], "HOME": run["TOP"], "GOCACHE": os.environ.get("HUTCH_CACHE", run["TOP"]) + "/go", "CGO_ENABLED": "0", "GO111MODULE": "off"}
        subprocess.run([go, "build", "-o", run["WS"] + "/shared", run["TOP"] + "/shared.go"], env=env, check=True, timeout=300)
        r = hutch([*LANDLOCK, "--allow-host", "allowed.example"], ["./shared", "http://allowed.example/", "http://other.example/", f"http://{scene.OTHER4}/"])
        assert r["stdout"].startswith("page of") and r["stdout"].endswith("refused\nrefused\n"), r
        expect({d["kind"] for d in r["denials"]}, {"resolve", "connect"})

    @test("landlock: --allow-host-port opens that port of the host's loopback, by every spelling")
    def _():
        prints([*LANDLOCK, "--allow-host-port", "5432"], "print(outcome(tcp, 'localhost', 5432), outcome(tcp, '127.0.0.1', 5432), outcome(tcp, '::ffff:127.0.0.1', 5432),"
               " outcome(tcp, '127.0.0.1', 5434), outcome(tcp, '127.0.0.2', 5434))", "through through through ECONNREFUSED ECONNREFUSED")

    @test("landlock: a session, its later shells and --net-log")
    def _():
        log = run["TOP"] + "/log-shared"
        env = {"PATH": os.environ["PATH"], "HOME": run["HOME"]}

        def session(*words):
            return subprocess.run([run["HUTCH"], "session", *words], cwd=run["WS"], env=env, capture_output=True, text=True, timeout=60, check=False)
        try:
            r = session("start", "shared", *ALLOW, "--net-log", log)
            expect(r.returncode, 0, r.stderr)
            get = f"curl -sS http://allowed.example/ | grep -c page; curl -sS http://{scene.OTHER4}/ 2>&1 | grep -c 'Failed to connect'"
            for before in "true", "kill -9 $$", "true":
                session("run", "shared", "-c", before)
                expect(session("run", "shared", "-c", get).stdout, "1\n1\n")
        finally:
            session("stop", "shared")
        lines = [run["json"].loads(line) for line in open(log)]
        assert any((x["decision"], x["rule"]) == ("opened", "allowed.example") for x in lines), lines
        assert any((x["decision"], x["address"]) == ("refused", scene.OTHER4) for x in lines), lines

    # ---- attacks ----

    @test("landlock attack: another address, in every spelling")
    def _():
        outside = [scene.OTHER4, "::ffff:" + scene.OTHER4, scene.OTHER6, scene.PRIVATE, scene.METADATA]
        own = ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "127.1.2.3"]
        attack(f"print({{outcome(tcp, a, 80) for a in {outside}}}, {{outcome(tcp, a, 5434) for a in {own}}})",
               "{'ECONNREFUSED'} {'ECONNREFUSED'}", "{'through'} {'through'}")
        prints([*ALLOW, "--allow-host", "0.0.0.0"], f"print({{outcome(tcp, a, 5434) for a in {own}}})", "{'ECONNREFUSED'}")

    @test("landlock attack: names that lead to the loopback, the host, the LAN and the metadata service; a host's own address")
    def _():
        names = ["local.example", "mapped.example", "nat64.example", "metadata.example", "lan.example", "own.example"]
        options = [*LANDLOCK, *(w for n in names for w in ("--allow-host", n)), "--allow-host", "0.0.0.0/0"]
        text = f"print([outcome(tcp, n, p) for n in {names} for p in (80, 5434)], outcome(tcp, '{scene.OWN4}', 5434))"
        prints(options, text, str(["no such name"] * 12) + " ECONNREFUSED")
        # Each of them but nat64.example, which has no route here, leads to a server on one of the ports.
        reach = inside(OPEN, text)["stdout"]
        expect([reach.count("'through'"), reach.split()[-1]], [5, "through"])

    @test("landlock attack: a name that is not allowed never leaves the host")
    def _():
        scene.asked.clear()
        r = inside(ALLOW, """
for n in ('secret.other.example', 'secret.allowed.example', 'allowed.example.secret.example', 'secretallowed.example'):
    for f in (lambda n: socket.getaddrinfo(n, 80), socket.gethostbyname): print(outcome(f, n))
print(outcome(tcp, 'allowed.example', 80))""")
        expect(r["stdout"].split("\n")[:-1], ["no such name"] * 8 + ["through"])
        expect([n for n in scene.asked if "secret" in n], [])
        assert "allowed.example" in scene.asked

    @test("landlock attack: datagrams, raw sockets and other protocols")
    def _():
        text = f"""
def sends():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
    s.sendto(b'hi', ('{scene.HOST4}', 4433)); s.recv(100)
def sends6():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(3)
    s.sendmsg([b'hi'], [], 0, ('{scene.HOST6}', 4433)); s.recv(100)
def connects():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
    s.connect(('{scene.HOST4}', 4433)); s.send(b'hi'); s.recv(100)
print([outcome(f) == 'through' for f in (sends, sends6, connects)],
      [outcome(socket.socket, *a) for a in ((2, 3, 1), (2, 2, 1), (10, 2, 58), (2, 1, 262), (2, 1, 132), (2, 5, 132), (2, 2, 136), (16, 3, 0), (17, 3, 0), (40, 1, 0), (38, 5, 0), (1, 2, 0), (1, 5, 0))].count('through'))"""
        expect(inside(OPEN, text)["stdout"].split("]")[0], "[True, True, True")
        prints(ALLOW, text, "[False, False, False] 0")

    @test("landlock attack: FASTOPEN by the flag and by the option")
    def _():
        text = f"""
class Message(ctypes.Structure):
    _fields_ = [('name', ctypes.c_void_p), ('len', ctypes.c_uint), ('iov', ctypes.c_void_p), ('n', ctypes.c_size_t), ('control', ctypes.c_void_p), ('clen', ctypes.c_size_t), ('flags', ctypes.c_int), ('sent', ctypes.c_uint)]
where = ctypes.create_string_buffer(address('{scene.OTHER4}', {COUNTED})[:16], 16)
data = ctypes.create_string_buffer(b'hi'); iov = (ctypes.c_void_p * 2)(ctypes.addressof(data), 2)
m = Message(ctypes.addressof(where), 16, ctypes.addressof(iov), 1, None, 0, 0, 0)
F = 0x20000000
def went(r, s): return r >= 0 and peer(s) is not None
s = [socket.socket() for i in range(5)]
print(went(libc.sendto(s[0].fileno(), data, 2, F, where, 16), s[0]), went(libc.sendmsg(s[1].fileno(), ctypes.byref(m), F), s[1]), went(libc.sendmmsg(s[2].fileno(), ctypes.byref(m), 1, F), s[2]),
      outcome(s[3].setsockopt, socket.IPPROTO_TCP, 30, 1))"""
        expect(inside(OPEN, text)["stdout"].strip(), "True True True through")
        prints(ALLOW, text.replace(str(COUNTED), str(COUNTED + 1)), "False False False EPERM")
        expect(reached(), 0)

    @test("landlock attack: a server: bind, listen, and listen after the connection was dissolved")
    def _():
        attack(f"""
s = socket.create_connection(('{scene.HOST4}', 80))
def fresh(f): return outcome(lambda: f(socket.socket()))
print(fresh(lambda s: s.bind(('0.0.0.0', 0))), fresh(lambda s: s.listen()), raw_connect(s.fileno(), bytes(16)), outcome(s.listen), peer(s) is not None)""",
               "EACCES EACCES EISCONN EACCES True", "through through through through False")

    @test("landlock attack: source routes and other interfaces lead no judged connection another way")
    def _():
        text = f"""
lsrr = bytes([131, 7, 4]) + socket.inet_aton('{scene.OTHER4}') + b'\\0'
def on(family, level, option, value):
    return outcome(socket.socket(family).setsockopt, level, option, value)
print(on(2, 0, 4, lsrr), on(2, 1, 25, b'lo\\0'), on(2, 1, 62, 1), on(2, 0, 50, socket.htonl(1)), on(10, 41, 50, bytes(16) + struct.pack('I', 1)), on(10, 41, 76, socket.htonl(1)))
print([on(10, 41, o, bytes(24)) for o in (5, 6, 54, 55, 57, 59)])"""
        expect(inside(OPEN, text)["stdout"].split("\n")[0].split(" ", 1)[1], " ".join(["through"] * 5))
        prints(ALLOW, text, " ".join(["EPERM"] * 6) + "\n" + str(["EPERM"] * 6))

    @test("landlock attack: a second thread changes the address during the call")
    def _():
        text = f"""
good, bad = (address(a, {COUNTED}) for a in ('{scene.HOST4}', '{scene.OTHER4}'))
where = ctypes.create_string_buffer(good, 16); at = ctypes.addressof(where) + 4; done = []
g, b = ctypes.create_string_buffer(good[4:8], 4), ctypes.create_string_buffer(bad[4:8], 4)
def flip():
    while not done:
        ctypes.memmove(at, b, 4); ctypes.memmove(at, g, 4)
for i in range(2): threading.Thread(target=flip, daemon=True).start()
peers = set()
for i in range(400):
    s = socket.socket(); libc.connect(s.fileno(), where, 16); peers.add(peer(s)); s.close()
done.append(1)
print(sorted(p for p in peers if p))"""
        expect(inside(OPEN, text)["stdout"].strip(), str([scene.HOST4, scene.OTHER4]))
        prints(ALLOW, text.replace(str(COUNTED), str(COUNTED + 1)), str([scene.HOST4]))
        expect(reached(), 0)

    @test("landlock attack: another socket is put in the place of the judged one during the call")
    def _():
        text = f"""
n, done, peers, others = 200, [], set(), []
a, b = socket.socketpair()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def swap(t):
    while not done: os.dup2(t.fileno(), n); os.dup2(a.fileno(), n); os.dup2(u.fileno(), n)
for i in range(200):
    t, del_ = socket.socket(), done.clear()
    os.dup2(t.fileno(), n)
    w = threading.Thread(target=swap, args=(t,)); w.start()
    for host in ('{scene.OTHER4}', '{scene.HOST4}', '{scene.OTHER4}'): libc.connect(n, address(host, {COUNTED}), 16)
    done.append(1); w.join(); peers.add(peer(t)); t.close()
print(sorted(p for p in peers if p))"""
        prints(ALLOW, text.replace(str(COUNTED), str(COUNTED + 1)), str([scene.HOST4]))
        expect(reached(), 0)
        expect(inside(OPEN, text.replace("for i in range(200):", "for i in range(20):"))["stdout"].strip() != "[]", True)

    @test("landlock attack: a process that makes itself undumpable connects to nothing")
    def _():
        attack(f"""
s = socket.socket()
libc.prctl(4, 0, 0, 0, 0)
print(raw_connect(s.fileno(), address('{scene.HOST4}', 80)), raw_connect(s.fileno(), address('{scene.OTHER4}', 80)))
s = socket.socket()
libc.prctl(4, 1, 0, 0, 0)
print(raw_connect(s.fileno(), address('{scene.HOST4}', 80)))""", "EACCES EACCES\nthrough", "through EISCONN\nthrough")

    @test("landlock attack: no room for a descriptor; a flood of calls: closed, and the time limit holds")
    def _():
        attack(f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
try:
    while True: held.append(socket.socket())
except OSError as e: print(errno.errorcode[e.errno], len(held) > 10)
for i in range(2000): tried(socket.socket)
one = held.pop(); print(raw_connect(one.fileno(), address('{scene.OTHER4}', 80)), raw_connect(one.fileno(), address('{scene.HOST4}', 80)))""",
               "EMFILE True\nECONNREFUSED through", "EMFILE True\nthrough EISCONN")
        begin = time.monotonic()
        r = python([*ALLOW, "--timeout", "3s"], MORE + f"""
def flood():
    while True: tried(socket.socket().connect, ('{scene.OTHER4}', 80))
for i in range(8): os.fork() or flood()
while True: time.sleep(1)""")
        expect((r["exit_code"], r["kill_reason"]), (124, "timeout"))
        assert time.monotonic() - begin < 40

    @test("landlock attack: a socket that is handed to another process, and one that a thread with its own table names")
    def _():
        attack(f"""
a, b = socket.socketpair()
if os.fork() == 0:
    s = socket.socket(); socket.send_fds(a, [b'x'], [s.fileno()]); os._exit(0)
_, fds, _, _ = socket.recv_fds(b, 1, 1)
print(raw_connect(fds[0], address('{scene.OTHER4}', 80)), raw_connect(fds[0], address('{scene.HOST4}', 80)))
out = []
def apart():
    libc.unshare(0x400)
    s = socket.socket(); out.append((raw_connect(s.fileno(), address('{scene.OTHER4}', 80)), raw_connect(s.fileno(), address('{scene.HOST4}', 80))))
t = threading.Thread(target=apart); t.start(); t.join(); print(*out[0])""", "ECONNREFUSED through\nECONNREFUSED through", "through EISCONN\nthrough EISCONN")

    @test("landlock attack: UNIX sockets of the host; and junk for the one that answers for names")
    def _():
        service = socket.socket(socket.AF_UNIX)
        path = run["WS"] + "/service"
        service.bind(path)
        service.listen()
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind(f"\0hutch-test-{os.getpid()}")
        abstract.listen()
        try:
            prints(ALLOW, f"""
def unix(kind, where): s = socket.socket(socket.AF_UNIX, kind); s.connect(where)
print([outcome(unix, k, w) for k in (1, 2, 5) for w in ('{path}', '\\0hutch-test-{os.getpid()}', '/run/nscd/socket/../../{path}', '/run/nscd/socket2')])
def ask(data):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect('/var/run/nscd/socket')
    try: s.sendall(data); s.shutdown(socket.SHUT_WR) if len(data) < 12 else None; return s.recv(4096)
    except OSError as e: return errno.errorcode.get(e.errno)
def question(kind, key, n=None, version=2): return struct.pack('iii', version, kind, len(key) if n is None else n) + key
junk = [b'', b'x', question(14, b'', 0), question(14, b'x', -1), question(14, b'x', 1 << 30), question(14, b'', 1025), question(99, b'x\\0'), question(8, b'\\0'), question(14, b'a\\0', version=1)]
print([ask(j) in (b'', 'EPIPE', 'ECONNRESET') for j in junk].count(False))
print([struct.unpack('iiiiii', ask(question(14, k)))[1] for k in (b'\\0', b'\\xff' * 1000 + b'\\0', b'a' * 1024, b'-.-\\0', b'other.example\\0')])
print(struct.unpack('iiiiii', ask(question(14, b'allowed.example\\0'))[:24])[1:3])
many = []
for i in range(600): s = socket.socket(socket.AF_UNIX); s.connect('/run/nscd/socket'); many.append(s)
for s in many: s.close()
time.sleep(0.1)
print(outcome(tcp, '{scene.HOST4}', 80))""", str(["EACCES"] * 12) + "\n0\n[0, 0, 0, 0, 0]\n(1, 2)\nthrough")
            control = hutch(["--isolation", "none"], ["python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"])
            expect(control["exit_code"], 0)
        finally:
            service.close()
            abstract.close()
            os.unlink(path)

    @test("landlock attack: a relay that is killed: nothing gets through, nothing hangs, and a notice says so")
    def _():
        held = scene.be_silent(scene.HOST4, 9093)
        p = run["start"](ALLOW, run["PRELUDE"] + MORE + f"""
out = []
t = threading.Thread(target=lambda: out.append(tried(socket.socket().connect, ('{scene.HOST4}', 9093)))); t.start()
early = socket.socket()
time.sleep(0.3)
print('up', flush=True)
until = time.time() + 20
while (got := outcome(tcp, '{scene.HOST4}', 80)) == 'through' and time.time() < until: time.sleep(0.05)
t.join(20)
print(got, out, raw_connect(early.fileno(), address('{scene.HOST4}', 80)), outcome(socket.socket), outcome(socket.getaddrinfo, 'allowed.example', 80), flush=True)""")
        events = []
        for line in p.stdout:
            events.append(run["json"].loads(line))
            if events[-1]["type"] == "output" and "up" in events[-1]["data"]:
                os.kill(run["relay_of"](p), 9)
        said = "".join(e["data"] for e in events if e["type"] == "output")
        expect(said, "up\nENETDOWN ['ENETDOWN'] ENETDOWN ENETDOWN no such name\n")
        assert run["codes"](events[-1]).count("relay_ended") == 1, events[-1]
        for s in held:
            s.close()

    @test("landlock attack: init and the relay cannot be signalled, traced or read by the box")
    def _():
        p = run["start"](ALLOW, run["PRELUDE"] + MORE + """
print('up', flush=True)
until = time.time() + 20
while not os.path.exists('relay') and time.time() < until: time.sleep(0.02)
pids = [os.getppid(), int(open('relay').read())]
print([outcome(f) for p in pids for f in (lambda: os.kill(p, 0), lambda: os.kill(p, 19), lambda: os.listdir(f'/proc/{p}/fd'), lambda: open(f'/proc/{p}/mem', 'rb'))])""")
        said = ""
        for line in p.stdout:
            event = run["json"].loads(line)
            said += event["data"] if event["type"] == "output" else ""
            if said == "up\n":
                with open(run["WS"] + "/relay.new", "w") as f:
                    f.write(str(run["relay_of"](p)))
                os.rename(run["WS"] + "/relay.new", run["WS"] + "/relay")
                said += "."
        os.unlink(run["WS"] + "/relay")
        expect(said, "up\n." + str(["EPERM", "EPERM", "EACCES", "EACCES"] * 2) + "\n")


def serve_more():
    for kind, a in ((_Counting, scene.HOST4), (_Counting, scene.OTHER4)):
        for port in COUNTED, COUNTED + 1:
            scene.serve(kind, a, port, _Reads)
