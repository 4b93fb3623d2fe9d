/* Taking away the mount that hides a file (--hide), also from a namespace nested in the box, also without following links.
 *
 * It must fail because the filter refuses umount; where nesting is allowed the mounts of the outer box are locked.
 *
 * setup: echo "$token" >"$ws/hidden"; mkdir "$ws/directory"; echo "$token" >"$ws/directory/file"
 * options: --hide "$ws/hidden" --hide "$ws/directory"
 * args: "$in"
 * control: userns
 * also: /--allow-nested --workspace ro
 * also: /--allow-nested --workspace ro --as root
 * also: without mount-api/--allow-nested --workspace ro */
#include "attack.h"
#include <sys/mount.h>

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        own_mounts();
        if (getenv("HUTCH_CONTROL")) {
                close(open("cover", O_CREAT | O_WRONLY, 0644));
                if (mount("cover", "hidden", NULL, MS_BIND, NULL) < 0 ||
                    mount("tmpfs", "directory", "tmpfs", 0, NULL) < 0)
                        return UNTRIED;
        }
        if (has_secret("hidden") || has_secret("directory/file")) {
                note("it was not hidden");
                return getenv("HUTCH_CONTROL") ? UNTRIED : ESCAPED;
        }
        note("umount2: %s", umount2("hidden", MNT_DETACH) < 0 ? strerror(errno) : "done");
        umount2("hidden", 0);
        umount2("hidden", UMOUNT_NOFOLLOW);
        umount2("directory", MNT_DETACH);
        umount2(".", MNT_DETACH);
        return has_secret("hidden") || has_secret("directory/file") ? ESCAPED : STOPPED;
}
