/* Paths as text; see path.h. */
#include "path.h"

#include <errno.h>
#include <stdio.h>

#include "macro.h"

/* Removes "//", "/./" and "/../" in place. A ".." at the root stays at the root, as in the kernel. */
static void normalise(char *path) {
        char *out = path;
        const char *in = path;

        while (*in) {
                size_t n;

                while (*in == '/')
                        in++;
                n = strcspn(in, "/");
                if (n == 0)
                        break;
                if (n == 1 && in[0] == '.') {
                        in += n;
                        continue;
                }
                if (n == 2 && in[0] == '.' && in[1] == '.') {
                        while (out > path && *--out != '/')
                                ;
                        in += n;
                        continue;
                }
                *out++ = '/';
                memmove(out, in, n);
                out += n;
                in += n;
        }
        if (out == path)
                *out++ = '/';
        *out = 0;
}

int path_make_absolute(const char *path, const char *base, char **ret) {
        char *joined = NULL;

        if (path[0] == '/')
                joined = strdup(path);
        else if (!base || base[0] != '/')
                return -EINVAL;
        else if (asprintf(&joined, "%s/%s", base, path) < 0)
                joined = NULL;
        if (!joined)
                return -ENOMEM;
        normalise(joined);
        *ret = joined;
        return 0;
}

bool path_is_beneath(const char *path, const char *root) {
        size_t n = 0;

        if (streq(root, "/"))
                return path[0] == '/';
        while (root[n] && path[n] == root[n])
                n++;
        return !root[n] && (path[n] == '/' || path[n] == 0);
}

const char *path_tail(const char *path, const char *root) {
        if (streq(root, "/"))
                return streq(path, "/") ? "" : path;
        return path + strlen(root);
}

/* In place: mountinfo writes space, tab, newline and backslash as \\ooo. */
static void unescape_octal(char *s) {
        char *out = s;

        for (; *s; s++)
                if (s[0] == '\\' && s[1] && s[2] && s[3]) {
                        *out++ = (char) ((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
                        s += 3;
                } else
                        *out++ = *s;
        *out = 0;
}

char *path_next_mount(char **mountinfo, unsigned long long *ret_id) {
        for (char *line; (line = strsep(mountinfo, "\n"));) {
                unsigned long long id = strtoull(line, NULL, 10);
                char *path = NULL;
                int field;

                for (field = 0; line && field < 5; field++)
                        path = strsep(&line, " ");
                if (field < 5)
                        continue;
                unescape_octal(path);
                if (ret_id)
                        *ret_id = id;
                return path;
        }
        return NULL;
}

const char *path_basename(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

int path_dirname(const char *path, char **ret) {
        const char *slash = strrchr(path, '/');
        char *dir;

        if (!slash)
                dir = strdup(".");
        else if (slash == path)
                dir = strdup("/");
        else
                dir = strndup(path, (size_t) (slash - path));
        if (!dir)
                return -ENOMEM;
        *ret = dir;
        return 0;
}
