globals()["__builtins__"].__dict__["ex" + "ec"]("import os")
