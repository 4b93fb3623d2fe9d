/* Version control directories; see vcs.h.
 *
 * git takes any directory for a repository that has HEAD, objects and refs, or HEAD and commondir, and then obeys its
 * `config` and `hooks`. It requires little more than that these names exist: links suffice, and so does a file in the
 * place of `objects`. So only names are checked here, and a name that either side has counts, because a partial apply,
 * or several of them, can combine the two.
 *
 * Where the host has such a directory already, it is treated as `.git` is: what git updates all the time may change
 * (data/protected, `allow`), all else is held, and links are never fine. If it does not, none is created. A directory
 * with a separate `.git` inside a repository is a checkout (a bare repository with its worktrees in it), and not part
 * of that repository. */
#include "vcs.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>

#include "../base/path.h"
#include "names.h"

/* What is known about a directory. */
struct directory {
        char *path;
        bool host_repository, any_repository, checkout;
        bool asked, looked; /* by vcs_is_new_repository(), and vcs_is_first_look() */
};

static int compare(const void *a, const void *b) {
        return strcmp(((const struct directory *) a)->path, ((const struct directory *) b)->path);
}

static void directory_free(void *p) {
        struct directory *d = p;

        free(d->path);
        free(d);
}

void vcs_done(struct protect *p) {
        tdestroy(p->directories, directory_free);
        p->directories = NULL;
}

static bool has(const struct protect *p, enum protect_side side, const char *directory, const char *name) {
        _cleanup_(freep) char *path = protect_join(directory, name);
        struct stat st;

        return path && protect_stat(p, side, path, &st) >= 0;
}

bool vcs_is_repository(const struct protect *p, enum protect_side side, const char *d) {
        return has(p, side, d, "HEAD") &&
               (has(p, side, d, "commondir") || (has(p, side, d, "objects") && has(p, side, d, "refs")));
}

static bool either_has(const struct protect *p, const char *directory, const char *name) {
        return has(p, PROTECT_FINAL, directory, name) || has(p, PROTECT_HOST, directory, name);
}

static int look_at(struct protect *p, const char *path, size_t len, struct directory **ret) {
        struct directory *d = calloc(1, sizeof(*d)), **found;

        if (!d)
                return -ENOMEM;
        d->path = len > 0 ? strndup(path, len) : strdup("/");
        found = d->path ? tsearch(d, &p->directories, compare) : NULL;
        if (!found) {
                directory_free(d);
                return -ENOMEM;
        }
        *ret = *found;
        if (*found != d) {
                directory_free(d);
                return 0;
        }
        d->host_repository = vcs_is_repository(p, PROTECT_HOST, d->path);
        d->any_repository =
                d->host_repository || (either_has(p, d->path, "HEAD") &&
                                       (either_has(p, d->path, "commondir") ||
                                        (either_has(p, d->path, "objects") && either_has(p, d->path, "refs"))));
        d->checkout = has(p, PROTECT_HOST, d->path, ".git");
        return 0;
}

bool vcs_is_new_repository(struct protect *p, const char *path, size_t len) {
        struct directory *d;

        if (look_at(p, path, len, &d) < 0 || d->asked)
                return false;
        d->asked = true;
        return d->checkout || d->host_repository;
}

bool vcs_is_first_look(struct protect *p, const char *path, size_t len) {
        struct directory *d;

        if (look_at(p, path, len, &d) < 0 || d->looked)
                return false;
        d->looked = true;
        return true;
}

/* Names that make a directory a repository. */
static bool is_mark(const char *name, size_t len) {
        static const char *const marks[] = {"HEAD", "objects", "refs", "commondir"};

        for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
                if (strlen(marks[i]) == len && strncasecmp(name, marks[i], len) == 0)
                        return true;
        return false;
}

struct place {
        const char *vcs;   /* whose rules hold, as data/protected names it; NULL: outside */
        const char *tail;  /* the rest of the path in that directory, without a slash; "" for itself */
        bool on_host;      /* the host has a repository there */
        size_t repository; /* the length of the path of git's directory of the host, 0: none */
        bool made;         /* a directory on the way would become a repository by this path */
};

/* Names that are git's own in a repository. */
static bool is_own(const char *name, size_t len) {
        static const char *const steering[] = {"hooks",   "config",    "config.worktree", "commondir", "gitdir",
                                               "modules", "worktrees", "rebase-merge",    "sequencer", "rebase-apply"};
        _cleanup_(freep) char *copy = strndup(name, len);

        for (size_t i = 0; copy && i < ARRAY_SIZE(steering); i++)
                if (strcasecmp(copy, steering[i]) == 0)
                        return true;
        return !copy || names_allowed(names_vcs(".git", 4), copy) != NAMES_NONE;
}

