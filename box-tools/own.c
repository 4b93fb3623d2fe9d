/* See own.h. */
#include "own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* Under a pretending filter getuid() returns a false value; the owner of files that we create is real. */
static int find_self(uid_t *ret) {
        uid_t real, effective, saved;

        if (getresuid(&real, &effective, &saved) < 0)
                return -errno;
        *ret = effective;
        return 0;
}

static int copy(int from, int to) {
        char buffer[64 * 1024];
        ssize_t n;

        while ((n = read(from, buffer, sizeof(buffer))) > 0)
                for (ssize_t done = 0, m; done < n; done += m) {
                        m = write(to, buffer + done, (size_t) (n - done));
                        if (m < 0)
                                return -errno;
                }
        return n < 0 ? -errno : 0;
}

static int own(const char *path, uid_t self) {
        char temporary[PATH_MAX];
        struct stat st;
        int from, to, r;

        if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid == self)
                return 0;
        if ((size_t) snprintf(temporary, sizeof(temporary), "%s.hutch-own", path) >= sizeof(temporary))
                return 0;
        from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (from < 0)
                return 0;
        unlink(temporary);
        to = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = to < 0 ? -errno : copy(from, to);
        if (r >= 0 && (fchmod(to, st.st_mode & 01777) < 0 ||
                       futimens(to, (struct timespec[]){st.st_atim, st.st_mtim}) < 0 || rename(temporary, path) < 0))
                r = -errno;
        if (r < 0) {
                fprintf(stderr, "hutch: cannot take over %s: %s\n", path, strerror(-r));
                unlink(temporary);
        }
        close(from);
        if (to >= 0)
                close(to);
        return r;
}

int own_listed(FILE *list) {
        char *line = NULL;
        size_t room = 0;
        ssize_t n;
        uid_t self = 0;
        int r = find_self(&self), worst;

        worst = r;
        while (r >= 0 && (n = getline(&line, &room, list)) > 0) {
                if (line[n - 1] == '\n')
                        line[n - 1] = 0;
                if (line[0] == '/' && own(line, self) < 0)
                        worst = -EIO;
        }
        free(line);
        return worst;
}
