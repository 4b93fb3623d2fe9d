"""network.strict and network.upstream_proxy: what the first bytes of a connection must name, and hosts behind a proxy."""
import base64
import http.server
import os
import shlex
import shutil
import socket
import ssl
import subprocess
import threading

import scene
from box import *  # noqa: F403

STRICT = ["--net-strict", "--allow-host", "allowed.example", "--allow-host", "four.example"]
seen = []  # what the server at port 8085 got, by connection


class _Record(scene.socketserver.BaseRequestHandler):
    def handle(self):
        self.request.settimeout(10)
        number = len(seen)
        seen.append(b"")
        try:
            while b"\r\n\r\n" not in seen[number] and (data := self.request.recv(65536)):
                seen[number] += data
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
            while (data := self.request.recv(65536)):
                seen[number] += data
        except OSError:
            pass


class _Keep(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        if "Content-Length" in self.headers:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        else:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        text = f"{self.headers['Connection']}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *a):
        pass


class _Mute(scene.socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(65536):
            pass


class _Half(scene.socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(65536)
        self.request.sendall(b"\x16\3\3\0")


class _Retry(scene.socketserver.BaseRequestHandler):
    """Asks for a second ClientHello, as it is written in RFC 8446, and keeps what it got."""

    def handle(self):
        number = len(seen)
        seen.append(self.request.recv(65536))
        random = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
        hello = b"\3\3" + random + b"\0\x13\1\0" + b"\0\x06\0\x2b\0\2\3\4"
        message = b"\2" + len(hello).to_bytes(3, "big") + hello
        try:
            self.request.sendall(b"\x16\3\3" + len(message).to_bytes(2, "big") + message)
            while (data := self.request.recv(65536)):
                seen[number] += data
                self.request.sendall(b"got it")
        except OSError:
            pass


class _Tls(scene._Page):
    def setup(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TOP + "/cert", TOP + "/key")
        if self.server.server_address[1] == 8444:  # clients begin with another curve: it asks for a second ClientHello
            context.set_ecdh_curve("secp384r1")
        self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()


def needs_tls():
    if not os.path.exists(TOP + "/cert"):
        raise Skip("needs openssl")


def serve():
    if shutil.which("openssl"):
        make_certificate()
    for kind, a in ((scene._Tcp, scene.HOST4), (scene._Tcp6, scene.HOST6)):
        scene.serve(kind, a, 8443, _Tls)
        scene.serve(kind, a, 8444, _Tls)
        scene.serve(kind, a, 8088, _Retry)
        scene.serve(kind, a, 8089, _Half)
        scene.serve(kind, a, 8093, _Mute)
        scene.serve(kind, a, 8085, _Record)
        scene.serve(kind, a, 8086, _Keep)
    scene.serve(scene._Tcp, scene.OTHER4, 3128, _Proxy)
    scene.serve(scene._Tcp, "127.0.0.1", 3128, _Proxy)
    scene.NAMES["proxy.example"] = [scene.OTHER4]


def make_certificate():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=allowed.example",
                    "-keyout", TOP + "/key", "-out", TOP + "/cert"], check=True, capture_output=True)


SEND = """
def send(host, port, text):
    s = socket.create_connection((host, port), timeout=10)
    s.sendall(text)
    s.shutdown(socket.SHUT_WR)
    data = b''
    while (more := s.recv(65536)):
        data += more
    return data
import ssl
def tls(host, port, name):
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    s = c.wrap_socket(socket.create_connection((host, port), timeout=10), server_hostname=name)
    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
    return s.recv(65536)
"""


@test("strict: TLS and plain HTTP by an allowed name, both families; the log has the name")
def _():
    needs_tls()
    log = TOP + "/log-strict"
    for flag, a in (("-4", scene.HOST4), ("-6", scene.HOST6)):
        r = hutch(STRICT + ["--net-log", log], f"curl -sS {flag} http://allowed.example/ && curl -sSk {flag} https://allowed.example:8443/")
        expect(r["stdout"], f"page of {a}\npage of {a}\n", r["stderr"])
        expect(r["denials"], [])
    opened = [json.loads(l) for l in open(log)]
    assert all(l["name"] == "allowed.example" and l["rule"] == "allowed.example" for l in opened if l["decision"] in ("opened", "closed")), opened
    assert any(l["decision"] == "closed" and l["received"] > 0 and l["sent"] > 0 for l in opened), opened


@test("strict: one request a connection, a body of 8 MiB, a client that keeps connections")
def _():
    through(STRICT, """
import http.client
c = http.client.HTTPConnection('allowed.example', 8086, timeout=20)
body = os.urandom(8 << 20)
c.request('POST', '/', body)
print(c.getresponse().read() == body)
c.close()
for i in range(2):
    c = http.client.HTTPConnection('allowed.example', 8086, timeout=20)
    c.request('GET', '/', headers={'Connection': 'keep-alive'})
    print(c.getresponse().read())
    c.close()""", "True\nb'close\\n'\nb'close\\n'")


REFUSED = {
    "another name in the Host header": (b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", "not in the allowlist"),
    "another allowed name, which leads elsewhere": (b"GET / HTTP/1.1\r\nHost: hosts.example\r\n\r\n", "does not lead to this address"),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: other.example\r\n\r\n", "several hosts"),
    "a folded header": (b"GET / HTTP/1.1\r\nX: y\r\n Host: other.example\r\nHost: allowed.example\r\n\r\n", "malformed"),
    "a bare line end": (b"GET / HTTP/1.1\r\nX: y\nHost: other.example\r\nHost: allowed.example\r\n\r\n", "malformed"),
    "a target with a host": (b"GET http://other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n", "neither TLS nor"),
    "CONNECT": (b"CONNECT other.example:443 HTTP/1.1\r\nHost: allowed.example\r\n\r\n", "neither TLS nor"),
    "a body of unknown length": (b"POST / HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "unknown length"),
    "a length and chunks": (b"POST / HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "ambiguous length"),
    "an extension of a chunk": (b"POST / HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n0\r\n\r\n", "chunks are not valid"),
    "two lengths": (b"POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 0\r\nContent-Length: 9\r\n\r\n", "ambiguous length"),
    "another port in the Host header": (b"GET / HTTP/1.1\r\nHost: allowed.example:80\r\n\r\n", "another port"),
    "an address in the Host header": (b"GET / HTTP/1.1\r\nHost: 203.0.113.8\r\n\r\n", "another address"),
    "no host": (b"GET / HTTP/1.0\r\n\r\n", "without a host"),
    "HTTP/2 in the clear": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "neither TLS nor"),
    "SSH": (b"SSH-2.0-x\r\n\r\n", "neither TLS nor"),
    "no protocol at all": (b"\r\n\r\n\x00\x01\x02", "neither TLS nor"),
}
for title, (text, rule) in REFUSED.items():
    @test("attack on strict: " + title)
    def _(text=text, rule=rule):
        program = SEND + f"print(outcome(send, 'allowed.example', 8085, {text!r}))"
        seen.clear()
        r = python(STRICT + ["--allow-host", "hosts.example"], program)
        assert r["stdout"].strip() in ("ECONNRESET", "EPIPE", "ECONNREFUSED", "ENOTCONN"), r
        expect(seen, [], "the server")
        assert [d for d in r["denials"] if rule in d["rule"] and d["port"] == 8085], r["denials"]
        r = python(ALLOW, program)
        assert r["stdout"].strip() == "through" and seen and seen[0].startswith(text[:12]), ("control", r, seen)


@test("attack on strict: a second request on the connection, in the same packet and later")
def _():
    first, second = b"GET /1 HTTP/1.1\r\nHost: allowed.example\r\n\r\n", b"GET /2 HTTP/1.1\r\nHost: other.example\r\n\r\n"
    together = SEND + f"print(send('allowed.example', 8085, {first + second!r})[-3:])"
    later = f"""
s = socket.create_connection(('allowed.example', 8085), timeout=10)
s.sendall({first!r})
print(s.recv(100)[-3:])
def more():
    for i in range(50):
        s.sendall({second!r}); time.sleep(0.05)
import time
print(outcome(more) != 'through' or s.recv(10) == b'')"""
    for program, want in ((together, "b'yes'"), (later, "b'yes'\nTrue")):
        seen.clear()
        r = python(STRICT, program)
        expect(r["stdout"].strip(), want, r["stderr"])
        assert [d for d in r["denials"] if "a second request" in d["rule"]], r["denials"]
        assert b"/1" in b"".join(seen) and b"/2" not in b"".join(seen), seen
    seen.clear()
    python(ALLOW, together)
    assert b"/2" in b"".join(seen), "control"


@test("strict: bodies in chunks, of every size and in every part, unchanged")
def _():
    through(STRICT, """
import http.client, time
def post(parts):
    c = http.client.HTTPConnection('allowed.example', 8086, timeout=20)
    c.request('POST', '/', iter(parts), {'Transfer-Encoding': 'chunked'}, encode_chunked=True)
    same = c.getresponse().read() == b''.join(parts)
    c.close()
    return same
print(post([b'x']), post([b'y' * n for n in (1, 15, 16, 4000, 4096, 5000, 70000, 3 << 20, 2)]), post([b'0\\r\\n\\r\\n'] * 300))
s = socket.create_connection(('allowed.example', 8086), timeout=10)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for c in b'POST / HTTP/1.1\\r\\nHost: allowed.example:8086\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n1a\\r\\nabcdefghijklmnopqrstuvwxyz\\r\\n0\\r\\n\\r\\n':
    s.sendall(bytes([c])); time.sleep(0.002)
data = b''
while more := s.recv(1000):
    data += more
print(data[-26:])""", "True True True\nb'abcdefghijklmnopqrstuvwxyz'")


@test("attack on strict: bytes between and after chunks, and a second request after them")
def _():
    head = b"POST /1 HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    second = b"GET /2 HTTP/1.1\r\nHost: other.example\r\n\r\n"
    rows = [(["5\r\nhello\r\n0\r\n\r\n", second.decode()], "a second request"),
            (["5\r\nhello\r\n0\r\n\r\n" + second.decode()], "a second request"),
            (["5\r\nhello", second.decode()], "chunks are not valid"),
            (["2", second.decode()], "chunks are not valid"),  # the first digits of a size are no size
            (["5\r\nhello\r\n0\r\n", second.decode()], "chunks are not valid"),
            (["5\r\nhello\r\n0\r\nX: y\r\n\r\n", second.decode()], "chunks are not valid")]
    program = f"""
import sys, time
s = socket.create_connection(('allowed.example', 8085), timeout=10)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
try:
    for part in {[head.decode()]!r} + eval(sys.argv[1]):
        s.sendall(part.encode()); time.sleep(0.1)
    s.shutdown(socket.SHUT_WR)
    while s.recv(100):
        pass
except OSError:
    pass"""
    for parts, rule in rows:
        seen.clear()
        r = hutch(STRICT, ["python3", "-c", PRELUDE + program, repr(parts)])
        assert [d for d in r["denials"] if rule in d["rule"]], (parts, r["denials"], r["stderr"])
        assert b"/2" not in b"".join(seen) and b"GE" not in b"".join(seen), (parts, seen)
    seen.clear()
    hutch(ALLOW, ["python3", "-c", PRELUDE + program, repr(rows[1][0])])
    assert b"/2" in b"".join(seen), ("control", seen)


@test("attack on strict: TLS with another name, without one, and with one that leads elsewhere")
def _():
    needs_tls()
    program = SEND + """
for name in 'other.example', None, 'hosts.example':
    try:
        tls('allowed.example', 8443, name); print('through')
    except OSError as e:
        print('refused')
print(tls('allowed.example', 8443, 'allowed.example')[:12])"""
    r = python(STRICT + ["--allow-host", "hosts.example"], program)
    expect(r["stdout"].split("\n")[:4], ["refused"] * 3 + ["b'HTTP/1.1 200'"], r["stderr"])
    by_rule = {d["rule"]: d for d in r["denials"]}
    expect(by_rule["the name is not in the allowlist"]["fix"], "--allow-host other.example:8443")
    assert {"TLS without a name (SNI)", "the name does not lead to this address"} <= set(by_rule), by_rule
    expect(python(ALLOW, program)["stdout"].split("\n")[:3], ["through"] * 3, "control")


@test("strict: a server that asks for a second ClientHello")
def _():
    needs_tls()
    program = SEND + "print(tls('allowed.example', 8444, 'allowed.example')[:12])"
    for options in (STRICT, ALLOW):
        through(options, program, "b'HTTP/1.1 200'")


@test("strict: servers that end in the middle of their answer, or are silent; clients that leave")
def _():
    log = TOP + "/log-answer"
    r = python(STRICT + ["--net-log", log], SEND + """
import time
began = time.time()
print(outcome(tls, 'allowed.example', 8089, 'allowed.example') != 'through', time.time() - began < 8)
def leave():
    s = socket.create_connection(('allowed.example', 8093)); s.setblocking(False)
    try:
        ssl.create_default_context().wrap_socket(s, server_hostname='allowed.example', do_handshake_on_connect=False).do_handshake()
    except ssl.SSLWantReadError:
        pass
for i in range(5):
    leave()
time.sleep(0.5)""")
    expect(r["stdout"].strip(), "True True", r["stderr"])
    closed = [(l["port"], l["sent"] > 0) for l in map(json.loads, open(log)) if l["decision"] == "closed"]
    expect(sorted(closed), [(8089, True)] + [(8093, True)] * 5)


@test("attack on strict: another name in a second ClientHello, sent after the server asked for it, or before")
def _():
    program = """
import ssl
def hello(name):
    out = ssl.MemoryBIO()
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    try:
        c.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
for second, early in ('allowed.example', False), ('other.example', False), ('other.example', True):
    s = socket.create_connection(('allowed.example', 8088), timeout=10)
    last = b'\\x14\\3\\3\\0\\1\\1' + hello(second)
    s.sendall(hello('allowed.example') + (last if early else b''))
    try:
        s.recv(1000)
        if not early:
            s.sendall(last)
        print(s.recv(100))
    except OSError:
        print('refused')"""
    seen.clear()
    r = python(STRICT, program)
    expect(r["stdout"].split("\n")[:3], ["b'got it'", "refused", "refused"], r["stderr"])
    assert len(seen) == 3 and not any(b"other.example" in s for s in seen), seen
    expect([(d["name"], d["rule"], d["fix"]) for d in r["denials"]], [("other.example", "another name in a second ClientHello", "--allow-host other.example:8088")])
    seen.clear()
    python(ALLOW, program)
    assert sum(b"other.example" in s for s in seen) == 2, ("control", seen)


@test("attack on strict: UDP to an allowed host; the resolver goes on")
def _():
    program = "print(outcome(udp, 'allowed.example', 4433), outcome(udp, '203.0.113.7', 4433))"
    r = python(STRICT, program)
    assert set(r["stdout"].split()) <= {"EHOSTUNREACH", "EACCES"}, r
    assert any(d["rule"] == "network.strict: TCP alone" and d["fix"] is None for d in r["denials"]), r["denials"]
    expect(python(ALLOW, program)["stdout"].strip(), "through through", "control")


@test("strict: an address that is allowed by itself, by plain HTTP alone; ports of the host")
def _():
    needs_tls()
    rules = ["--net-strict", "--allow-host", scene.HOST4, "--allow-host-port", "5432"]
    r = python(rules, SEND + f"""
print(send('{scene.HOST4}', 8085, b'GET / HTTP/1.1\\r\\nHost: {scene.HOST4}:8085\\r\\n\\r\\n')[-3:], outcome(tls, '{scene.HOST4}', 8443, None),
      outcome(tcp, '{scene.HOST4}', 80), outcome(tcp, '127.0.0.1', 5432))""")
    got = r["stdout"].split()
    assert got[0] == "b'yes'" and got[1] != "through" and got[2] != "through" and got[3] == "through", (got, r["stderr"])


@test("strict: slow clients, and thousands of them that send nothing")
def _():
    through(STRICT, """
import resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
silent = [socket.create_connection(('203.0.113.7' if i else 'allowed.example', 8083)) for i in range(2000)]
s = socket.create_connection(('allowed.example', 80), timeout=20)
for c in b'GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n':
    s.sendall(bytes([c])); time.sleep(0.001)
print(s.recv(100)[:15])""", "b'HTTP/1.1 200 OK'")


@test("attack on strict: thousands of connections with long beginnings: the relay's memory is bounded, and others work afterwards")
def _():
    p = start(STRICT, PRELUDE + SEND + r"""
import resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
socket.getaddrinfo('allowed.example', 80)
held = []
for i in range(4000):
    s = socket.socket(); s.setblocking(False); s.connect_ex(('203.0.113.7', 8083)); held.append(s)
sent = 0
for s in held:
    try:
        sent += s.send(b'GET /' + b'a' * 15000)
    except OSError:
        pass
print('held', sent, flush=True)
while not os.path.exists('go'):
    time.sleep(0.02)
for s in held:
    s.close()
for i in range(100):
    try:
        print(send('allowed.example', 8085, b'GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n')[-3:], flush=True)
        break
    except OSError:
        time.sleep(0.1)
""")
    said, sizes = [], []
    for line in p.stdout:
        e = json.loads(line)
        if e["type"] == "output":
            said.append(e["data"].strip())
        if e["type"] == "output" and said[-1].startswith("held"):
            for i in range(10):
                with open(f"/proc/{relay_of(p)}/status") as f:
                    sizes.append(int(f.read().split("VmRSS:")[1].split()[0]))
                time.sleep(0.05)
            open(WS + "/go", "w").close()
    assert int(said[0].split()[1]) > 40_000_000, (said, "control: what was sent is more than it may hold")
    os.unlink(WS + "/go")
    assert max(sizes) < 60_000, sizes
    expect(said[1:], ["b'yes'"])


@test("strict: the key of policy files, what explain prints, and --net open beside it")
def _():
    with open(TOP + "/strict.yaml", "w") as f:
        f.write("version: 1\nnetwork: {policy: allowlist, allow: [allowed.example], strict: true}\n")
    r = python(["--config", TOP + "/strict.yaml"], SEND + "print(outcome(send, 'allowed.example', 8085, b'hello\\n'))")
    assert r["stdout"].strip() != "through", r
    out = subprocess.run([HUTCH, "explain", *STRICT, "true"], cwd=WS, env={"PATH": os.environ["PATH"], "HOME": HOME}, capture_output=True, text=True).stdout
    assert "allowed hosts, which TLS or plain HTTP must name" in out and "network.strict true" in out, out
    r = hutch(["--net", "open", "--net-strict"], "true")
    assert r["exit_code"] == 125 and "network.strict" in r["error"]["message"], r


# ---- the upstream proxy ----

asked_proxy = []  # target and credentials of each request
SECRET = "s3cr@t:Zw\u00f6lf"  # written with escapes in the address


class _Proxy(scene.socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode()
        auth = None
        while (header := self.rfile.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"proxy-authorization: basic "):
                auth = base64.b64decode(header.split()[2]).decode()
        target = line.split()[1]
        asked_proxy.append((line.split()[0], target, auth))
        host, port = target.rsplit(":", 1)
        for name, code in (("forbidden", 403), ("password", 407), ("gone", 502), ("slow", 504)):
            if host == name + ".example":
                self.wfile.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % code)
                return
        if host == "garbage.example":
            self.wfile.write(b"220 welcome to something else\r\n\r\n")
            return
        try:
            up = socket.create_connection((scene.NAMES.get(host, [host.strip("[]")])[0], int(port)), timeout=10)
        except OSError:
            self.wfile.write(b"HTTP/1.1 502 No\r\n\r\n")
            return
        if port == "8087":  # the host speaks first, and its words come with the answer
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nfirst words\n")
        else:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")

        def back():
            try:
                while (data := up.recv(65536)):
                    self.request.sendall(data)
                self.request.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        threading.Thread(target=back, daemon=True).start()
        try:
            while (data := self.request.recv(65536)):
                up.sendall(data)
            up.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        threading.Event().wait(0.2)


PROXY = ["--upstream-proxy", f"http://{scene.OTHER4}:3128"]


@test("upstream proxy: names are resolved by it alone, both families, and nothing goes past it")
def _():
    asked_proxy.clear()
    scene.asked.clear()
    r = hutch(PROXY + ALLOW + ["--allow-host", scene.HOST6], f"for i in -4 -6; do curl -sS $i http://allowed.example/; done; curl -sS http://[{scene.HOST6}]/; curl -sS http://other.example/; echo $?")
    expect(r["stdout"], f"page of {scene.HOST4}\npage of {scene.HOST4}\npage of {scene.HOST6}\n6\n", r["stderr"])
    expect(asked_proxy, [("CONNECT", "allowed.example:80", None)] * 2 + [("CONNECT", f"[{scene.HOST6}]:80", None)])
    expect(scene.asked, [])
    expect([d["name"] for d in r["denials"]], ["other.example"])


@test("upstream proxy: found by its name, a stream of 16 MiB, half close, a host that speaks first")
def _():
    scene.serve(scene._Tcp, scene.HOST4, 8087, _Quiet)
    through(["--upstream-proxy", "http://proxy.example:3128/", *ALLOW], """
import hashlib, threading
s = socket.create_connection(('allowed.example', 8082))
block = os.urandom(1 << 20)
sent, got = hashlib.sha256(), hashlib.sha256()
def send():
    for i in range(16):
        s.sendall(block); sent.update(block)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
while (more := s.recv(1 << 20)):
    got.update(more)
t = socket.create_connection(('allowed.example', 8087), timeout=10)
print(sent.digest() == got.digest(), t.recv(100))""", "True b'first words\\n'")


class _Quiet(scene.socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(1)


@test("upstream proxy: what it refuses is a denial, what it cannot reach a notice")
def _():
    names = ["forbidden", "password", "gone", "slow", "garbage"]
    r = python(PROXY + [o for n in names for o in ("--allow-host", n + ".example")], f"""
for n in {names!r}:
    print(outcome(tcp, n + '.example', 80))""")
    assert "through" not in r["stdout"] and len(r["stdout"].split()) == 5, r
    expect({d["name"]: d["rule"] for d in r["denials"]}, {"forbidden.example": "the upstream proxy refused it (403)",
                                                          "password.example": "the upstream proxy asks for other credentials (407)"})
    notes = {n["subject"]: n["text"] for n in r["notices"] if n["code"] == "host_unreached"}
    assert "502" in notes["gone.example:80"] and "Connection timed out" in notes["slow.example:80"] and "as one" in notes["garbage.example:80"], notes
    r = python(["--upstream-proxy", f"http://{scene.OTHER4}:3129", *ALLOW], "print(outcome(tcp, 'allowed.example', 80))")
    notes = [n["text"] for n in r["notices"] if n["code"] == "host_unreached"]
    assert notes and "the upstream proxy did not accept (Connection refused)" in notes[0], notes
    r = hutch(["--upstream-proxy", "http://nowhere.example:3128", *ALLOW], "true")
    assert r["exit_code"] == 125 and "nowhere.example" in r["error"]["message"], r


@test("upstream proxy: UDP is refused; ports of the host and private addresses are reached directly")
def _():
    asked_proxy.clear()
    r = python(PROXY + ALLOW + ["--allow-host", scene.PRIVATE, "--allow-host-port", "5432"],
               f"print(outcome(udp, 'allowed.example', 4433), outcome(tcp, '{scene.PRIVATE}', 80), outcome(tcp, '127.0.0.1', 5432))")
    got = r["stdout"].split()
    assert got[0] in ("EHOSTUNREACH", "EACCES") and got[1:] == ["through", "through"], r
    expect(asked_proxy, [])


@test("attack: addresses that stand for names, without their names")
def _():
    asked_proxy.clear()
    r = python(PROXY + ALLOW, "print({outcome(tcp, a, 80) for a in ('198.19.0.1', '198.19.0.2', '198.18.0.2', '2001:2:0:1::1')})")
    expect(r["stdout"].strip(), "{'ECONNREFUSED'}")
    expect(asked_proxy, [])
    r = python(PROXY + ALLOW, "a = socket.gethostbyname('allowed.example'); print(a[:4], outcome(tcp, a, 80))")
    expect(r["stdout"].strip(), "198. through", ("control", r["stderr"]))
    assert asked_proxy, "control"


@test("upstream proxy: with strict, a name that is not asked for is not asked of the proxy")
def _():
    needs_tls()
    asked_proxy.clear()
    r = python(PROXY + STRICT, SEND + """
print(outcome(tcp, 'allowed.example', 80, b'GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n'),
      outcome(tcp, 'allowed.example', 80, b'GET / HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n') != 'through', tls('allowed.example', 8443, 'allowed.example')[:12])""")
    expect(r["stdout"].strip(), "through True b'HTTP/1.1 200'", r["stderr"])
    expect([t[1] for t in asked_proxy], ["allowed.example:80", "allowed.example:8443"])


@test("the credentials of the proxy: sent to it, and seen by nothing else")
def _():
    from urllib.parse import quote
    address = f"http://agent:{quote(SECRET, safe='')}@{scene.OTHER4}:3128"
    with open(TOP + "/proxy.yaml", "w") as f:
        f.write(f"version: 1\nnetwork: {{policy: allowlist, allow: [allowed.example], upstream_proxy: \"{address}\"}}\n")
    asked_proxy.clear()
    look = """
import glob
print(tcp('allowed.example', 80)[:15])
secrets = [s[::-1].encode() for s in %r]
def has(data):
    return any(s in data for s in secrets)
found = []
for path in ['/proc/%%s/%%s' %% (p, f) for p in os.listdir('/proc') if p.isdigit() for f in ('environ', 'cmdline')]:
    try:
        if has(open(path, 'rb').read()):
            found.append(path)
    except OSError:
        pass
for p in [p for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()]:
    try:
        mem = open('/proc/%%s/mem' %% p, 'rb')
        for line in open('/proc/%%s/maps' %% p):
            a, b = (int(x, 16) for x in line.split()[0].split('-'))
            mem.seek(a)
            if has(mem.read(b - a)):
                found.append(p)
    except OSError:
        pass
print(len(found))""" % ([s[::-1] for s in (SECRET, base64.b64encode(("agent:" + SECRET).encode()).decode(), quote(SECRET, safe=""))],)
    r = hutch(["--config", TOP + "/proxy.yaml"], ["python3", "-c", PRELUDE + look])
    expect(r["stdout"].strip(), "b'HTTP/1.1 200 OK'\n0", r["stderr"])
    expect(asked_proxy, [("CONNECT", "allowed.example:80", "agent:" + SECRET)])
    r = hutch([*ALLOW, "--env", "X=" + SECRET], "sleep 30 & exec python3 -c " + shlex.quote(PRELUDE + look))
    assert int(r["stdout"].split("\n")[1]) >= 2, ("control", r)
    env = {"PATH": os.environ["PATH"], "HOME": HOME}
    for json_too in ([], ["--json"]):
        out = subprocess.run([HUTCH, "explain", *json_too, "--config", TOP + "/proxy.yaml", "true"], cwd=WS, env=env, capture_output=True, text=True)
        assert f"http://{scene.OTHER4}:3128" in out.stdout, out
        assert "agent" not in out.stdout + out.stderr and "s3cr" not in out.stdout + out.stderr, out.stdout
    out = subprocess.run([HUTCH, "run", "--upstream-proxy", address, *ALLOW, "true"], cwd=WS, env=env, capture_output=True, text=True)
    assert out.returncode == 125 and "command line" in out.stderr and "s3cr" not in out.stderr, out
    with open(TOP + "/bad.yaml", "w") as f:
        f.write(f"version: 1\nnetwork: {{upstream_proxy: \"{address}/path\"}}\n")
    out = subprocess.run([HUTCH, "run", "--config", TOP + "/bad.yaml", "true"], cwd=WS, env=env, capture_output=True, text=True)
    assert out.returncode == 125 and "upstream proxy" in out.stderr and "s3cr" not in out.stderr, out
