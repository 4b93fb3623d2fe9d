/* /proc/PID/mem of init, of hutch and of another process of the host: reading it gives every secret, writing it every power.
 *
 * It must fail because init is not dumpable and its memory belongs to a user namespace outside, and the others are not there.
 *
 * args: "$victim" */
#include "attack.h"

static bool try_memory(const char *pid) {
        static const char *const files[] = {"mem",   "maps",    "auxv", "pagemap",    "smaps",
                                            "stack", "syscall", "io",   "personality"};
        char path[128], line[64];

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                bool memory = strstr(files[i], "mem");
                int fd;

                snprintf(path, sizeof(path), "/proc/%s/%s", pid, files[i]);
                fd = open(path, (memory ? O_RDWR : O_RDONLY) | O_CLOEXEC);
                /* Some open for everybody and refuse when read. */
                if (fd >= 0 && (memory || read(fd, line, sizeof(line)) > 0)) {
                        note("%s is open", path);
                        return true;
                }
                if (fd >= 0)
                        close(fd);
        }
        return false;
}

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");

        if (argc < 2)
                return UNTRIED;
        if ((!getenv("HUTCH_CONTROL") && try_memory("1")) || try_memory(argv[1]) || (hutch && try_memory(hutch)))
                return ESCAPED;
        return STOPPED;
}
