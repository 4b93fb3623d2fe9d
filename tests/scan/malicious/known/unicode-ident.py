import os
os.ｓｙｓｔｅｍ(x)
