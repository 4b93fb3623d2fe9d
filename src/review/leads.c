/* Where protected names lead; see leads.h. A look at some hundred names at the top of the folder, once for each review.
 */
#include "leads.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "gitconfig.h"
#include "protected.h"
#include "tree.h"

#define MOST_CONFIG ((size_t) 1024 * 1024)

static int add(const char *top, const char *path, char ***leads) {
        char resolved[PATH_MAX];

        if (realpath(path, resolved) && path_is_beneath(resolved, top) && !streq(resolved, top))
                return strv_push(leads, resolved);
        return 0;
}

/* Unlike tree_open() into what is mounted there: it is as much the host's word. */
static int open_at(int folder, const char *path, int flags) {
        int fd;

        do
                fd = sys_openat2(folder, path, (unsigned) (flags | O_CLOEXEC | O_NOFOLLOW),
                                 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        while (fd < 0 && (errno == EINTR || errno == EAGAIN));
        return fd < 0 ? -errno : fd;
}

static bool is_by_link(int folder, const char *path) {
        _cleanup_(closep) int fd = open_at(folder, path, O_PATH);
        struct stat st;

        return fd == -ELOOP || (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode));
}

static int add_links(const char *top, int folder, char ***leads) {
        const char *pattern;

        for (size_t i = 0; (pattern = protected_pattern(i)); i++) {
                size_t n = strlen(pattern);
                _cleanup_(freep) char *name = NULL, *path = NULL;
                int r;

                if (n > 3 && streq(pattern + n - 3, "/**"))
                        n -= 3;
                name = strndup(pattern, n);
                path = name ? tree_join(top, name) : NULL;
                if (!path)
                        return -ENOMEM;
                if (strchr(name, '*') || !is_by_link(folder, name))
                        continue;
                r = add(top, path, leads);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* `from`: the folder that a relative value starts at. */
static int add_configured(const char *top, const char *text, size_t len, const char *key, const char *from,
                          char ***leads) {
        _cleanup_(freep) char *value = NULL, *folder = NULL, *path = NULL;
        int r = gitconfig_get(text, len, key, &value);

        if (r < 0 || !value || !value[0] || value[0] == '~')
                return r;
        folder = tree_join(top, from);
        path = !folder ? NULL : value[0] == '/' ? strdup(value) : tree_join(folder, value);
        return path ? add(top, path, leads) : -ENOMEM;
}

static int add_config(const char *top, int folder, char ***leads) {
        _cleanup_(closep) int fd = open_at(folder, ".git/config", O_RDONLY | O_NONBLOCK | O_NOCTTY);
        _cleanup_(freep) char *text = NULL;
        struct stat st;
        ssize_t n;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        text = malloc(MOST_CONFIG);
        if (!text)
                return -ENOMEM;
        n = pread(fd, text, MOST_CONFIG, 0);
        if (n <= 0)
                return 0;
        r = add_configured(top, text, (size_t) n, "core.hookspath", "", leads);
        return r < 0 ? r : add_configured(top, text, (size_t) n, "include.path", ".git", leads);
}

int leads_find(const struct review_pair *pair, char ***ret) {
        _cleanup_(strv_freep) char **leads = NULL;
        const char *top = review_top(pair);
        _cleanup_(closep) int folder = open(top, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r;

        if (folder < 0)
                return -errno;
        r = add_links(top, folder, &leads);
        if (r >= 0)
                r = add_config(top, folder, &leads);
        if (r < 0)
                return r;
        *ret = take_ptr(leads);
        return 0;
}
