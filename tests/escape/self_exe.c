/* Overwriting the program that runs, through /proc/self/exe and through its own path: the file was attached read-only.
 *
 * A copy of the attack, in a directory of the host that the box gets with --ro, is executed; its child waits until it no longer runs
 * and writes. It must fail because the mount is read-only, whatever name leads to it.
 *
 * setup: mkdir "$host/ro"; cp "$program" "$host/ro/copy"
 * options: --ro "$host/ro"
 * args: "$host/ro/copy" */
#include "attack.h"

int main(int argc, char **argv) {
        int fd, link;
        char path[64];

        if (argc < 2)
                return UNTRIED;
        if (strcmp(argv[1], "again") == 0) { /* the copy: hands over a fd of itself and makes place */
                fd = open("/proc/self/exe", O_PATH);
                snprintf(path, sizeof(path), "%d", fd);
                execl("/proc/self/fd/9", "attack", "write", path, NULL);
                return UNTRIED;
        }
        if (strcmp(argv[1], "write") == 0) {
                snprintf(path, sizeof(path), "/proc/self/fd/%s", argv[2]);
                for (int i = 0; i < 20; i++) {
                        fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
                        if (fd >= 0 || errno != ETXTBSY)
                                break;
                        usleep(10000);
                }
                note("open %s for writing: %s", path, fd < 0 ? strerror(errno) : "done");
                return fd >= 0 && write(fd, "planted", 7) == 7 ? ESCAPED : STOPPED;
        }
        link = open("/proc/self/exe", O_RDONLY);
        if (link < 0 || dup2(link, 9) < 0)
                return UNTRIED;
        execl(argv[1], "attack", "again", NULL);
        return UNTRIED;
}
