/* Every way to change a directory that was attached read-only: write, truncate, mode, times, attributes, names, reopening a fd.
 *
 * It must fail because the mount is read-only, for uid 0 of the box as well.
 *
 * setup: mkdir "$host/ro"; echo old >"$host/ro/file"
 * options: --ro "$host/ro"
 * args: "$host/ro"
 * check: [ "$(cat "$host/ro/file")" != old ] || [ "$(ls -A "$host/ro")" != file ] */
#include "attack.h"
#include <sys/time.h>
#include <sys/xattr.h>

static int done;

static void tell(const char *what, long r) {
        if (r >= 0)
                done++;
        note("%s: %s", what, r < 0 ? strerror(errno) : "done");
}

int main(int argc, char **argv) {
        struct timespec times[2] = {{1, 0}, {1, 0}};
        char path[64];
        int fd;

        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        fd = open("file", O_RDONLY);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        tell("reopen", open(path, O_RDWR));
        tell("truncate", truncate("file", 0));
        tell("fchmod", fchmod(fd, 0666));
        tell("utimens", futimens(fd, times));
        tell("xattr", setxattr("file", "user.x", "y", 1, 0));
        tell("create", open("new", O_CREAT | O_WRONLY, 0644));
        tell("tmpfile", open(".", O_TMPFILE | O_WRONLY, 0644));
        tell("mkdir", mkdir("directory", 0755));
        tell("symlink", symlink("x", "link"));
        tell("link", link("file", "hard"));
        tell("rename", rename("file", "renamed"));
        tell("unlink", unlink("file"));
        if (getenv("HUTCH_CONTROL"))
                return done >= 9 ? ESCAPED : STOPPED;
        return done ? ESCAPED : STOPPED;
}