/* Whether the host uses a directory of such a name already. */
static bool is_used(const struct protect *p, const char *path, size_t len, const char *vcs) {
        _cleanup_(freep) char *directory = strndup(path, len);
        struct stat st;

        if (!directory)
                return false;
        if (startswith(vcs, ".git/"))
                return vcs_is_repository(p, PROTECT_HOST, directory);
        return protect_stat(p, PROTECT_HOST, directory, &st) >= 0 && S_ISDIR(st.st_mode);
}

/* Goes down the directories of a path, the outermost first: the innermost decides. */
static int find_place(struct protect *p, const char *path, struct place *ret) {
        size_t top = streq(p->tree->top, "/") ? 0 : strlen(p->tree->top);
        struct place place = {0};

        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                const char *name = slash + 1, *end = name + path_name_length(name);
                size_t len = (size_t) (end - name), above = (size_t) (slash - path);
                const char *vcs = names_vcs(name, len);
                struct directory *d;
                int r = look_at(p, path, above, &d);

                if (r < 0)
                        return r;
                if (d->any_repository && !d->host_repository && above >= top && is_mark(name, len))
                        place.made = true;
                if (d->checkout) {
                        place.vcs = NULL;
                        place.repository = 0;
                }
                /* A checkout may look like a repository, and worktrees may lie in one: only git's own names count. */
                if (d->host_repository && ((above >= top && !d->checkout) || is_own(name, len))) {
                        place.vcs = names_vcs(".git", 4);
                        place.tail = name;
                        place.on_host = true;
                        place.repository = above;
                }
                if (!vcs)
                        continue;
                place.vcs = vcs;
                place.tail = *end ? end + 1 : end;
                place.on_host = is_used(p, path, (size_t) (end - path), vcs);
                place.repository = place.on_host && startswith(vcs, ".git/") ? (size_t) (end - path) : 0;
        }
        *ret = place;
        return 0;
}

int vcs_contains(struct protect *p, const char *path, bool *ret) {
        struct place place;
        int r = find_place(p, path, &place);

        if (r < 0)
                return r;
        *ret = place.vcs != NULL;
        return 0;
}

/* git gives an object the hash of its content for a name, and does not compute it again when it reads one. */
static bool is_object(const char *vcs, const char *tail) {
        const char *name = tail + strlen("objects/"), *dot = strrchr(tail, '.');

        if (!startswith(vcs, ".git/") || !startswith(tail, "objects/"))
                return false;
        return (strspn(name, "0123456789abcdef") == 2 && name[2] == '/') ||
               (startswith(name, "pack/") && dot && (streq(dot, ".pack") || streq(dot, ".idx")));
}

static const char *judge_inside(const struct protect_change *c, const struct place *place) {
        enum names_match allowed = names_allowed(place->vcs, place->tail);

        if (c->new_mode && !S_ISDIR(c->new_mode) && !S_ISREG(c->new_mode))
                return "a link in a version control directory";
        if (!place->on_host)
                return c->new_mode ? "part of a repository that the host does not have" : NULL;
        if (!place->tail[0])
                return c->new_mode && !S_ISDIR(c->new_mode) ? "would replace a repository" : NULL;
        if (allowed == NAMES_EXACT && S_ISREG(c->old_mode) && S_ISREG(c->new_mode) &&
            is_object(place->vcs, place->tail))
                return "other content for an object of the host";
        if (allowed == NAMES_EXACT)
                return NULL;
        if (allowed == NAMES_ABOVE && (!c->new_mode || S_ISDIR(c->new_mode)))
                return NULL;
        return "not one of the files that version control updates";
}

int vcs_judge(struct protect *p, const struct protect_change *c, char **ret, bool *ret_inside, size_t *ret_repository) {
        struct place place;
        const char *why = NULL;
        int r = find_place(p, c->path, &place);

        if (r < 0)
                return r;
        *ret_inside = place.vcs != NULL;
        *ret_repository = place.repository;
        if (place.vcs)
                why = judge_inside(c, &place);
        if (!why && place.made && c->new_mode)
                why = "would make a directory that git takes for a repository";
        if (!why)
                return 0;
        *ret = NULL;
        if (place.vcs ? asprintf(ret, "%s (%.*s)", why, (int) path_name_length(place.vcs), place.vcs) < 0
                      : !(*ret = strdup(why)))
                return -ENOMEM;
        return 0;
}
