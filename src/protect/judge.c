/* Judging changes; see protect.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "gitconfig.h"
#include "hgundo.h"
#include "internal.h"
#include "leads.h"
#include "names.h"
#include "staged.h"
#include "vcs.h"

#define MOST_LINKS 40
#define MOST_CONFIG ((size_t) 16 << 20)
#define MOST_VERSIONS ((size_t) 64 << 10)

char *protect_join(const char *directory, const char *name) {
        char *path;

        if (asprintf(&path, "%s/%s", streq(directory, "/") ? "" : directory, name) < 0)
                return NULL;
        return path;
}

int protect_stat(const struct protect *p, enum protect_side side, const char *path, struct stat *ret) {
        return p->tree->stat(p->tree->user, side, path, ret);
}

int protect_new(const struct protect_tree *tree, struct protect **ret) {
        struct protect *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->tree = tree;
        *ret = p;
        return 0;
}

void protect_free(struct protect *p) {
        if (!p)
                return;
        vcs_done(p);
        leads_done(p);
        staged_done(p);
        free(p);
}

int protect_resolve(const struct protect *p, enum protect_side side, const char *path, char ***links, char **ret) {
        _cleanup_(freep) char *todo = strdup(path), *done = strdup("/");
        unsigned followed = 0;

        while (done && todo && *todo) {
                _cleanup_(freep) char *name = NULL, *rest = NULL, *next = NULL, *target = NULL;
                const char *at = todo + strspn(todo, "/");
                size_t n = path_name_length(at);
                struct stat st;

                if (n == 0)
                        break;
                name = strndup(at, n);
                rest = strdup(at + n);
                if (!name || !rest || path_make_absolute(name, done, &next) < 0)
                        return -ENOMEM;
                if (streq(name, "..") || streq(name, ".") || followed >= MOST_LINKS ||
                    protect_stat(p, side, next, &st) < 0 || !S_ISLNK(st.st_mode) ||
                    p->tree->read_link(p->tree->user, side, next, &target) < 0) {
                        free(done);
                        done = take_ptr(next);
                        free(todo);
                        todo = take_ptr(rest);
                        continue;
                }
                if (links && strv_push(links, next) < 0)
                        return -ENOMEM;
                followed++;
                free(todo);
                todo = protect_join(target, rest + (rest[0] == '/'));
                if (target[0] == '/') {
                        free(done);
                        done = strdup("/");
                }
        }
        if (!done || !todo)
                return -ENOMEM;
        *ret = take_ptr(done);
        return 0;
}

static int decide(struct protect_verdict *ret, enum protect_kind kind, const char *format, ...) _printf_(3, 4);

static int decide(struct protect_verdict *ret, enum protect_kind kind, const char *format, ...) {
        va_list args;
        char *reason = NULL;
        int n;

        va_start(args, format);
        n = vasprintf(&reason, format, args);
        va_end(args);
        if (n < 0)
                return -ENOMEM;
        text_clean_in_place(reason);
        free(ret->reason);
        *ret = (struct protect_verdict){.kind = kind, .reason = reason};
        return 0;
}

static bool is_git_config(const char *path) {
        static const char *const names[] = {"config", "config.worktree", ".gitconfig", ".gitmodules", ".lfsconfig"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcasecmp(path_basename(path), names[i]) == 0)
                        return true;
        return false;
}

/* Held, with what a git configuration would run. */
static int hold(struct protect *p, const struct protect_change *c, const char *why, struct protect_verdict *ret) {
        _cleanup_(freep) char *now = NULL, *before = NULL, *keys = NULL;
        size_t now_len = 0, before_len = 0;
        int r;

        if (!S_ISREG(c->new_mode) || !is_git_config(c->path))
                return decide(ret, PROTECT_HELD, "%s", why);
        r = p->tree->read_file(p->tree->user, PROTECT_FINAL, c->path, MOST_CONFIG, &now, &now_len);
        if (r == -ENOMEM)
                return r;
        if (r < 0 || now_len >= MOST_CONFIG)
                return decide(ret, PROTECT_HELD, "%s; too large to be examined", why);
        r = p->tree->read_file(p->tree->user, PROTECT_HOST, c->path, MOST_CONFIG, &before, &before_len);
        if (r == -ENOMEM)
                return r;
        r = gitconfig_find_programs(now, now_len, before, before_len, &keys);
        if (r < 0)
                return r;
        if (keys)
                return decide(ret, PROTECT_HELD, "%s; keys that run programs: %s", why, keys);
        return decide(ret, PROTECT_HELD, "%s; no new key that runs programs", why);
}

