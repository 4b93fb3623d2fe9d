"""Credentials that stay outside: a stub of an API over TLS at a test host, and boxes that use a key for it which they cannot
see. Part of ./run."""
import hashlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time

import scene
from box import *  # noqa: F403

KEY = "sk-test-5e1f0a7c94d24b6e"
HOST = "api.example"
INSIDE = HOST + ".hutch.internal"
lock = threading.Lock()
seen = []  # (address, head as text, length of the body)


# ---- the stub ----

def make_certificates(top):
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=top)
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl("req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test CA")
    openssl("req", *ec[:-2], "-keyout", "host.key", "-out", "host.csr", "-subj", "/CN=stub")
    with open(top + "/ext", "w") as f:
        f.write(f"subjectAltName=DNS:{HOST},DNS:thief.example,DNS:lan.example,DNS:own.example\n")
    openssl("x509", "-req", "-in", "host.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "ext", "-out", "host.pem")


def read_head(f):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = f.readline()
        if not line:
            return None
        head += line
    return head.decode("latin-1")


def field(head, name):
    found = [l.split(":", 1)[1].strip() for l in head.split("\r\n") if l.lower().startswith(name.lower() + ":")]
    return found[0] if found else None


def read_body(f, head):
    if field(head, "transfer-encoding") == "chunked":
        body = b""
        while True:
            size = int(f.readline().strip(), 16)
            body += f.read(size)
            f.readline()
            if size == 0:
                return body
    return f.read(int(field(head, "content-length") or 0))


class Stub(scene.socketserver.BaseRequestHandler):
    def handle(self):
        try:
            s = self.server.tls.wrap_socket(self.request, server_side=True)
        except (OSError, ssl.SSLError):
            return
        s.settimeout(60)
        f = s.makefile("rb")
        try:
            while (head := read_head(f)):
                method, path = head.split(" ")[:2]
                if field(head, "expect") == "100-continue":
                    s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                if path == "/early":
                    s.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
                    break
                body = read_body(f, head)
                with lock:
                    seen.append((self.server.server_address[0], head, len(body)))
                if not self.answer(s, method, path, body):
                    break
        except OSError:
            pass
        try:
            s.unwrap()
        except (OSError, ValueError):
            pass

    def answer(self, s, method, path, body):
        def plain(text, status="200 OK", more=""):
            text = text if isinstance(text, bytes) else text.encode()
            s.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nX-Stub: yes\r\n{more}\r\n".encode() +
                      (b"" if method == "HEAD" else text))
            return True
        if path == "/redirect":
            return plain("", "302 Found", "Location: https://thief.example/stolen\r\n")
        if path == "/echo":
            return plain(body)
        if path == "/sum":
            return plain(hashlib.sha256(body).hexdigest())
        if path == "/empty":
            s.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            return True
        if path == "/close":
            s.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
            return False
        if path == "/cut":
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            return False
        if path == "/gone":
            return False
        if path == "/stream":
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata 1\r\n")
            wait_for(self.server.workspace + "/heard")
            s.sendall(b"6\r\ndata 2\r\n0\r\n\r\n")
            return True
        return plain("page of " + path)


def wait_for(path):
    until = time.time() + 60
    while not os.path.exists(path) and time.time() < until:
        time.sleep(0.01)


def serve(top, workspace):
    make_certificates(top)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(top + "/host.pem", TOP + "/host.key")
    scene.NAMES[HOST] = [scene.API4]
    scene.NAMES["thief.example"] = [scene.THIEF4]
    scene.NAMES["wrong.example"] = [scene.API4]
    scene.NAMES["refuses.example"] = [scene.RESOLVER]
    for address, port in ((scene.API4, 443), (scene.THIEF4, 443), (scene.PRIVATE, 443), (scene.API4, 8443)):
        server = scene.serve(scene._Tcp, address, port, Stub)
        server.tls, server.workspace = tls, workspace


# ---- what runs in the box ----

CLIENT = f"""
import http.client, json, os, socket, sys, threading, time
INSIDE = {INSIDE!r}
def get(path, method='GET', body=None, headers={{}}, c=None, **more):
    c = c or http.client.HTTPConnection(INSIDE, 80, timeout=60)
    c.request(method, path, body, headers, **more)
    r = c.getresponse()
    return r.status, r.read()
def raw(text, host=INSIDE):
    s = socket.create_connection((host, 80), timeout=60)
    s.sendall(text.encode('latin-1') if isinstance(text, str) else text)
    data = b''
    try:
        while True:
            more = s.recv(65536)
            if not more:
                break
            data += more
    except ConnectionResetError:
        pass
    return data
"""

