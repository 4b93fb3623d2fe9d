/* Judging what is staged; see staged.h.
 *
 * A file of the tree that is held can come by the index: `git restore`, `git stash` and `git reset --hard` write what
 * is staged, and `.gitattributes` is read from the index where the tree has none. So each entry that the host's index
 * does not have with the same mode and object is judged as its file would be. What commits contain is not examined:
 * that is written when a person checks it out. */
#include "staged.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "gitconfig.h"
#include "gitindex.h"
#include "leads.h"
#include "names.h"
#include "vcs.h"

#define MOST_INDEX ((size_t) 128 << 20)
#define MOST_TEXT ((size_t) 64 << 20)
#define MODE_GITLINK 0160000

struct staged {
        struct staged *next;
        char *repository;
        const char *file; /* the name of the one that is at fault */
        char *why;
};

void staged_done(struct protect *p) {
        for (struct staged *s = p->staged, *next; s; s = next) {
                next = s->next;
                free(s->repository);
                free(s->why);
                free(s);
        }
        p->staged = NULL;
}

/* 1, 0 if there is none, or -errno. */
static int read_side(struct protect *p, enum protect_side side, const char *path, size_t most, char **ret,
                     size_t *ret_len) {
        struct stat st;
        int r = protect_stat(p, side, path, &st);

        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        if (r >= 0)
                r = p->tree->read_file(p->tree->user, side, path, most, ret, ret_len);
        if (r < 0)
                return r;
        return *ret_len < most ? 1 : -EFBIG;
}

/* The path that a small file of the host's repository holds; NULL if there is none. */
static int read_pointer(struct protect *p, const char *repository, const char *name, char **ret) {
        _cleanup_(freep) char *path = protect_join(repository, name), *text = NULL, *line = NULL;
        size_t len = 0;
        int r = path ? read_side(p, PROTECT_HOST, path, PATH_MAX, &text, &len) : -ENOMEM;

        if (r <= 0)
                return r == -ENOMEM ? r : 0;
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
                len--;
        line = strndup(text, len);
        if (!line)
                return -ENOMEM;
        return line[0] ? path_make_absolute(line, repository, ret) : 0;
}

struct settings {
        size_t id_size; /* of an object id */
        char *worktree; /* the directory whose files the repository holds */
};

/* As the host has it: where a linked worktree is, and what the configuration of the repository says. */
static int find_settings(struct protect *p, const char *repository, struct settings *ret) {
        _cleanup_(freep) char *common = NULL, *link = NULL, *path = NULL, *text = NULL;
        _cleanup_(strv_freep) char **keys = NULL;
        size_t len = 0;
        int r = read_pointer(p, repository, "commondir", &common);

        ret->id_size = 20;
        if (r >= 0)
                r = read_pointer(p, repository, "gitdir", &link);
        if (r < 0)
                return r;
        path = protect_join(common ? common : repository, "config");
        r = path ? read_side(p, PROTECT_HOST, path, MOST_TEXT, &text, &len) : -ENOMEM;
        if (r > 0)
                r = gitconfig_list(text, len, &keys);
        if (r == -ENOMEM)
                return r;
        for (char **k = keys; k && *k; k++) {
                const char *value = strchr(*k, '=');
                bool is_format = startswith(*k, "extensions.objectformat="), is_tree = startswith(*k, "core.worktree=");
                _cleanup_(freep) char *plain = value && (is_format || is_tree) ? gitconfig_unquote(value + 1) : NULL;

                if (!value || (!is_format && !is_tree))
                        continue;
                if (!plain)
                        return -ENOMEM;
                if (is_format)
                        ret->id_size = strcasecmp(plain, "sha256") == 0 ? 32 : 20;
                else if (!link && !common && plain[0]) {
                        free(ret->worktree);
                        ret->worktree = NULL;
                        r = path_make_absolute(plain, repository, &ret->worktree);
                        if (r < 0)
                                return r;
                }
        }
        if (ret->worktree)
                return 0;
        if (link)
                return path_dirname(link, &ret->worktree);
        if (strcasecmp(path_basename(repository), ".git") == 0)
                return path_dirname(repository, &ret->worktree);
        ret->worktree = strdup(p->tree->top);
        return ret->worktree ? 0 : -ENOMEM;
}

struct comparison {
        struct protect *p;
        const char *worktree;
        char *why;
};

/* 1: it is one that the host would run, or be led by. */
static int is_protected(struct protect *p, const struct gitindex_entry *e, const char *path) {
        struct protect_change c = {.path = path, .new_mode = e->mode == MODE_GITLINK ? S_IFDIR : e->mode};
        _cleanup_(freep) char *why = NULL;
        const char *pattern;
        size_t repository;
        bool inside;
        int r;

        if (names_is_odd(e->name) || streq(path_basename(e->name), "HEAD")) /* of a repository in the tree */
                return 1;
        r = vcs_judge(p, &c, &why, &inside, &repository);
        if (r < 0 || why)
                return r < 0 ? r : 1;
        switch (protect_find_name(p, path, false, &pattern)) {
        case NAMES_EXACT:
        case NAMES_ABOVE:
                return 1;
        default:
                break;
        }
        r = leads_find(p);
        if (r >= 0)
                r = leads_find_above(p, path);
        return r < 0 ? r : leads_match(p, path, e->mode, false) != NULL;
}

