/* Kernel settings: every file under /proc/sys, opened for writing.
 *
 * uid 0 of a namespace may set those of its own namespaces, uid 0 of the host all of them, also without capabilities. It must fail
 * because /proc/sys is read-only in the box and a box of root's is not uid 0 of the host.
 *
 * control: userns */
#include "attack.h"
#include <ftw.h>

static int opened;

static int visit(const char *path, const struct stat *st, int type, struct FTW *where) {
        int fd;

        (void) where;
        if (type != FTW_F || !(st->st_mode & 0222))
                return 0;
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return 0;
        if (opened++ < 5)
                note("%s opens for writing", path);
        close(fd);
        return 0;
}

int main(void) {
        if (access("/proc/sys/kernel", F_OK) < 0)
                return UNTRIED;
        nftw("/proc/sys", visit, 32, FTW_PHYS);
        return opened ? ESCAPED : STOPPED;
}
