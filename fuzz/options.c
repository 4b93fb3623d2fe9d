/* The option loader: lines of NAME=VALUE or NAME, into one policy. --env-file is left out: it would read the fuzzing
 * host's files. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "policy/options.h"

static void set_one(struct hutch_policy *p, char *line) {
        struct hutch_error err = {0};
        char *equals = strchr(line, '=');

        if (equals)
                *equals = 0;
        if (streq(line, "env-file"))
                return;
        if (policy_set_option(p, line, equals ? equals + 1 : NULL, &err) < 0 &&
            (err.code == HUTCH_OK || !err.message[0]))
                abort(); /* a refusal says why */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL, *copy = NULL;
        _cleanup_(freep) char *text = strndup((const char *) data, len);
        struct hutch_error err = {0};

        if (!text || policy_new("/base/dir", "/home/ann", &p) < 0)
                return 0;
        for (char *next = text, *line; (line = strsep(&next, "\n"));)
                set_one(p, line);
        for (size_t i = 0; i < p->n_paths; i++)
                if (p->paths[i].path[0] != '/' || (p->paths[i].dest && p->paths[i].dest[0] != '/') ||
                    strstr(p->paths[i].path, "/../"))
                        abort(); /* paths of a policy are absolute */
        if (policy_validate(p, &err) < 0 && !err.message[0])
                abort();
        if (policy_copy(p, &copy) < 0 || copy->n_paths != p->n_paths || copy->n_env != p->n_env)
                abort();
        return 0;
}