# The key comes backwards, and is looked for backwards, so that the scanner does not hold what it looks for.
SCAN = """
import os, re, sys
needle = sys.argv[1].encode()
found = []
def look(what, data):
    if needle in data[::-1]:
        found.append(what)
for k, v in os.environ.items():
    look('env', (k + '=' + v).encode())
n = 0
try:
    pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]
except PermissionError: # the box shares the host's
    pids = ['self', *range(max(os.getpid() - 3000, 1), os.getpid() + 100)]
for pid in pids:
    for name in 'environ', 'cmdline', 'auxv', 'stack':
        try:
            look(name, open(f'/proc/{pid}/{name}', 'rb').read())
        except OSError:
            pass
    try:
        maps, mem = open(f'/proc/{pid}/maps').read(), open(f'/proc/{pid}/mem', 'rb', 0)
    except OSError:
        continue
    for line in maps.splitlines():
        m = re.match(r'([0-9a-f]+)-([0-9a-f]+) r', line)
        if not m or '[v' in line:
            continue
        try:
            mem.seek(int(m[1], 16))
            look('mem', mem.read(int(m[2], 16) - int(m[1], 16)))
            n += 1
        except (OSError, ValueError, OverflowError):
            pass
for top in sys.argv[2:]:
    for d, dirs, files in os.walk(top):
        for name in files:
            p = os.path.join(d, name)
            try:
                if not os.path.islink(p) and os.path.isfile(p) and os.path.getsize(p) < 8 << 20:
                    look('file', open(p, 'rb').read())
            except OSError:
                pass
print(n > 20, sorted(set(found)))
"""


CA = TOP + "/ca.pem"
served = []


def stub():
    if not shutil.which("openssl"):
        raise Skip("needs openssl")
    if not served:
        serve(TOP, WS)
        served.append(True)
    with lock:
        seen.clear()


def call(words, env=None):
    env = {"PATH": os.environ["PATH"], "HOME": HOME, "LANG": "C.UTF-8", "SSL_CERT_FILE": CA, "KEY": KEY,
           "XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR", ""), **(env or {})}
    return subprocess.run([HUTCH, *words], cwd=WS, env=env, capture_output=True, text=True, timeout=120)


def box(options, argv, env=None):
    stub()
    r = call(["--json", "--timeout", "100s", *BACKEND, *options, "--", *argv], env)
    try:
        return json.loads(r.stdout)
    except ValueError:
        raise AssertionError(f"no result: {r.stdout!r} {r.stderr!r}")


def client(text, options=(), credential=HOST + "=KEY", env=None):
    r = box(["--credential", credential, *options], ["python3", "-c", CLIENT + text], env)
    assert r["exit_code"] == 0 and not r["error"], (r["error"], r["stderr"])
    return r


def only_api():
    with lock:
        assert seen and all(a == scene.API4 for a, _, _ in seen), seen
        return [h for _, h, _ in seen]


@test("a credential: the stub sees the key, which the box does not have")
def _():
    r = client("print(get('/v1/x')); print(os.environ.get('KEY'))", ["--env", "KEY"])
    expect(r["stdout"], "(200, b'page of /v1/x')\nNone\n")
    head, = only_api()
    expect(field(head, "authorization"), "Bearer " + KEY)
    expect(field(head, "host"), HOST)
    expect(r["enforced"]["network"], "enforced")


@test("a credential: in no variable, file, argument or memory of the box")
def _():
    places = ["/etc", "/home", "/root", "/run", "/tmp", "/var", "/dev/shm", "/workspace", WS, HOME]
    scan = ["python3", "-c", SCAN, KEY[::-1], *places]
    r = box(["--credential", HOST + "=KEY", "--env", "KEY"], scan)
    if BACKEND[1:] == ["systemd-run"]:  # Landlock lets a box read no process, not even its own
        expect(r["stdout"], "False []\n", r["stderr"])
        expect(box(["--env", "KEY"], scan)["stdout"], "False ['env']\n")
        return
    expect(r["stdout"], "True []\n", r["stderr"])
    control = box(["--env", "KEY"], scan)
    expect(control["stdout"], "True ['env', 'environ', 'mem']\n", control["stderr"])
    r = box(["--credential", HOST + "=KEY", "--as", "root"], scan)
    expect(r["stdout"], "True []\n", r["stderr"])


