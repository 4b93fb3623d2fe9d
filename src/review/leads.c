/* Where protected names lead; see leads.h. A look at some hundred names at the top of the folder, once for each review.
 */
#include "leads.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "gitconfig.h"
#include "protected.h"
#include "tree.h"

#define MOST_CONFIG ((size_t) 1024 * 1024)

static int add(const struct review_pair *pair, const char *path, char ***leads) {
        char resolved[PATH_MAX];

        if (realpath(path, resolved) && path_is_beneath(resolved, pair->host_path) && !streq(resolved, pair->host_path))
                return strv_push(leads, resolved);
        return 0;
}

static bool is_by_link(int lower, const char *path) {
        _cleanup_(closep) int fd = tree_open(lower, path, O_PATH);
        struct stat st;

        return fd == -ELOOP || (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode));
}

static int add_links(const struct review_pair *pair, char ***leads) {
        const char *pattern;

        for (size_t i = 0; (pattern = protected_pattern(i)); i++) {
                size_t n = strlen(pattern);
                _cleanup_(freep) char *name = NULL, *path = NULL;
                int r;

                if (n > 3 && streq(pattern + n - 3, "/**"))
                        n -= 3;
                name = strndup(pattern, n);
                path = name ? tree_join(pair->host_path, name) : NULL;
                if (!path)
                        return -ENOMEM;
                if (strchr(name, '*') || !is_by_link(pair->lower, name))
                        continue;
                r = add(pair, path, leads);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* `from`: the folder that a relative value starts at. */
static int add_configured(const struct review_pair *pair, const char *text, size_t len, const char *key,
                          const char *from, char ***leads) {
        _cleanup_(freep) char *value = NULL, *folder = NULL, *path = NULL;
        int r = gitconfig_get(text, len, key, &value);

        if (r < 0 || !value || !value[0] || value[0] == '~')
                return r;
        folder = tree_join(pair->host_path, from);
        path = !folder ? NULL : value[0] == '/' ? strdup(value) : tree_join(folder, value);
        return path ? add(pair, path, leads) : -ENOMEM;
}

static int add_config(const struct review_pair *pair, char ***leads) {
        _cleanup_(closep) int fd = tree_open_file(pair->lower, ".git/config");
        _cleanup_(freep) char *text = NULL;
        ssize_t n;
        int r;

        if (fd < 0)
                return 0;
        text = malloc(MOST_CONFIG);
        if (!text)
                return -ENOMEM;
        n = pread(fd, text, MOST_CONFIG, 0);
        if (n <= 0)
                return 0;
        r = add_configured(pair, text, (size_t) n, "core.hookspath", "", leads);
        return r < 0 ? r : add_configured(pair, text, (size_t) n, "include.path", ".git", leads);
}

int leads_find(const struct review_pair *pair, char ***ret) {
        _cleanup_(strv_freep) char **leads = NULL;
        int r = add_links(pair, &leads);

        if (r >= 0)
                r = add_config(pair, &leads);
        if (r < 0)
                return r;
        *ret = take_ptr(leads);
        return 0;
}
