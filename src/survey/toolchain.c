/* See toolchain.h. A row's directory is the value of its variable, if the caller has that, else below the home. */
#include "toolchain.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"

static const char *const lines[] = {
#include "toolchains.h" /* made from data/toolchains */
};

#define MOST_TOOLCHAINS 64

/* The next word of a line, NULL at its end. */
static const char *next_word(const char **line, char *room, size_t size) {
        size_t n;

        *line += strspn(*line, " ");
        n = strcspn(*line, " ");
        if (!n || n >= size)
                return NULL;
        memcpy(room, *line, n);
        room[n] = 0;
        *line += n;
        return room;
}

static bool is_secret(const char *tail) {
        static const char *const secret[] = {".ssh",  ".gnupg",  ".aws",     ".azure",
                                             ".kube", ".docker", ".mozilla", ".password-store"};

        for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
                if (path_is_beneath(tail, secret[i]))
                        return true;
        return false;
}

bool toolchain_may_attach(const struct survey *s, const char *path) {
        /* Directories in which everything has a place, settings with secrets among them. */
        static const char *const crowded[] = {".local", ".local/share", ".local/state", ".var", ".var/app"};
        const char *tail;

        if (!s->home || !path_is_beneath(path, s->home) || streq(path, s->home))
                return false;
        tail = path_tail(path, s->home) + 1;
        if (is_secret(tail) || path_is_beneath(tail, ".config") || path_is_beneath(tail, ".cache"))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(crowded); i++)
                if (streq(tail, crowded[i]))
                        return false;
        for (char **own = s->own_folders; own && *own; own++)
                if (path_is_beneath(*own, path) || path_is_beneath(path, *own))
                        return false;
        return true;
}

static struct toolchain_fact *grow(struct survey *s) {
        struct toolchain_fact *grown = reallocarray(s->toolchains, s->n_toolchains + 1, sizeof(*grown));

        if (!grown)
                return NULL;
        s->toolchains = grown;
        grown[s->n_toolchains] = (struct toolchain_fact){0};
        return &grown[s->n_toolchains];
}

int toolchain_add(struct survey *s, const char *path) {
        struct toolchain_fact *t;
        int r;

        for (size_t i = 0; i < s->n_toolchains; i++)
                if (!s->toolchains[i].link && path_is_beneath(path, s->toolchains[i].path))
                        return 0;
        if (s->n_toolchains >= MOST_TOOLCHAINS ||
            (path_is_beneath(path, s->home) && !streq(path, s->home) && is_secret(path_tail(path, s->home) + 1)))
                return 0;
        t = grow(s);
        if (!t)
                return -ENOMEM;
        r = survey_look_at(path, &t->fact);
        if (r < 0)
                return r;
        /* What it is in the end counts as well: a link there could lead to anything. */
        if (!t->fact.real || (t->fact.type != S_IFDIR && t->fact.type != S_IFREG) ||
            (s->home_fact.real && path_is_beneath(s->home_fact.real, t->fact.real))) {
                free(t->fact.real);
                return 0;
        }
        for (char **own = s->own_folders; own && *own; own++)
                if (path_is_beneath(*own, t->fact.real) || path_is_beneath(t->fact.real, *own)) {
                        free(t->fact.real);
                        return 0;
                }
        t->path = strdup(path);
        s->n_toolchains++;
        return t->path ? 0 : -ENOMEM;
}

int toolchain_add_link(struct survey *s, const char *path, const char *text) {
        struct toolchain_fact *t;

        for (size_t i = 0; i < s->n_toolchains; i++)
                if (path_is_beneath(path, s->toolchains[i].path))
                        return 0;
        if (s->n_toolchains >= MOST_TOOLCHAINS)
                return 0;
        t = grow(s);
        if (!t)
                return -ENOMEM;
        t->path = strdup(path);
        t->link = strdup(text);
        s->n_toolchains++;
        return t->path && t->link ? 0 : -ENOMEM;
}

