import os,functools
functools.partial(os.system, x)()
