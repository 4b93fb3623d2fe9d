/* See unit.h. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../tree/tree.h"
#include "../base/path.h"

static bool is_unit_name(const char *name, size_t len) {
        static const char *const names[] = {".git", ".hg", ".jj", ".sl", ".svn", ".bzr", "_darcs"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
                        return true;
        return false;
}

size_t unit_root(const char *path) {
        for (const char *p = path;;) {
                size_t n = path_name_length(p);

                if (is_unit_name(p, n))
                        return (size_t) (p - path) + n;
                if (!p[n])
                        return 0;
                p += n + 1;
        }
}

enum unit_turn unit_turn(const struct change *c) {
        size_t n = unit_root(c->path);

        if (S_ISDIR(c->new_mode))
                return UNIT_OBJECTS; /* before all that is in it */
        if (n == 0)
                return UNIT_FILES;
        if (startswith(c->path + n, "/objects/") || startswith(c->path + n, "/store/"))
                return UNIT_OBJECTS;
        return UNIT_REFERENCES;
}

static bool same_unit(const char *a, const char *b) {
        size_t n = unit_root(a);

        return n > 0 && n == unit_root(b) && strncmp(a, b, n) == 0;
}

/* Each unit once: the first chosen change of it, by its number. */
static int list_units(const struct apply *a, size_t **ret, size_t *ret_n) {
        _cleanup_(freep) size_t *firsts = NULL;
        size_t n = 0, room = 0;

        for (size_t i = 0; i < a->list.n; i++) {
                bool known = !a->fates[i].chosen || unit_root(a->list.items[i].path) == 0;

                for (size_t u = n; !known && u-- > 0;)
                        known = same_unit(a->list.items[firsts[u]].path, a->list.items[i].path);
                if (known)
                        continue;
                if (n == room) {
                        size_t *grown = reallocarray(firsts, room ? room * 2 : 8, sizeof(*grown));

                        if (!grown)
                                return -ENOMEM;
                        firsts = grown;
                        room = room ? room * 2 : 8;
                }
                firsts[n++] = i;
        }
        *ret = take_ptr(firsts);
        *ret_n = n;
        return 0;
}

int unit_choose(struct apply *a, const struct change_list *reviewed) {
        _cleanup_(freep) size_t *firsts = NULL;
        size_t n;
        int r = list_units(a, &firsts, &n);

        for (size_t u = 0; r >= 0 && u < n; u++)
                for (size_t i = 0; i < a->list.n; i++) {
                        const struct change *c = &a->list.items[i];
                        const struct change *seen = reviewed ? change_list_find(reviewed, c->path) : c;

                        if (seen && seen->kind == c->kind && !c->is_protected &&
                            same_unit(a->list.items[firsts[u]].path, c->path))
                                a->fates[i].chosen = true;
                }
        return r;
}

/* Why a change of a unit cannot be applied now, or NULL. */
static const char *find_reason(struct apply *a, size_t i) {
        const struct change *c = &a->list.items[i];
        const char *name;
        _cleanup_(closep) int dir = tree_open_parent(a->pair->lower, c->path, &name);
        struct stat st;
        bool exists = dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

        if (c->is_special || c->too_deep || (c->is_protected && !(a->options->flags & REVIEW_FORCE_PROTECTED)))
                return NULL;
        return base_check(&a->base, &a->view, c, exists ? &st : NULL);
}

static int settle_unit(struct apply *a, size_t first, size_t culprit, const char *reason) {
        const char *path = a->list.items[first].path;
        _cleanup_(freep) char *text = NULL;

        if (asprintf(&text, "%.*s is applied whole or not at all, and %s conflicts: %s", (int) unit_root(path), path,
                     a->list.items[culprit].path, reason) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < a->list.n; i++) {
                const struct change *c = &a->list.items[i];

                if (!a->fates[i].chosen || !same_unit(path, c->path))
                        continue;
                apply_settle(a, i, APPLY_CONFLICT, i == culprit ? reason : text);
        }
        return 0;
}

int unit_check(struct apply *a) {
        _cleanup_(freep) size_t *firsts = NULL;
        size_t n;
        int r;

        if (a->options->flags & REVIEW_FORCE_CHANGED)
                return 0;
        r = list_units(a, &firsts, &n);
        for (size_t u = 0; r >= 0 && u < n; u++)
                for (size_t i = 0; i < a->list.n; i++) {
                        const char *reason;

                        if (!a->fates[i].chosen || a->fates[i].settled ||
                            !same_unit(a->list.items[firsts[u]].path, a->list.items[i].path))
                                continue;
                        reason = find_reason(a, i);
                        if (reason) {
                                r = settle_unit(a, firsts[u], i, reason);
                                break;
                        }
                }
        return r;
}
