/* See jail.h. A path is taken as it is written, colons included; one that does not exist is a warning when the box is
 * made, because such a list often serves several hosts. */
#include "jail.h"

#include <errno.h>
#include <stdio.h>

#include "value.h"

static int read_line(struct hutch_policy *p, const char *name, size_t number, char *line, struct hutch_error *err) {
        char origin[512];
        size_t n;
        int r;

        line += strspn(line, " \t");
        n = strlen(line);
        while (n > 0 && strchr(" \t\r", line[n - 1]))
                line[--n] = 0;
        if (n == 0 || line[0] == '#')
                return 0;
        if (line[0] != '/')
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "%s:%zu: '%.200s' is not an absolute path: each line of a .jail file must be one",
                                 name, number, line);
        snprintf(origin, sizeof(origin), "%s:%zu", name, number);
        r = policy_add_path_plain(p, HUTCH_READ, line, NULL, origin, err);
        if (r < 0)
                return r;
        p->paths[p->n_paths - 1].missing = MISSING_WARN;
        return r;
}

int policy_read_jail(struct hutch_policy *p, const char *name, const char *text, size_t len, struct hutch_error *err) {
        _cleanup_(freep) char *copy = strndup(text, len);
        size_t number = 0, bad = 0;
        struct hutch_error first = {0};

        if (!copy)
                return error_oom(err);
        if (strlen(copy) != len)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s: contains a NUL byte", name);
        for (char *next = copy, *line; (line = strsep(&next, "\n"));) {
                struct hutch_error why = {0};
                struct hutch_event event;

                if (read_line(p, name, ++number, line, &why) >= 0)
                        continue;
                if (why.code != HUTCH_E_POLICY_INVALID)
                        return error_set(err, why.code, why.errnum, "%s", why.message);
                if (bad++ == 0)
                        first = why;
                event = event_notice(NOTICE_POLICY_INVALID, name, NULL, why.message);
                if (events_add(&p->events, &event) < 0)
                        return error_oom(err);
        }
        if (bad == 0)
                return 0;
        return bad == 1 ? error_set(err, first.code, EINVAL, "%s", first.message)
                        : error_set(err, first.code, EINVAL, "%zu errors in a .jail file, the first: %s", bad,
                                    first.message);
}