@test("a credential: other headers, other ports, and what the box sends instead")
def _():
    client("get('/a', headers={'X-Api-Key': 'mine', 'x_api_key': 'mine', 'Authorization': 'Bearer mine', 'X-Other': 'kept'})",
           credential=HOST + "=KEY:x-api-key")
    head, = only_api()
    expect([l for l in head.split("\r\n") if "api" in l.lower() and "host" not in l.lower()], ["x-api-key: " + KEY])
    assert "mine" not in head and field(head, "x-other") == "kept", head
    client("get('/a', headers={'Connection': 'close, authorization', 'Authorization': 'Bearer mine'})")
    head, = only_api()
    expect(field(head, "authorization"), "Bearer " + KEY)
    assert "mine" not in head, head
    client("get('/a')", credential=HOST + ":8443=KEY", env={"KEY": "Basic " + KEY})
    head, = only_api()
    expect((field(head, "authorization"), field(head, "host")), ("Basic " + KEY, HOST + ":8443"))


@test("a credential: answers of every form")
def _():
    r = client("""
c = http.client.HTTPConnection(INSIDE, 80, timeout=60)
print(get('/keep', c=c), get('/empty', c=c), get('/head', 'HEAD', c=c), get('/kept', c=c), c.sock is not None)
print(get('/close'))
print(get('/early', 'POST', b'x' * 5000000)[0] if 0 else get('/early', 'POST', b'x')[0])
for path in '/cut', '/gone':
    try:
        print(get(path))
    except (http.client.HTTPException, OSError) as e:
        print('cut')
print(raw('GET /old HTTP/1.0\\r\\nHost: ' + INSIDE + '\\r\\n\\r\\n').split(b'\\r\\n\\r\\n')[1])
print(raw('GET /1 HTTP/1.1\\r\\nHost: ' + INSIDE + '\\r\\n\\r\\nGET /2 HTTP/1.1\\r\\nHost: ' + INSIDE + '\\r\\nConnection: close\\r\\n\\r\\n').count(b'page of'))
print(b'X-Stub: yes' in raw('GET /3 HTTP/1.1\\r\\nHost: ' + INSIDE + ':80\\r\\nConnection: close\\r\\n\\r\\n'))
""")
    lines = r["stdout"].splitlines()
    expect(lines[0], "(200, b'page of /keep') (204, b'') (200, b'') (200, b'page of /kept') True")
    expect(lines[1], "(200, b'until the end')")
    expect(lines[2], "413")
    expect(lines[3], "cut")
    assert lines[4] in ("cut", "(502, b'hutch: the host closed the connection without an answer\\n')"), lines
    expect(lines[5:], ["b'page of /old'", "2", "True"])


@test("a credential: curl with a large body that waits for 100-continue")
def _():
    r = box(["--credential", HOST + "=KEY"], ["sh", "-c", f"head -c 3000000 /dev/zero >$TMPDIR/z; curl -sS --data-binary @$TMPDIR/z -H 'Expect: 100-continue' http://{INSIDE}/sum"])
    expect(r["stdout"], hashlib.sha256(bytes(3000000)).hexdigest(), r["stderr"])


@test("a credential: a redirect is the box's to follow, without the key")
def _():
    r = client("""
print(get('/redirect')[0])
import urllib.request
try:
    urllib.request.urlopen('http://' + INSIDE + '/redirect', timeout=60)
except OSError as e:
    print('refused')
""")
    expect(r["stdout"], "302\nrefused\n")
    expect(len(only_api()), 2)
    r = client("""
import ssl
s = ssl._create_unverified_context().wrap_socket(socket.create_connection(('thief.example', 443), timeout=60))
s.sendall(b'GET /stolen HTTP/1.1\\r\\nHost: thief.example\\r\\n\\r\\n')
print(s.recv(100)[:15])
""", ["--allow-host", "thief.example"])
    expect(r["stdout"], "b'HTTP/1.1 200 OK'\n")
    with lock:
        assert len(seen) == 1 and seen[0][0] == scene.THIEF4 and KEY not in seen[0][1], seen