static int judge_entry(void *user, const struct gitindex_entry *now, const struct gitindex_entry *before, bool same) {
        struct comparison *c = user;
        _cleanup_(freep) char *path = NULL;
        int r;

        if ((now->assumed && !(before && before->assumed)) || (now->skipped && !(before && before->skipped)))
                return asprintf(&c->why, "it hides changes of %s from git status (%s)", now->name,
                                now->skipped && !(before && before->skipped) ? "skip-worktree" : "assume-unchanged") < 0
                               ? -ENOMEM
                               : 1;
        if (same)
                return 0;
        if (S_ISDIR(now->mode))
                return asprintf(&c->why, "it stages %s, a directory that cannot be examined", now->name) < 0 ? -ENOMEM
                                                                                                             : 1;
        path = protect_join(c->worktree, now->name);
        if (!path)
                return -ENOMEM;
        r = is_protected(c->p, now, path);
        if (r <= 0)
                return r;
        return asprintf(&c->why, "it stages %s, which the host would obey; unstage it in the box", now->name) < 0
                       ? -ENOMEM
                       : 1;
}

static int say(const char *text, char **ret) {
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

static int judge_index(struct protect *p, const char *repository, char **ret) {
        _cleanup_(freep) char *path = protect_join(repository, "index"), *now = NULL, *before = NULL;
        size_t now_len = 0, before_len = 0;
        struct gitindex index, old;
        struct settings settings = {0};
        _cleanup_(freep) char *worktree = NULL;
        struct comparison c = {.p = p};
        int r = path ? read_side(p, PROTECT_FINAL, path, MOST_INDEX, &now, &now_len) : -ENOMEM, of_host;

        if (r == 0 || r == -ENOMEM)
                return r;
        if (r < 0)
                return say(r == -EFBIG ? "it is too large to be examined" : "it cannot be read", ret);
        of_host = read_side(p, PROTECT_HOST, path, MOST_INDEX, &before, &before_len);
        if (of_host == -ENOMEM)
                return of_host;
        if (of_host > 0 && now_len == before_len && memcmp(now, before, now_len) == 0)
                return 0;
        r = find_settings(p, repository, &settings);
        worktree = settings.worktree;
        if (r < 0)
                return r;
        r = gitindex_open(now, now_len, settings.id_size, &index);
        if (r == -EBADMSG)
                return say("it cannot be examined (damaged, or split)", ret);
        if (r < 0)
                return r;
        if (of_host > 0)
                of_host = gitindex_open(before, before_len, settings.id_size, &old) >= 0;
        c.worktree = worktree;
        r = gitindex_compare(of_host > 0 ? &old : NULL, &index, judge_entry, &c);
        *ret = c.why;
        return r < 0 ? r : 0;
}

/* The line at `at`, without its end; the place of the next one. */
static size_t next_line(const char *text, size_t len, size_t at, size_t *ret) {
        const char *end = memchr(text + at, '\n', len - at);

        *ret = end ? (size_t) (end - text) - at : len - at;
        return at + *ret + 1;
}

static bool has_line(const char *text, size_t text_len, const char *line, size_t len) {
        for (size_t at = 0, next, n; at < text_len; at = next) {
                next = next_line(text, text_len, at, &n);
                if (n == len && memcmp(text + at, line, len) == 0)
                        return true;
        }
        return false;
}

/* Objects that others take the place of: refs/replace, which may be packed. */
static int judge_packed(struct protect *p, const char *repository, char **ret) {
        _cleanup_(freep) char *path = protect_join(repository, "packed-refs"), *now = NULL, *before = NULL;
        size_t now_len = 0, before_len = 0;
        int r = path ? read_side(p, PROTECT_FINAL, path, MOST_TEXT, &now, &now_len) : -ENOMEM;

        if (r == 0 || r == -ENOMEM)
                return r;
        if (r < 0)
                return say("it cannot be read", ret);
        r = read_side(p, PROTECT_HOST, path, MOST_TEXT, &before, &before_len);
        if (r == -ENOMEM)
                return r;
        for (size_t at = 0, next, len; at < now_len; at = next) {
                next = next_line(now, now_len, at, &len);
                if (memmem(now + at, len, "refs/replace/", strlen("refs/replace/")) &&
                    !(r > 0 && has_line(before, before_len, now + at, len)))
                        return say("it replaces objects by others (refs/replace)", ret);
        }
        return 0;
}

static int judge_repository(struct protect *p, struct staged *s) {
        static const struct {
                const char *name;
                int (*judge)(struct protect *p, const char *repository, char **ret);
        } files[] = {{"index", judge_index}, {"packed-refs", judge_packed}};

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                int r = files[i].judge(p, s->repository, &s->why);

                if (r < 0)
                        return r;
                s->file = files[i].name;
                if (s->why)
                        break;
        }
        return 0;
}

static int find(struct protect *p, const char *path, size_t len, struct staged **ret) {
        struct staged *s;

        for (s = p->staged; s; s = s->next)
                if (strncmp(s->repository, path, len) == 0 && !s->repository[len]) {
                        *ret = s;
                        return 0;
                }
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->next = p->staged;
        p->staged = s;
        s->repository = strndup(path, len);
        *ret = s;
        return s->repository ? judge_repository(p, s) : -ENOMEM;
}

int staged_judge(struct protect *p, const char *path, size_t len, char **ret) {
        struct staged *s;
        const char *name;
        int r = find(p, path, len, &s);

        if (r < 0 || !s->why)
                return r;
        name = path_basename(s->repository);
        if (path[len] == '/' && streq(path + len + 1, s->file))
                *ret = strdup(s->why);
        else if (asprintf(ret, "%s is applied whole or not at all, and %s/%s is held: %s", name, name, s->file,
                          s->why) < 0)
                *ret = NULL;
        return *ret ? 0 : -ENOMEM;
}