static size_t root_of(const struct protect *p, const char *path) {
        return streq(p->tree->top, "/") || !path_is_beneath(path, p->tree->top) ? 0 : strlen(p->tree->top);
}

/* By the policy's own lists, which are relative to the top. */
static enum names_match listed(const struct protect *p, char *const *list, const char *path, const char **ret) {
        const char *tail = root_of(p, path) ? path_tail(path, p->tree->top) : "";

        return tail[0] ? names_listed(list, tail + 1, ret) : NAMES_NONE;
}

enum names_match protect_find_name(const struct protect *p, const char *path, bool directory, const char **ret) {
        enum names_match found = names_find(path, root_of(p, path), directory, ret), own;
        const char *name = NULL;

        if (found == NAMES_EXACT && listed(p, p->tree->unprotect, path, &name) == NAMES_EXACT)
                found = NAMES_NONE;
        own = listed(p, p->tree->protect, path, &name);
        if (own == NAMES_NONE || found == NAMES_EXACT)
                return found;
        *ret = name;
        return own;
}

/* Why a link must not lead to a path; NULL if it may. */
static int judge_target(struct protect *p, const char *path, const char **ret) {
        const char *pattern;
        bool inside = false;
        int r;

        if (streq(path, p->tree->top))
                return 0;
        r = vcs_contains(p, path, &inside);
        if (r < 0)
                return r;
        if (inside)
                *ret = "version control data";
        else if (protect_find_name(p, path, false, &pattern) != NAMES_NONE)
                *ret = pattern;
        else if (leads_match(p, path, 0, true))
                *ret = "a path that the host points to";
        return 0;
}

static int judge_link(struct protect *p, const struct protect_change *c, struct protect_verdict *ret) {
        _cleanup_(freep) char *target = NULL, *directory = NULL, *written = NULL, *led = NULL;
        const char *why = NULL;
        int r = p->tree->read_link(p->tree->user, PROTECT_FINAL, c->path, &target);

        if (r < 0)
                return r;
        r = path_dirname(c->path, &directory);
        if (r < 0)
                return r;
        r = path_make_absolute(target, directory, &written);
        if (r < 0)
                return r;
        r = protect_resolve(p, PROTECT_FINAL, c->path, NULL, &led);
        if (r < 0)
                return r;
        r = judge_target(p, led, &why);
        if (r >= 0 && !why)
                r = judge_target(p, written, &why);
        if (r < 0)
                return r;
        if (why)
                return decide(ret, PROTECT_HELD, "a link that leads to a protected name (%s)", why);
        if (!path_is_beneath(led, p->tree->top))
                return decide(ret, PROTECT_NOTICED, "a link that leads out of the directory");
        return 0;
}

