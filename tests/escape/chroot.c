/* The classic way out of a changed root: hold a directory, chroot below it, walk up from the directory.
 *
 * It must fail because the filter refuses chroot; where nesting is allowed, what is above is still only the box, whose root is the
 * root of its mount namespace. The control sits in a chroot, as seed C's jail did, and leaves it.
 *
 * setup: mkdir "$ws/jail" "$ws/jail/sub"
 * args: "$in/jail" "$secret"
 * control: userns
 * also: /--allow-nested --workspace rw
 * also: /--allow-nested --workspace rw --as root */
#include "attack.h"

int main(int argc, char **argv) {
        int fd;

        if (argc < 3)
                return UNTRIED;
        own_mounts();
        if (getenv("HUTCH_CONTROL") && (chroot(argv[1]) < 0 || chdir("/") < 0 || has_secret(argv[2])))
                return UNTRIED;
        if (!getenv("HUTCH_CONTROL") && chdir(argv[1]) < 0)
                return UNTRIED;
        fd = open(".", O_RDONLY | O_DIRECTORY);
        note("chroot: %s", chroot("sub") < 0 ? strerror(errno) : "done");
        if (fd < 0 || fchdir(fd) < 0)
                return UNTRIED;
        for (int i = 0; i < 64; i++)
                if (chdir("..") < 0)
                        break;
        if (has_secret(argv[2] + 1))
                return ESCAPED;
        if (chroot(".") == 0 && has_secret(argv[2]))
                return ESCAPED;
        return STOPPED;
}
