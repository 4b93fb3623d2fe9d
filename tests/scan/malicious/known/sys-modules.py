import sys
sys.modules['os'].system(x)
