import builtins
e = builtins.eval
e(open("x").read())
