/* /proc/PID/exe of init: the file is hutch itself, on the host. Opened from inside it could be overwritten as soon as nobody
 * executes it any more (as runc's once was).
 *
 * It must fail because init may not be looked at, so the link leads nowhere.
 *
 * args: "$victim" */
#include "attack.h"

static bool try_exe(const char *pid) {
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/%s/exe", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return false;
        note("%s is open", path);
        return true;
}

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");

        if (argc < 2)
                return UNTRIED;
        if ((!getenv("HUTCH_CONTROL") && try_exe("1")) || try_exe(argv[1]) || (hutch && try_exe(hutch)))
                return ESCAPED;
        return STOPPED;
}
