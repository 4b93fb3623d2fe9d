/* Choosing a backend; see backend.h. */
#include "backend.h"

#include <errno.h>
#include <stdio.h>

#include "../base/strv.h"
#include "../base/text.h"

/* clang-format off */
#define BACKEND(symbol, name, alias) &backend_##symbol,
const struct backend *const backend_rows[] = {
#include "../base/backends.def"
        NULL,
};
#undef BACKEND
/* clang-format on */

void launch_spec_done(struct launch_spec *spec) {
        strv_free(spec->argv);
        strv_free(spec->env);
        strv_free(spec->kill);
        for (size_t i = 0; i < spec->n_fds; i++)
                close(spec->fds[i]);
        *spec = (struct launch_spec){0};
}

bool backend_is_automatic(const char *name) {
        return streq(name, "auto") || streq(name, "restricted");
}

static const struct backend *find(const struct backend *const *rows, const char *name) {
        for (; *rows; rows++)
                if (streq(name, (*rows)->name) || ((*rows)->alias && streq(name, (*rows)->alias)))
                        return *rows;
        return NULL;
}

const struct backend *backend_of(const char *name) {
        return find(backend_rows, name);
}

static int unknown(const struct backend *const *rows, const char *name, struct hutch_error *err) {
        const char *names[16] = {"auto"}, *near;
        char list[256] = "auto";
        size_t n = 1, used = strlen(list);

        for (; *rows && n < ARRAY_SIZE(names); rows++) {
                names[n++] = (*rows)->name;
                used += (size_t) snprintf(list + used, sizeof(list) - used, ", %s", (*rows)->name);
        }
        near = text_nearest(name, names, n);
        return error_set(err, HUTCH_E_BACKEND_UNKNOWN, ENOENT, "unknown backend '%s' (known: %s)%s%s%s", name, list,
                         near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int backend_check_name(const char *name, struct hutch_error *err) {
        if (backend_is_automatic(name) || backend_of(name))
                return 0;
        return unknown(backend_rows, name, err);
}

/* What the first row lacks is reported: it is the strongest, and its remedy the best. */
static int choose_automatically(const struct backend *const *rows, const struct host_facts *facts,
                                const struct backend **ret, struct hutch_error *err) {
        struct hutch_error first = {0}, later, *at = &first;
        int r = error_set(&first, HUTCH_E_BACKEND_UNAVAILABLE, ENOENT, "no backend with walls is available");

        for (; *rows; rows++) {
                int checked;

                if (!(*rows)->automatic)
                        continue;
                checked = (*rows)->check(facts, at);
                if (checked >= 0) {
                        *ret = *rows;
                        return 0;
                }
                if (at == &first)
                        r = checked;
                at = &later;
        }
        if (err)
                *err = first;
        return r;
}

int backend_choose(const struct backend *const *rows, const char *name, const struct host_facts *facts,
                   const struct backend **ret, struct hutch_error *err) {
        const struct backend *row;
        int r;

        if (backend_is_automatic(name))
                return choose_automatically(rows, facts, ret, err);
        row = find(rows, name);
        if (!row)
                return unknown(rows, name, err);
        r = row->check(facts, err);
        if (r < 0)
                return r;
        *ret = row;
        return 0;
}
