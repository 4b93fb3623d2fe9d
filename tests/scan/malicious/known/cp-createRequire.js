import {createRequire} from 'module'; const r=createRequire(import.meta.url); r('child_process').exec(x)