/* Where a row's directory is: *ret_moved reports that it comes from the caller's variable. NULL: nowhere. */
static int locate(const struct survey *s, const char *variable, const char *directory, char **ret, bool *ret_moved) {
        const char *set = streq(variable, "-") ? NULL : strv_find_assignment(s->env, variable);
        int r;

        *ret_moved = false;
        if (set && set[0] == '/') {
                r = path_make_absolute(set, NULL, ret);
                if (r < 0)
                        return r;
                *ret_moved = path_is_beneath(*ret, s->home) && !streq(*ret, s->home);
                if (*ret_moved)
                        return 0;
                free(*ret);
                *ret = NULL;
        }
        return asprintf(ret, "%s/%s", s->home, directory) < 0 ? -ENOMEM : 0;
}

/* Whether a box gets to read parts of the row's directory instead of all of it. */
static bool has_parts(const char *rest) {
        char word[256];
        const char *part;

        while ((part = next_word(&rest, word, sizeof(word))))
                if (part[0] != '~')
                        return true;
        return false;
}

/* The parts of a row; `path` is attached only where one of them shows it. */
static int attach_row(struct survey *s, const char *line, const char *directory, const char *path) {
        char word[256];
        const char *rest = line, *name;
        bool covered = false, parts = false;

        while ((name = next_word(&rest, word, sizeof(word)))) {
                _cleanup_(freep) char *part = NULL;

                if (name[0] == '~')
                        continue;
                parts = true;
                if (asprintf(&part, "%s/%s", directory, name) < 0)
                        return -ENOMEM;
                covered = covered || path_is_beneath(path, part);
        }
        if (parts && !covered)
                return 0;
        if (!parts && toolchain_add(s, directory) < 0)
                return -ENOMEM;
        rest = line;
        while ((name = next_word(&rest, word, sizeof(word)))) {
                _cleanup_(freep) char *part = NULL;
                size_t n = s->n_toolchains;

                if (asprintf(&part, "%s/%s", name[0] == '~' ? s->home : directory, name[0] == '~' ? name + 2 : name) <
                            0 ||
                    toolchain_add(s, part) < 0)
                        return -ENOMEM;
                if (s->n_toolchains > n)
                        s->toolchains[n].with_home = name[0] == '~' && s->toolchains[n].fact.type == S_IFREG;
        }
        return 1;
}

/* The variable that moved a toolchain is the box's too, or its programs would look for it in the home. */
static int keep_variable(struct survey *s, const char *variable) {
        return strv_set_assignment(&s->tool_env, variable, strv_find_assignment(s->env, variable));
}

/* Without a variable their programs would look for these in the box's home. */
int toolchain_name_directories(struct survey *s) {
        int r = 0;

        for (size_t i = 0; r >= 0 && s->home && i < ARRAY_SIZE(lines); i++) {
                _cleanup_(freep) char *directory = NULL;
                char variable[64], name[128];
                const char *rest = lines[i];
                bool moved;

                if (!next_word(&rest, variable, sizeof(variable)) || streq(variable, "-") ||
                    !next_word(&rest, name, sizeof(name)) || has_parts(rest))
                        continue;
                r = locate(s, variable, name, &directory, &moved);
                for (size_t k = 0; r >= 0 && k < s->n_toolchains; k++)
                        if (!s->toolchains[k].link && !s->toolchains[k].cache &&
                            path_is_beneath(directory, s->toolchains[k].path)) {
                                r = strv_set_assignment(&s->tool_env, variable, directory);
                                break;
                        }
        }
        return r;
}

int toolchain_attach(struct survey *s, const char *path) {
        if (!s->home)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                _cleanup_(freep) char *directory = NULL;
                char variable[64], name[128];
                const char *rest = lines[i];
                bool moved;
                int r;

                if (!next_word(&rest, variable, sizeof(variable)) || !next_word(&rest, name, sizeof(name)))
                        continue;
                r = locate(s, variable, name, &directory, &moved);
                if (r < 0)
                        return r;
                if (!path_is_beneath(path, directory))
                        continue;
                r = attach_row(s, rest, directory, path);
                if (r > 0 && moved && !strchr(rest, ' ') && keep_variable(s, variable) < 0)
                        return -ENOMEM;
                if (r != 0)
                        return r;
        }
        return 0;
}
