/* Runs a program in a mount namespace in which a tmpfs is mounted on DIRECTORY and another on DIRECTORY/deeper; an ordinary user gets a
 * user namespace for it, under the same id. usage: with-mount DIRECTORY PROGRAM [ARG…] */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int put(const char *path, const char *format, unsigned id) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        char text[64];
        int n = strcmp(format, "deny") == 0 ? snprintf(text, sizeof(text), "deny")
                                            : snprintf(text, sizeof(text), "%u %u 1", id, id);

        return fd < 0 || write(fd, text, (size_t) n) != n ? -1 : close(fd);
}

int main(int argc, char **argv) {
        unsigned uid = getuid(), gid = getgid();
        char deeper[PATH_MAX];

        if (argc < 3)
                return 125;
        snprintf(deeper, sizeof(deeper), "%s/deeper", argv[1]);
        if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0 ||
            (uid && (put("/proc/self/setgroups", "deny", 0) < 0 || put("/proc/self/uid_map", "map", uid) < 0 ||
                     put("/proc/self/gid_map", "map", gid) < 0)) ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", argv[1], "tmpfs", 0, "mode=777") < 0 || mkdir(deeper, 0777) < 0 ||
            mount("tmpfs", deeper, "tmpfs", 0, "mode=777") < 0) {
                perror("with-mount");
                return 125;
        }
        execvp(argv[2], argv + 2);
        return 125;
}
