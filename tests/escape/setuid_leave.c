/* A setuid or setgid program left behind in the workspace, for an accomplice on the host to start.
 *
 * Files that a box makes belong to the caller, to root if root started it; with the setuid bit on one of them any other user of
 * the host who can reach the directory becomes the caller. That the box itself is nosuid does not matter to them. It must fail:
 * nothing that is made in a box needs the bit (systemd's RestrictSUIDSGID and Nix's builder refuse it by a filter).
 *
 * args: "$in"
 * check: [ -n "$(find "$ws" -perm /6000 -type f)" ] */
#include "attack.h"

int main(int argc, char **argv) {
        struct stat st;
        int fd, set = 0;

        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        umask(0);
        fd = open("a", O_CREAT | O_EXCL | O_WRONLY, 0755);
        if (fd < 0)
                return UNTRIED;
        note("chmod: %s", chmod("a", 04755) < 0 ? strerror(errno) : "done");
        set += stat("a", &st) == 0 && st.st_mode & 06000;
        note("fchmod: %s", fchmod(fd, 02755) < 0 ? strerror(errno) : "done");
        set += stat("a", &st) == 0 && st.st_mode & 06000;
        note("fchmodat: %s", fchmodat(AT_FDCWD, "a", 04755, 0) < 0 ? strerror(errno) : "done");
        set += stat("a", &st) == 0 && st.st_mode & 06000;
        note("fchmodat2: %s", syscall(452, AT_FDCWD, "a", 04755, 0) < 0 ? strerror(errno) : "done");
        set += stat("a", &st) == 0 && st.st_mode & 06000;
        note("openat: %s", open("b", O_CREAT | O_EXCL | O_WRONLY, 04755) < 0 ? strerror(errno) : "done");
        set += stat("b", &st) == 0 && st.st_mode & 06000;
        note("creat: %s", syscall(SYS_creat, "c", 04755) < 0 ? strerror(errno) : "done");
        set += stat("c", &st) == 0 && st.st_mode & 06000;
        note("mknod: %s", mknod("d", S_IFREG | 04755, 0) < 0 ? strerror(errno) : "done");
        set += stat("d", &st) == 0 && st.st_mode & 06000;
        struct {
                uint64_t flags, mode, resolve;
        } how = {O_CREAT | O_EXCL | O_WRONLY, 04755, 0};
        note("openat2: %s", syscall(SYS_openat2, AT_FDCWD, "e", &how, sizeof(how)) < 0 ? strerror(errno) : "done");
        set += stat("e", &st) == 0 && st.st_mode & 06000;
        return set ? ESCAPED : STOPPED;
}
