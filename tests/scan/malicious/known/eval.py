code = input()
eval(code)