static const char *special_name(mode_t mode) {
        return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Whether a file that chooses versions of programs names one by its path (`node path:./x`), which needs no other file.
 * 1, 0 or -ENOMEM. */
static int chooses_path(struct protect *p, const struct protect_change *c, const char *pattern) {
        _cleanup_(freep) char *text = NULL, *copy = NULL;
        char *next, *line;
        size_t len = 0;
        int r;

        if (!strstr(pattern, "version") && !streq(pattern, ".nvmrc") && !streq(pattern, ".sdkmanrc"))
                return 0;
        r = S_ISREG(c->new_mode) ? p->tree->read_file(p->tree->user, PROTECT_FINAL, c->path, MOST_VERSIONS, &text, &len)
                                 : 0;
        copy = r < 0 ? NULL : strndup(text ? text : "", len);
        if (r == -ENOMEM || (r >= 0 && !copy))
                return -ENOMEM;
        if (r < 0 || len >= MOST_VERSIONS || strlen(copy) < len)
                return 1;
        for (next = copy; (line = strsep(&next, "\r\n"));) {
                line[strcspn(line, "#")] = '\0';
                for (char *word; (word = strsep(&line, " \t="));)
                        if (word[0] == '/' || word[0] == '~' || word[0] == '.' || strstr(word, "path:") ||
                            strstr(word, ".."))
                                return 1;
        }
        return 0;
}

/* By the names on the way. A deletion of something above a protected name takes nothing away that was not judged by
 * itself. */
static int judge_name(struct protect *p, const struct protect_change *c, bool directory, struct protect_verdict *ret) {
        const char *pattern;
        _cleanup_(freep) char *why = NULL;
        int r;

        switch (protect_find_name(p, c->path, directory, &pattern)) {
        case NAMES_EXACT:
                if (asprintf(&why, "protected name (%s)", pattern) < 0)
                        return -ENOMEM;
                return hold(p, c, why, ret);
        case NAMES_ABOVE:
                if (!c->new_mode || S_ISDIR(c->new_mode))
                        return 0;
                return decide(ret, PROTECT_HELD, "not a directory, but protected names may lie in it (%s)", pattern);
        case NAMES_NOTED:
                r = chooses_path(p, c, pattern);
                if (r != 0)
                        return r < 0 ? r : decide(ret, PROTECT_HELD, "chooses a program by its path (%s)", pattern);
                return decide(ret, PROTECT_NOTICED, "read as instructions or settings on the host (%s)", pattern);
        default:
                return 0;
        }
}

int protect_judge(struct protect *p, const struct protect_change *c, struct protect_verdict *ret) {
        bool directory = (!c->old_mode || S_ISDIR(c->old_mode)) && (!c->new_mode || S_ISDIR(c->new_mode));
        struct protect_verdict verdict = {0};
        _cleanup_(freep) char *why = NULL, *staged = NULL;
        const char *lead;
        size_t repository;
        bool inside;
        int r;

        *ret = verdict;
        if (c->new_mode && !S_ISDIR(c->new_mode) && !S_ISREG(c->new_mode) && !S_ISLNK(c->new_mode))
                return decide(ret, PROTECT_NEVER, "%s is never applied", special_name(c->new_mode));
        r = vcs_judge(p, c, &why, &inside, &repository);
        if (r < 0)
                return r;
        if (why)
                return hold(p, c, why, ret);
        if (repository > 0)
                r = staged_judge(p, c->path, repository, &staged);
        else if (inside && S_ISREG(c->new_mode) && hgundo_is(c->path))
                r = hgundo_judge(p, c->path, &staged);
        if (r < 0)
                return r;
        if (staged)
                return decide(ret, PROTECT_HELD, "%s", staged);
        if (!inside) {
                r = judge_name(p, c, directory, ret);
                if (r < 0 || ret->kind == PROTECT_HELD)
                        return r;
        }
        if (S_ISREG(c->new_mode) && (c->new_mode & (S_ISUID | S_ISGID)))
                return decide(ret, PROTECT_HELD, "a program that runs with its %s's rights",
                              c->new_mode & S_ISUID ? "owner" : "group");
        r = leads_find(p);
        if (r >= 0)
                r = leads_find_above(p, c->path);
        if (r < 0)
                return r;
        lead = inside ? NULL : leads_match(p, c->path, c->new_mode ? c->new_mode : c->old_mode, directory);
        if (lead)
                return hold(p, c, lead, ret);
        return S_ISLNK(c->new_mode) ? judge_link(p, c, ret) : 0;
}
