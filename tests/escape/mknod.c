/* A device node made in the box: the disk itself, or the kernel's memory.
 *
 * It must fail because mknod wants a capability of the host's own user namespace, and every mount is nodev.
 *
 * args: "$in"
 * only: root */
#include "attack.h"
#include <sys/sysmacros.h>

int main(int argc, char **argv) {
        static const char *const places[] = {".", "/tmp", "/dev/shm", "/dev", "/run"};
        int made = 0, fd;

        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                char path[64];

                snprintf(path, sizeof(path), "%s/hutch-node-%d", places[i], getpid());
                /* harmless ones: major 1 minor 8 is /dev/random */
                if (mknod(path, S_IFCHR | 0600, makedev(1, 8)) < 0) {
                        note("mknod %s: %s", path, strerror(errno));
                        continue;
                }
                fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
                note("open %s: %s", path, fd < 0 ? strerror(errno) : "done");
                made += fd >= 0;
                unlink(path);
        }
        return made ? ESCAPED : STOPPED;
}
