/* Secrets in arguments: hutch's own are copied to init, whose /proc/1/cmdline the kernel shows to everybody.
 *
 * Here a variable's value stands in hutch's arguments, and it is set in the box, so the attack looks at the arguments of others
 * only. It must fail because init overwrites its copy.
 *
 * options: --env "OTHER=$token" */
#include "attack.h"
#include <dirent.h>

int main(void) {
        static char text[1 << 16];
        struct dirent *entry;
        DIR *proc = opendir("/proc");

        while (proc && (entry = readdir(proc))) {
                static const char *const files[] = {"cmdline", "stat", "comm"};

                if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
                        continue;
                for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                        char path[512];
                        ssize_t n;
                        int fd;

                        snprintf(path, sizeof(path), "/proc/%s/%s", entry->d_name, files[i]);
                        fd = open(path, O_RDONLY | O_CLOEXEC);
                        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
                        if (fd >= 0)
                                close(fd);
                        if (n > 0 && memmem(text, (size_t) n, SECRET, strlen(SECRET))) {
                                note("found in %s", path);
                                return ESCAPED;
                        }
                }
        }
        return STOPPED;
}
