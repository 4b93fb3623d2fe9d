/* MERGE_RR; see rerere.h. Each record is an id, a tab, a path and a NUL; git uses the path as it is. */
#include "rerere.h"

#include <errno.h>
#include <stdio.h>

#include "../base/macro.h"
#include "names.h"

static bool is_harmless(const char *path) {
        _cleanup_(freep) char *absolute = NULL;
        const char *pattern;

        if (names_is_odd(path) || asprintf(&absolute, "/%s", path) < 0)
                return false;
        switch (names_find(absolute, 0, false, &pattern)) {
        case NAMES_EXACT:
        case NAMES_ABOVE:
                return false;
        default:
                return true;
        }
}

int rerere_find(const char *text, size_t len, char **ret) {
        *ret = NULL;
        for (size_t at = 0, n; at < len; at += n + 1) {
                _cleanup_(freep) char *record = NULL;
                char *tab;

                n = strnlen(text + at, len - at);
                record = strndup(text + at, n);
                if (!record)
                        return -ENOMEM;
                tab = strchr(record, '\t');
                if (tab && is_harmless(tab + 1))
                        continue;
                *ret = strdup(tab ? tab + 1 : record);
                return *ret ? 0 : -ENOMEM;
        }
        return 0;
}