@test("a credential: ambiguous requests are refused, and the key goes nowhere else")
def _():
    good = "Host: " + INSIDE + "\r\n"
    bad = {
        "two lengths": f"POST /x HTTP/1.1\r\n{good}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "length and chunks": f"POST /x HTTP/1.1\r\n{good}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n{good}\r\n",
        "chunks, hidden": f"POST /x HTTP/1.1\r\n{good}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "chunks, twice": f"POST /x HTTP/1.1\r\n{good}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "space before colon": f"POST /x HTTP/1.1\r\n{good}Content-Length : 5\r\n\r\nhello",
        "length with sign": f"POST /x HTTP/1.1\r\n{good}Content-Length: +5\r\n\r\nhello",
        "folded": f"GET /x HTTP/1.1\r\n{good}X-A: b\r\n Host: thief.example\r\n\r\n",
        "bare LF": f"GET /x HTTP/1.1\r\n{good}X-A: b\nHost: thief.example\r\n\r\n",
        "bare CR": f"GET /x HTTP/1.1\r\n{good}X-A: b\rHost: thief.example\r\n\r\n",
        "NUL": f"GET /x HTTP/1.1\r\n{good}X-A: b\0\r\n\r\n",
        "absolute": "GET http://thief.example/x HTTP/1.1\r\nHost: thief.example\r\n\r\n",
        "absolute, right host": f"GET http://thief.example/x HTTP/1.1\r\n{good}\r\n",
        "authority": f"GET @thief.example/x HTTP/1.1\r\n{good}\r\n",
        "other host": "GET /x HTTP/1.1\r\nHost: thief.example\r\n\r\n",
        "two hosts": f"GET /x HTTP/1.1\r\n{good}Host: thief.example\r\n\r\n",
        "no host": "GET /x HTTP/1.1\r\n\r\n",
        "trace": f"TRACE /x HTTP/1.1\r\n{good}\r\n",
        "connect": f"CONNECT thief.example:443 HTTP/1.1\r\n{good}\r\n",
        "two spaces": f"GET  /x HTTP/1.1\r\n{good}\r\n",
        "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "no HTTP": "hello\r\n\r\n",
        "TLS": "\x16\x03\x01\x02\x00\x01\x00",
    }
    r = client("for name, text in json.loads(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()).items():\n"
               "    print(name, raw(text)[:12])\n".replace("sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()", repr(json.dumps(bad))))
    for line in r["stdout"].splitlines():
        assert any(f"b'HTTP/1.1 {code}" in line for code in (400, 421, 501, 505)), line
    expect(len(r["stdout"].splitlines()), len(bad))
    with lock:
        expect(seen, [])
    r = client(f"""
print(raw('POST /a HTTP/1.1\\r\\nHost: {INSIDE}\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5;x=y\\r\\nhello\\r\\n0\\r\\nHost: thief.example\\r\\nAuthorization: mine\\r\\n\\r\\n'
          'GET /b HTTP/1.1\\r\\nHost: {INSIDE}\\r\\nConnection: close\\r\\n\\r\\n').count(b'page of'))
print(raw('POST /a HTTP/1.1\\r\\nHost: {INSIDE}\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n-1\\r\\nhello')[:12])
""")
    expect(r["stdout"], "2\nb'HTTP/1.1 400'\n")
    for head in only_api():
        expect([field(head, "host"), field(head, "authorization")], [HOST, "Bearer " + KEY])
        assert "thief.example" not in head and "mine" not in head, head


@test("a credential: events arrive as they are sent, in both directions")
def _():
    if os.path.exists(WS + "/heard"):
        os.unlink(WS + "/heard")
    r = client("""
c = http.client.HTTPConnection(INSIDE, 80, timeout=60)
c.request('GET', '/stream')
r = c.getresponse()
print(r.getheader('content-type'), r.read1(100))
open('heard', 'w').close()
print(r.read())
def slowly():
    yield b'a' * 10
    time.sleep(0.2)
    yield b'b' * 10
print(get('/echo', 'POST', slowly(), encode_chunked=True, headers={'Transfer-Encoding': 'chunked'}))
""")
    expect(r["stdout"], "text/event-stream b'data 1'\nb'data 2'\n(200, b'aaaaaaaaaabbbbbbbbbb')\n")


