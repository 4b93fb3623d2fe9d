/* /proc/PID/root and /proc/PID/cwd as doors to another root.
 *
 * They are not paths but leaps: whoever may look at a process of the host stands in the host's root. It must fail because the
 * box's /proc shows only the box, its init may not be looked at, and the box's own root is the box.
 *
 * args: "$secret" "$victim" */
#include "attack.h"
#include <dirent.h>

static bool try_process(const char *pid, const char *secret) {
        char path[8192];

        snprintf(path, sizeof(path), "/proc/%s/root%s", pid, secret);
        if (has_secret(path))
                return true;
        snprintf(path, sizeof(path), "/proc/%s/task/%s/root%s", pid, pid, secret);
        if (has_secret(path))
                return true;
        snprintf(path, sizeof(path), "/proc/%s/cwd/secret", pid);
        if (has_secret(path))
                return true;
        snprintf(path, sizeof(path), "/proc/%s/cwd/../../../../../../../../../../../..%s", pid, secret);
        return has_secret(path);
}

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");
        struct dirent *entry;
        DIR *proc = opendir("/proc");

        if (argc < 3)
                return UNTRIED;
        if (try_process(argv[2], argv[1]) || try_process(hutch ? hutch : "1", argv[1]) || try_process("1", argv[1]))
                return ESCAPED;
        while (proc && (entry = readdir(proc)))
                if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) || strcmp(entry->d_name, "self") == 0)
                        if (try_process(entry->d_name, argv[1]))
                                return ESCAPED;
        return STOPPED;
}
