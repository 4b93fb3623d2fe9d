/* A directory attached read-only in which another file system is mounted on the host, at a name that is hard to write down.
 *
 * Making only the top read-only leaves the mount in it writable. It must fail because read-only holds for everything below. (What
 * is mounted is a tmpfs, which a box of root's cannot have before Linux 6.3: no id-mapped mounts.)
 *
 * setup: mkdir -p "$host/ro"/$'sub \n\\x'
 * options: --ro "$host/ro"
 * args: "$host/ro"/$'sub \n\\x'
 * refused: before 6.3
 * wrap: "$bin/with-mount" "$host/ro"/$'sub \n\\x' */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0 || access("deeper", F_OK) < 0)
                return UNTRIED;
        return (can_write("planted") || can_write("deeper/planted")) ? ESCAPED : STOPPED;
}
