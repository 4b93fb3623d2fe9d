/* See beside.h. */
#include "beside.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int host_find_beside(const char *name, char ret[PATH_MAX]) {
        static const char *const beside[] = {"", "../libexec/hutch/", "../../libexec/hutch/", "../bin/", "../../bin/"};
        char self[PATH_MAX], *slash;
        Dl_info info;
        ssize_t n;

        /* Where this code was loaded from: the library, or a program that it is linked into. */
        if (!dladdr((void *) host_find_beside, &info) || !realpath(info.dli_fname, self)) {
                n = readlink("/proc/self/exe", self, sizeof(self) - 1);
                self[n > 0 ? n : 0] = 0;
        }
        slash = strrchr(self, '/');
        for (size_t i = 0; slash && i < ARRAY_SIZE(beside); i++)
                if ((size_t) snprintf(ret, PATH_MAX, "%.*s/%s%s", (int) (slash - self), self, beside[i], name) <
                            PATH_MAX &&
                    access(ret, X_OK) == 0)
                        return 0;
        snprintf(ret, PATH_MAX, "%s/%s", strcmp(name, "hutch") == 0 ? HUTCH_BINDIR : HUTCH_LIBEXECDIR, name);
        return access(ret, X_OK) == 0 ? 0 : -ENOENT;
}
