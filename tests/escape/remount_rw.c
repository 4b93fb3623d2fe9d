/* Making a read-only mount writable again, by mount(MS_REMOUNT) and by mount_setattr(); mounting its source once more.
 *
 * It must fail because the filter refuses both; where nesting is allowed the kernel keeps flags that a less privileged namespace
 * inherited. The host's /usr is tried too.
 *
 * setup: mkdir "$host/ro"
 * options: --ro "$host/ro"
 * args: "$host/ro"
 * control: userns
 * check: [ -e "$host/ro/planted" ]
 * also: /--allow-nested --workspace rw
 * also: /--allow-nested --workspace rw --as root
 * also: without mount-api/--allow-nested --workspace rw */
#include "attack.h"
#include <linux/mount.h>
#include <sys/syscall.h>

int mount(const char *, const char *, const char *, unsigned long,
          const void *); /* <sys/mount.h> and <linux/mount.h> collide */
#define REMOUNT 32UL
#define BIND 4096UL
#define READ_ONLY 1UL

static bool try_folder(const char *path) {
        struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
        char file[4096];

        snprintf(file, sizeof(file), "%s/planted", path);
        note("remount %s: %s", path, mount(NULL, path, NULL, REMOUNT | BIND, NULL) < 0 ? strerror(errno) : "done");
        attr.attr_clr = MOUNT_ATTR_RDONLY;
        if (syscall(SYS_mount_setattr, AT_FDCWD, path, 0x8000 /* AT_RECURSIVE */, &attr, sizeof(attr)) < 0)
                note("mount_setattr %s: %s", path, strerror(errno));
        if (can_write(file))
                return true;
        mount(path, "/tmp", NULL, BIND, NULL);
        mount(NULL, "/tmp", NULL, REMOUNT | BIND, NULL);
        mount(NULL, path, NULL, REMOUNT, NULL); /* the file system itself */
        return can_write(file);
}

int main(int argc, char **argv) {
        if (argc < 2)
                return UNTRIED;
        own_mounts();
        if (getenv("HUTCH_CONTROL")) {
                char file[4096];

                snprintf(file, sizeof(file), "%s/planted", argv[1]);
                if (mount(argv[1], argv[1], NULL, BIND, NULL) < 0 ||
                    mount(NULL, argv[1], NULL, REMOUNT | BIND | READ_ONLY, NULL) < 0 || can_write(file))
                        return UNTRIED;
                return try_folder(argv[1]) ? ESCAPED : STOPPED;
        }
        /* Where they are layers of the box's own they are writable to begin with. */
        if (can_write("/usr/planted") && can_write("/etc/planted"))
                return try_folder(argv[1]) ? ESCAPED : STOPPED;
        if (try_folder("/usr") || try_folder("/etc")) {
                unlink("/usr/planted");
                unlink("/etc/planted");
                return ESCAPED;
        }
        return try_folder(argv[1]) ? ESCAPED : STOPPED;
}
