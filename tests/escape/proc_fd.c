/* /proc/PID/fd/N of every process there is: files that others hold open, also directories to walk from.
 *
 * It must fail because only the box's own processes are there, and init, which holds fds of the host, may not be looked at. */
#include "attack.h"
#include <dirent.h>

static bool try_fds(const char *pid) {
        struct dirent *entry;
        char path[512];
        DIR *fds;
        bool found = false;

        snprintf(path, sizeof(path), "/proc/%s/fd", pid);
        fds = opendir(path);
        while (fds && !found && (entry = readdir(fds))) {
                snprintf(path, sizeof(path), "/proc/%s/fd/%s", pid, entry->d_name);
                found = has_secret(path);
                snprintf(path, sizeof(path), "/proc/%s/fd/%s/secret", pid, entry->d_name);
                found = found || has_secret(path);
        }
        if (fds)
                closedir(fds);
        /* A directory that cannot be listed may still be passed through. */
        for (int i = 0; !found && i < 64; i++) {
                snprintf(path, sizeof(path), "/proc/%s/fd/%d", pid, i);
                found = has_secret(path);
        }
        return found;
}

int main(void) {
        const char *hutch = getenv("HUTCH_PID");
        struct dirent *entry;
        DIR *proc = opendir("/proc");

        if (try_fds("1") || (hutch && try_fds(hutch)))
                return ESCAPED;
        while (proc && (entry = readdir(proc)))
                if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) && try_fds(entry->d_name))
                        return ESCAPED;
        return STOPPED;
}