@test("a credential: large bodies both ways, and a hundred connections at a time")
def _():
    r = client("""
import hashlib
data = os.urandom(1 << 16) * 128
print(hashlib.sha256(get('/echo', 'POST', data)[1]).digest() == hashlib.sha256(data).digest())
print(get('/echo', 'POST', iter([data[:3000000], data[3000000:]]), encode_chunked=True, headers={'Transfer-Encoding': 'chunked'})[1] == data)
results, barrier = [], threading.Barrier(100)
def one(i):
    c = http.client.HTTPConnection(INSIDE, 80, timeout=90)
    c.connect()
    barrier.wait(90)
    for k in range(3):
        a = get(f'/{i}/{k}', c=c)
        results.append(a == (200, f'page of /{i}/{k}'.encode()) or print(a))
threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(results), all(results))
""")
    expect(r["stdout"], "True\nTrue\n300 True\n")
    with lock:
        assert all(KEY in h for _, h, _ in seen) and len(seen) == 302, len(seen)


@test("a credential: those who send nothing do not keep others out")
def _():
    r = client("""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
for i in range(600):
    s = socket.create_connection((INSIDE, 80), timeout=60)
    s.sendall(b'GET / HTTP/1.1\\r\\nHost' if i % 2 else b'')
    held.append(s)
print(get('/through'))
""")
    expect(r["stdout"], "(200, b'page of /through')\n")


