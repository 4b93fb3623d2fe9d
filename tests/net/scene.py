"""A network for tests: a namespace that is the host, and one outside of it with test hosts at documentation addresses, a test
resolver, and servers. A pair of virtual interfaces connects them.

enter() moves the calling process to the host; by root without, by anybody else with a user namespace around it."""
import contextlib
import ctypes
import os
import socket
import socketserver
import struct
import subprocess
import tempfile
import threading

CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x00020000
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 0x40000, 0x1000
libc = ctypes.CDLL(None, use_errno=True)

HOST4, OTHER4, RESOLVER = "203.0.113.7", "203.0.113.8", "203.0.113.53"
HOST6, OTHER6 = "2001:db8::7", "2001:db8::8"
API4, THIEF4 = "203.0.113.9", "203.0.113.10"  # of credentials.py
PRIVATE, METADATA = "10.7.7.7", "169.254.169.254"
OWN4, OWN6 = "203.0.113.1", "2001:db8::1"  # the host's
OUTSIDE = [HOST4, OTHER4, API4, THIEF4, RESOLVER, PRIVATE, METADATA, HOST6, OTHER6]
NAMES = {
    "allowed.example": [HOST4, HOST6],
    "four.example": [HOST4],
    "six.example": [HOST6],
    "other.example": [OTHER4, OTHER6],
    "a.wild.example": [HOST4],
    "notallowed.example": [OTHER4],
    "own.example": [OWN4, OWN6],
    "metadata.example": [METADATA],
    "local.example": ["127.0.0.1"],
    "lan.example": [PRIVATE],
    "mapped.example": ["::ffff:127.0.0.1"],
    "nat64.example": ["64:ff9b::7f00:1"],
}
for i in range(60):  # more than a datagram holds
    NAMES.setdefault("many.example", []).append(f"192.0.2.{100 + i}")
files = []  # to be removed at the end
asked = []  # names that reached the test resolver
no_edns = []  # names for which it does as servers did before EDNS0


def _check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def enter():
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNET | CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)
    _check(libc.unshare(flags), "unshare")
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as f:
                f.write(text)
    _check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount")
    for path, text in (("/etc/resolv.conf", f"nameserver {RESOLVER}\n"),
                       ("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{OTHER4} hosts.example\n")):
        with tempfile.NamedTemporaryFile("w", delete=False, dir=os.environ.get("HUTCH_TMP")) as f:
            f.write(text)
        os.chmod(f.name, 0o644)
        _check(libc.mount(f.name.encode(), os.path.realpath(path).encode(), None, MS_BIND, None), path)
        files.append(f.name)
    _connect()


_spaces = []  # descriptors: outside, the host


def _move(space):
    _check(libc.setns(space, CLONE_NEWNET), "setns")


@contextlib.contextmanager
def outside():
    """What the calling thread does in it, it does outside of the host: sockets stay there."""
    _move(_spaces[0])
    try:
        yield
    finally:
        _move(_spaces[1])


def _connect():
    _spaces.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
    _check(libc.unshare(CLONE_NEWNET), "unshare")
    _spaces.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
    _ip("link", "add", "near", "type", "veth", "peer", "name", "far")
    _ip("link", "set", "far", "netns", f"/proc/self/fd/{_spaces[0]}")
    _join("near", [OWN4, OWN6], OUTSIDE + ["192.0.2.0/24"])
    with outside():
        _join("far", OUTSIDE, [OWN4, OWN6])


def _join(link, own, others):
    with open("/proc/sys/net/ipv6/conf/all/accept_dad", "w") as f:
        f.write("0")  # or addresses work after a second only
    with open(f"/proc/sys/net/ipv6/conf/{link}/accept_dad", "w") as f:
        f.write("0")
    for name in "lo", link:
        _ip("link", "set", name, "up")
    for a in own:
        _ip("address", "add", a + ("/128" if ":" in a else "/32"), "dev", link, *(["nodad"] if ":" in a else []))
    for a in others:
        _ip("route", "add", a, "dev", link, *(["src", own[0]] if ":" not in a else []))


