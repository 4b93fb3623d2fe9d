# The world inside: what a box tells about itself is the box's truth.
load helper

@test "as user: who and where" {
        prints '--as user | whoami | user
--as user | id -u; id -g; id -un; id -gn; id -Gn | 1000 1000 user user user
--as user | pwd | /workspace
--as user | echo $HOME $USER $LOGNAME ~ | /home/user user user /home/user
--as user | cd; pwd; stat -c "%U %a" . | /home/user user 700
--as user | hostname; uname -n; cat /proc/sys/kernel/hostname | sandbox sandbox sandbox
--as user | getent passwd user | user:x:1000:1000:user:/home/user:/bin/bash
--as user | getent passwd 1000 0 65534 >/dev/null && echo all | all
--as user | getent group user | user:x:1000:
--as user | getent hosts sandbox >/dev/null && echo known | known
--as user | stat -c %a /tmp; touch /tmp/x /home/user/x /workspace/x && echo ok | 1777 ok'
}

@test "as user: nothing tells the host's names and paths" {
        local text
        text=$(hutch --as user -c 'env; cat /etc/passwd /etc/group /etc/hosts /etc/hostname /proc/self/mounts /proc/self/cgroup 2>/dev/null; hostname; id; pwd -P; readlink -f . ~' 2>&1)
        [ -n "$text" ] || differs "it tells nothing"
        ! grep -n -e "$T" -e "$HOME" <<<"$text" || differs "paths of the host: $(grep -e "$T" <<<"$text" | head -n 3)"
        am_root || ! grep -nw "$(id -un)" <<<"$text" || differs "the caller's name"
        ! grep -nxF "$(uname -n)" <<<"$text" || differs "the host's name"
        agree
}

@test "as user: the system says what it is" {
        [ -e /etc/os-release ] || skip "needs an os-release"
        [ "$(hutch --as user -c '. /etc/os-release; echo $ID')" = "$(. /etc/os-release; echo "$ID")" ] || differs "os-release"
        [ "$(hutch --as user -- uname -sm)" = "$(uname -sm)" ] || differs "uname"
        [ ! -s /etc/resolv.conf ] || [ "$(hutch --as user -- cat /etc/resolv.conf)" = "$(cat /etc/resolv.conf)" ] || differs "resolv.conf"
        agree
}

@test "as user: a shell of its own that is pleasant" {
        prints '--as user | ls -A ~ | .bashrc .profile
--as user | bash -ic "echo ok; alias ll" 2>/dev/null | ok alias ll='"'ls -l'"'
--as user | bash -lc "echo \$HOME" | /home/user
--as user | echo "alias x=y" >>~/.bashrc && rm ~/.profile && ls -A ~ | .bashrc
--as host | ls -A ~ | 
--as root | ls -A ~ | '
}

@test "the limits show where programs look for them" {
        prints '--memory 64M --allow-degraded | grep MemTotal /proc/meminfo | MemTotal:          65536 kB
--memory 64M --allow-degraded | awk "/MemAvailable/ {print \$2}" /proc/meminfo | 65536
--cpu 100% --allow-degraded | grep -c ^processor /proc/cpuinfo | 1
--cpu 100% --allow-degraded | nproc | 1
--cpu 50% --allow-degraded | nproc | 1
--as user | grep -c ^processor /proc/cpuinfo | $(grep -c ^processor /proc/cpuinfo)
--as user | nproc | $(nproc)
--cpu 100% --allow-degraded --env OMP_NUM_THREADS=7 | nproc | 7'
        command -v free >/dev/null || skip "needs free"
        [ "$(hutch --memory 64M --allow-degraded -- free -k | awk '/^Mem:/ {print $2}')" = 65536 ] || differs "free: $(hutch --memory 64M --allow-degraded -- free -k)"
        agree
}

@test "more memory than the host has is not shown, and a nested box keeps its /proc" {
        [ "$(hutch --memory 1000000G --allow-degraded -- grep MemTotal /proc/meminfo)" = "$(grep MemTotal /proc/meminfo)" ] || differs "meminfo promises too much"
        [ "$(hutch --memory 64M --allow-degraded --allow-nested -- grep MemTotal /proc/meminfo)" = "$(grep MemTotal /proc/meminfo)" ] || differs "meminfo is covered in a box that may nest"
        agree
}
