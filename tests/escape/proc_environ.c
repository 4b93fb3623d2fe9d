/* The caller's environment: in the attack's own, in init's, and in every other process's.
 *
 * init is a copy of hutch, which was started with a secret in its environment. It must fail because init's memory is closed and
 * the box's environment is made of a list of safe names. */
#include "attack.h"
#include <dirent.h>

extern char **environ;

static bool try_environ(const char *pid) {
        static char text[1 << 20];
        char path[300];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%s/environ", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        if (fd >= 0)
                close(fd);
        return n > 0 && memmem(text, (size_t) n, SECRET, strlen(SECRET));
}

int main(void) {
        struct dirent *entry;
        DIR *proc = opendir("/proc");

        for (char **e = environ; *e; e++)
                if (strstr(*e, SECRET))
                        return ESCAPED;
        if (try_environ("1"))
                return ESCAPED;
        while (proc && (entry = readdir(proc)))
                if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) && try_environ(entry->d_name))
                        return ESCAPED;
        return STOPPED;
}
