# -*- coding: rot13 -*-
vzcbeg bf
bf.flfgrz('vq')
