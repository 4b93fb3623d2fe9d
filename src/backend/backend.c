/* Choosing a backend; see backend.h. */
#include "backend.h"

#include <errno.h>

#include "../base/text.h"

static const struct backend *const backends[] = {&backend_namespace, &backend_none};

int backend_choose(const char *name, const struct host_facts *facts, const struct backend **ret,
                   struct hutch_error *err) {
        const char *names[ARRAY_SIZE(backends) + 1], *near;
        bool automatic = streq(name, "auto");
        int r = -ENOENT;

        for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
                names[i] = backends[i]->name;
                if (automatic ? !backends[i]->isolated : !streq(name, names[i]))
                        continue;
                r = backends[i]->check(facts, err);
                if (r >= 0) {
                        *ret = backends[i];
                        return 0;
                }
                if (!automatic)
                        return r;
        }
        if (automatic)
                return r;
        names[ARRAY_SIZE(backends)] = "auto";
        near = text_nearest(name, names, ARRAY_SIZE(names));
        return error_set(err, HUTCH_E_BACKEND_UNKNOWN, ENOENT,
                         "unknown backend '%s': there are auto, namespace and none%s%s%s", name,
                         near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
