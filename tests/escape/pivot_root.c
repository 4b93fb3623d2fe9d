/* pivot_root to get back to the root that init left, and umount of the box's own root.
 *
 * It must fail because the filter refuses both; where nesting is allowed the old root was unmounted, so that there is nothing
 * beneath. The control has the old root, as a careless box would.
 *
 * args: "$secret"
 * control: userns
 * also: /--allow-nested --workspace rw
 * also: /--allow-nested --workspace rw --as root
 * also: without mount-api/--allow-nested --workspace rw */
#include "attack.h"
#include <sys/mount.h>

int main(int argc, char **argv) {
        if (argc < 2)
                return UNTRIED;
        own_mounts();
        if (getenv("HUTCH_CONTROL")) { /* a box that forgot to take away the old root, which lies beneath the new one */
                char old[] = "/tmp/old";

                if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || mkdir(old, 0755) < 0 ||
                    syscall(SYS_pivot_root, "/tmp", old) < 0 || chdir("/") < 0 || has_secret(argv[1]))
                        return UNTRIED;
                return syscall(SYS_pivot_root, "/old", "/old") < 0 && chdir("/old") == 0 && chroot(".") == 0 &&
                                       has_secret(argv[1])
                               ? ESCAPED
                       : has_secret(argv[1]) ? ESCAPED
                                             : STOPPED;
        }
        note("chdir /tmp, bind: %s", mount("/tmp", "/tmp", NULL, MS_BIND, NULL) < 0 ? strerror(errno) : "done");
        if (chdir("/tmp") == 0)
                note("pivot_root: %s", syscall(SYS_pivot_root, ".", ".") < 0 ? strerror(errno) : "done");
        note("umount /: %s", umount2("/", MNT_DETACH) < 0 ? strerror(errno) : "done");
        umount2(".", MNT_DETACH);
        for (int i = 0; i < 40; i++)
                if (chdir("..") < 0)
                        break;
        return has_secret(argv[1]) || has_secret(argv[1] + 1) ? ESCAPED : STOPPED;
}