# What ip(8) does needs capabilities that do not survive an exec as an ordinary user: they are made ambient.
def _ambient():
    header = struct.pack("<II", 0x20080522, 0)
    data = ctypes.create_string_buffer(struct.pack("<IIIIII", 0x3000, 0x3000, 0x3000, 0, 0, 0), 24)
    libc.capset(ctypes.create_string_buffer(header, 8), data)
    for cap in (12, 13):
        libc.prctl(47, 2, cap, 0, 0)


def _ip(*args):
    subprocess.run(["ip", *args], check=True, preexec_fn=_ambient, pass_fds=_spaces)


def _answer(query, tcp=False):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    name = ".".join(labels).lower()
    asked.append(name)
    if name in no_edns and query[10:12] != b"\0\0":
        return query[:2] + struct.pack(">HHHHH", 0x8181, 1, 0, 0, 0) + query[12:at + 5]
    room = struct.unpack(">H", query[at + 8:at + 10])[0] if query[10:12] == b"\0\1" else 512
    found = NAMES.get(name)
    body = b""
    n = 0
    for a in found or []:
        family = socket.AF_INET6 if ":" in a else socket.AF_INET
        if (kind, family) in ((1, socket.AF_INET), (28, socket.AF_INET6)):
            raw = socket.inet_pton(family, a)
            body += struct.pack(">HHHIH", 0xc00c, kind, 1, 30, len(raw)) + raw
            n += 1
    cut = 0
    if not tcp and 12 + at + 5 - 12 + len(body) > room:
        body, n, cut = b"", 0, 0x200
    return query[:2] + struct.pack(">HHHHH", 0x8180 | cut | (0 if found else 3), 1, n, 0, 0) + query[12:at + 5] + body


class _Threading(socketserver.ThreadingMixIn):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address, handler):
        with outside() if address[0] in OUTSIDE else contextlib.nullcontext():
            super().__init__(address, handler)

    def handle_error(self, request, client_address):
        pass  # a box that resets a connection


class _Tcp(_Threading, socketserver.TCPServer):
    request_queue_size = 1024


class _Tcp6(_Tcp):
    address_family = socket.AF_INET6


class _Udp(_Threading, socketserver.UDPServer):
    max_packet_size = 65536


class _Udp6(_Udp):
    address_family = socket.AF_INET6


class _Resolve(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(_answer(data), self.client_address)


class _ResolveTcp(socketserver.StreamRequestHandler):
    def handle(self):
        answer = _answer(self.rfile.read(struct.unpack(">H", self.rfile.read(2))[0]), True)
        self.wfile.write(struct.pack(">H", len(answer)) + answer)


class _Page(socketserver.StreamRequestHandler):
    """Enough of HTTP for curl and friends, and an echo for what does not begin like it."""

    def handle(self):
        line = self.rfile.readline()
        if not line.startswith((b"GET ", b"HEAD ", b"POST ")):
            while line:
                self.wfile.write(line)
                line = self.rfile.readline()
            self.wfile.write(b"bye\n")
            return
        while self.rfile.readline() not in (b"\r\n", b"\n", b""):
            pass
        page = b"page of " + self.server.server_address[0].encode() + b"\n"
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(page) + page)


class _Echo(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(b"echo " + data, self.client_address)


def serve(kind, address, port, handler):
    server = kind((address, port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def be_silent(address, port):
    """A host that does not answer: the backlog of the listener is full, so that further SYNs are dropped."""
    with outside():
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        s.bind((address, port))
        s.listen(0)
        held = [s]
        for i in range(4):
            c = socket.socket(s.family)
            c.setblocking(False)
            c.connect_ex((address, port))
            held.append(c)
    return held


def serve_all():
    serve(_Udp, RESOLVER, 53, _Resolve)
    serve(_Tcp, RESOLVER, 53, _ResolveTcp)
    serve(_Udp, RESOLVER, 5353, _Echo)
    for a in (HOST4, OTHER4, PRIVATE, METADATA):
        serve(_Tcp, a, 80, _Page)
        serve(_Udp, a, 4433, _Echo)
    for a in (HOST6, OTHER6):
        serve(_Tcp6, a, 80, _Page)
        serve(_Udp6, a, 4433, _Echo)
    serve(_Tcp, HOST4, 8080, _Page)
    serve(_Tcp, "127.0.0.1", 5432, _Page)
    serve(_Tcp, "0.0.0.0", 5434, _Page)
