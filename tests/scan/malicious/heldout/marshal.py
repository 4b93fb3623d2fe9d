import marshal, zlib, base64
exec(marshal.loads(zlib.decompress(base64.b64decode(open("d").read()))))
