/* A file taken out of a read-only directory by a hard link or a rename into the writable workspace beside it: there it could be
 * written, and it is the same file.
 *
 * It must fail because links and renames do not cross mounts, even of one file system.
 *
 * setup: mkdir "$ws/ro"; echo old >"$ws/ro/file"; mkdir "$host/ro"; echo old >"$host/ro/file"
 * options: --ro "$ws/ro" --ro "$host/ro"
 * args: "$in" "$host/ro"
 * check: [ "$(cat "$ws/ro/file" "$host/ro/file")" != old$'\n'old ] */
#include "attack.h"

int main(int argc, char **argv) {
        char outside[4096], path[64];
        int fd, done = 0;

        if (argc < 3 || chdir(argv[1]) < 0)
                return UNTRIED;
        snprintf(outside, sizeof(outside), "%s/file", argv[2]);
        fd = open("ro/file", O_RDONLY);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        done += linkat(AT_FDCWD, path, AT_FDCWD, "a", AT_SYMLINK_FOLLOW) == 0 && can_write("a");
        done += link("ro/file", "b") == 0 && can_write("b");
        done += link(outside, "c") == 0 && can_write("c");
        done += linkat(fd, "", AT_FDCWD, "d", AT_EMPTY_PATH) == 0 && can_write("d");
        done += rename("ro/file", "e") == 0 && can_write("e");
        done += rename(outside, "f") == 0;
        done += symlink("x", "g") == 0 && rename("g", "ro/file") == 0;
        done += syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "ro/file", 2) == 0;
        return done ? ESCAPED : STOPPED;
}