@test("a credential: only to the host that the certificate is for")
def _():
    def fails(credential, text, env=None, options=()):
        host = credential.partition("=")[0]
        r = client(f"print(get('/x', c=http.client.HTTPConnection('{host}.hutch.internal', 80, timeout=60)))", options, credential, env)
        assert r["stdout"].startswith("(502, ") and text in r["stdout"], r["stdout"]
        with lock:
            expect(seen, [])
        return r
    r = fails("wrong.example=KEY", "hostname mismatch")
    expect([n["subject"] for n in r["notices"] if n["code"] == "credential_failed"], ["wrong.example"])
    fails("api.example=KEY", "no TLS with api.example: ", {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt" if os.path.exists("/etc/ssl/certs/ca-certificates.crt") else TOP + "/host.pem"})
    fails("refuses.example=KEY", "cannot connect to refuses.example:443: Connection refused")
    fails("missing.example=KEY", "no address that may be reached")
    r = fails("lan.example=KEY", "no address that may be reached")
    assert any(d["address"] == scene.PRIVATE and d["fix"] == "--allow-host " + scene.PRIVATE for d in r["denials"]), r["denials"]
    fails("own.example=KEY", "no address that may be reached")
    fails("local.example=KEY", "no address that may be reached")
    r = client("print(get('/x', c=http.client.HTTPConnection('lan.example.hutch.internal', 80, timeout=60))[0])",
               ["--allow-host", scene.PRIVATE], "lan.example=KEY")
    expect(r["stdout"], "200\n")


@test("a credential opens nothing else")
def _():
    r = client(f"""
def outcome(host, port):
    try:
        socket.create_connection((host, port), timeout=60).close()
        return 'through'
    except socket.gaierror:
        return 'no such name'
    except OSError as e:
        return type(e).__name__
print([outcome('{HOST}', 443), outcome('thief.example.hutch.internal', 80), outcome(INSIDE, 443), outcome('{scene.API4}', 443)])
""")
    expect(r["stdout"].strip(), "['no such name', 'no such name', 'ConnectionRefusedError', 'ConnectionRefusedError']")
    denials = {d["target"]: d for d in r["denials"]}
    assert "hutch.internal" in denials[HOST]["rule"], denials
    expect(denials["thief.example.hutch.internal"]["fix"], "--credential thief.example=ENV_NAME")
    assert "port 80" in denials[INSIDE + ":443"]["rule"], denials


@test("a credential: the log, a session, and the variables of known programs")
def _():
    log = TOP + "/credential.log"
    client("get('/x')", ["--net-log", log])
    lines = [json.loads(l) for l in open(log)]
    assert [(l["name"], l["port"], l["rule"]) for l in lines if l["decision"] in ("opened", "closed")] == [(HOST, 443, "credential")] * 2, lines
    assert KEY not in open(log).read()
    r = call(["explain", "--credential", "api.anthropic.com=KEY:x-api-key", "--credential", "api.openai.com=OPENAI_API_KEY", "--", "true"], {"OPENAI_API_KEY": KEY})
    assert KEY not in r.stdout and "api.anthropic.com=KEY:x-api-key" in r.stdout, r
    assert "ANTHROPIC_BASE_URL=http://api.anthropic.com.hutch.internal\n" in r.stdout and "OPENAI_API_KEY=placeholder" in r.stdout, r.stdout
    stub()
    r = call(["session", "start", "--credential", HOST + "=KEY", "keeps"])
    expect(r.returncode, 0, r.stderr)
    try:
        r = call(["session", "run", "keeps", "-c", f"curl -sS http://{INSIDE}/s; env | grep -c {KEY[:12]}"])
        expect(r.stdout, "page of /s0\n", r.stderr)
        r = call(["session", "reset", "keeps"])
        expect(r.returncode, 0, r.stderr)
        r = call(["session", "run", "keeps", "-c", f"curl -sS http://{INSIDE}/again"])
        expect(r.stdout, "page of /again", r.stderr)
    finally:
        call(["session", "stop", "keeps"])
    expect(field(only_api()[0], "authorization"), "Bearer " + KEY)


@test("a credential: under --net-strict, and through an upstream proxy")
def _():
    import strict
    r = client("print(get('/x'))", ["--net-strict"])
    expect(r["stdout"], "(200, b'page of /x')\n")
    strict.asked_proxy.clear()
    r = client("print(get('/x'), get('/y'))", ["--upstream-proxy", f"http://{scene.OTHER4}:3128"])
    expect(r["stdout"], "(200, b'page of /x') (200, b'page of /y')\n")
    expect([a[:2] for a in strict.asked_proxy], [("CONNECT", HOST + ":443")] * 2)
    expect(field(only_api()[0], "authorization"), "Bearer " + KEY)
    r = client("print(get('/x', c=http.client.HTTPConnection('nowhere.example.hutch.internal', 80, timeout=60)))",
               ["--upstream-proxy", f"http://{scene.OTHER4}:3128"], "nowhere.example=KEY")
    assert r["stdout"].startswith("(502, b'hutch: cannot connect to nowhere.example:443: the upstream proxy"), r["stdout"]


def helpers(of):
    """The processes hutch-credential below a process."""
    found = []
    for p in [p for p in os.listdir("/proc") if p.isdigit()]:
        try:
            fields = open(f"/proc/{p}/stat").read()
            if "(hutch-credentia" in fields and int(fields.rsplit(")", 1)[1].split()[1]) == of:
                found.append(p)
        except OSError:
            pass
    return found


@test("a credential: the process that has it is confined, and ends with the box")
def _():
    stub()
    env = {"PATH": os.environ["PATH"], "HOME": HOME, "SSL_CERT_FILE": CA, "KEY": KEY}
    p = subprocess.Popen([HUTCH, "--credential", HOST + "=KEY", "--", "cat"], cwd=WS, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdin.write(b"x")
    p.stdin.flush()
    expect(p.stdout.read(1), b"x")
    pid, = helpers(p.pid)
    status = dict(l.split(":\t", 1) for l in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in l)
    expect([status[k].strip() for k in ("CapPrm", "CapEff", "NoNewPrivs", "Seccomp")], ["0" * 16, "0" * 16, "1", "2"])
    if os.geteuid():
        for name in "mem", "environ", "fd":
            try:
                os.listdir(f"/proc/{pid}/fd") if name == "fd" else open(f"/proc/{pid}/{name}", "rb")
                raise AssertionError(f"{name} is readable")
            except PermissionError:
                pass
    else:
        expect(status["Uid"].split()[0], "65534")
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert all(n.startswith(("/dev/null", "socket:", "anon_inode:")) for n in names), names
    p.stdin.close()
    expect(p.wait(60), 0)
    until = time.time() + 30
    while os.path.exists(f"/proc/{pid}") and time.time() < until:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}")


@test("a credential that cannot be used is refused in one line")
def _():
    for options, text in ((["--credential", HOST + "=UNSET"], "the variable UNSET is not set"),
                          (["--credential", HOST + "=NOTHING"], "the variable NOTHING is empty"),
                          (["--credential", HOST + "=LINES"], "cannot be sent in a header"),
                          (["--credential", HOST + "=" + KEY], "is not HOST[:PORT]=ENV_NAME[:HEADER]"),
                          (["--credential", HOST], "no '='"),
                          (["--credential", HOST + "=KEY:Host"], "HEADER"),
                          (["--credential", scene.API4 + "=KEY"], "HOST is not the name of a host"),
                          (["--credential", HOST + "=KEY", "--net", "open"], "contradicts the network policy 'open'"),
                          (["--credential", HOST + "=KEY", "--isolation", "none"], "on 'none'")):
        stub()
        r = call([*options, "true"], {"NOTHING": "", "LINES": "a\nb"})
        assert r.returncode == 125 and text in r.stderr and r.stderr.count("\n") == 1 and KEY not in r.stderr, (options, r)
