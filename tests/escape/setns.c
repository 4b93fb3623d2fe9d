/* setns into other namespaces: the host's by way of its processes, the box's own user namespace once more (for capabilities), and
 * those that the kernel hands out as parents and owners (NS_GET_PARENT, NS_GET_USERNS).
 *
 * It must fail because the filter refuses setns, no process of the host is there, and the kernel gives nobody a parent that lies
 * outside of its own namespace. The control asks from a parent for its child's.
 *
 * args: "$victim"
 * also: /--allow-nested --workspace rw
 * also: /--net open */
#include "attack.h"
#include <linux/nsfs.h>

static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};

static bool enters(const char *pid) {
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                char path[64];
                int fd;

                snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, kinds[i]);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd >= 0 && syscall(SYS_setns, fd, 0) == 0) {
                        note("entered %s", path);
                        return true;
                }
        }
        return false;
}

static bool gets_outside(void) {
        bool got = false;

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                char path[64];
                int fd, up, owner;

                snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                up = fd < 0 ? -1 : ioctl(fd, NS_GET_PARENT);
                owner = fd < 0 || strcmp(kinds[i], "user") != 0 ? -1 : ioctl(fd, NS_GET_USERNS);
                if (up >= 0 || owner >= 0) {
                        note("the parent of %s is open", path);
                        got = true;
                }
        }
        return got;
}

int main(int argc, char **argv) {
        if (argc < 2)
                return UNTRIED;
        if (getenv("HUTCH_CONTROL")) { /* a child's user namespace has us as its parent */
                char path[64];
                int ends[2], fd;
                pid_t pid;

                if (pipe(ends) < 0 || (pid = fork()) < 0)
                        return UNTRIED;
                if (pid == 0) {
                        char ok = syscall(SYS_unshare, CLONE_NEWUSER) == 0;

                        if (write(ends[1], &ok, 1) != 1)
                                _exit(1);
                        pause();
                        _exit(0);
                }
                if (read(ends[0], path, 1) != 1 || !path[0])
                        return UNTRIED;
                snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                bool got = fd >= 0 && ioctl(fd, NS_GET_PARENT) >= 0 && syscall(SYS_setns, fd, 0) == 0;
                kill(pid, SIGKILL);
                return got ? ESCAPED : STOPPED;
        }
        return gets_outside() || enters(argv[1]) || enters("1") || enters("self") ? ESCAPED : STOPPED;
}
