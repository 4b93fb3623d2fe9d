import os
getattr(os,'{}tem'.format('sys'))(x)
