/* A destination (--ro X:DEST) that passes through a link of the workspace.
 *
 * An earlier box could have planted the link, so that hutch makes directories or mounts where it leads on the host. It must fail
 * because a destination is looked up inside the box's root, and nothing is made on the host to mount on.
 *
 * setup: mkdir "$ws/data"; ln -s "$host" "$ws/link"; ln -s ../../../../../../.. "$ws/up"
 * options: --ro "$ws/data:$in/link/planted" --ro "$ws/data:$in/up$host/planted"
 * args: "$in/link/planted"
 * refused: yes
 * check: [ -e "$host/planted" ] */
#include "attack.h"

int main(int argc, char **argv) {
        char path[4096];

        if (argc < 2)
                return UNTRIED;
        snprintf(path, sizeof(path), "%s/file", argv[1]);
        if (mkdir(argv[1], 0755) == 0 || can_write(path))
                return ESCAPED;
        return STOPPED;
}
