/* The public calls for commands that the caller starts. */
#include "../box/wrap.h"

#include <errno.h>

#include "../base/strv.h"
#include "api.h"

struct hutch_wrapped {
        struct wrapped *w;
};

int hutch_wrap(const hutch_policy *policy, const char *const *argv, hutch_wrapped **ret, hutch_error *err) {
        hutch_wrapped *wrapped;
        int r;

        if (!policy)
                return api_null(err, __func__, "policy");
        if (!argv || !argv[0])
                return api_null(err, __func__, "argv");
        if (!ret)
                return api_null(err, __func__, "ret");
        wrapped = calloc(1, sizeof(*wrapped));
        if (!wrapped)
                return error_oom(err);
        r = box_wrap(policy, argv, &wrapped->w, err);
        if (r < 0) {
                free(wrapped);
                return r;
        }
        *ret = wrapped;
        return 0;
}

const char *const *hutch_wrapped_argv(const hutch_wrapped *wrapped) {
        return wrapped ? (const char *const *) wrapped->w->argv : NULL;
}

const char *hutch_wrapped_backend(const hutch_wrapped *wrapped) {
        return wrapped ? wrapped->w->backend : NULL;
}

void hutch_wrapped_keep(hutch_wrapped *wrapped) {
        if (wrapped)
                free(take_ptr(wrapped->w->file));
}

void hutch_wrapped_free(hutch_wrapped *wrapped) {
        if (wrapped)
                wrapped_free(wrapped->w);
        free(wrapped);
}

int hutch_request_open(const char *file, hutch_policy **ret_policy, char ***ret_argv, hutch_error *err) {
        if (!file)
                return api_null(err, __func__, "file");
        if (!ret_policy)
                return api_null(err, __func__, "ret_policy");
        if (!ret_argv)
                return api_null(err, __func__, "ret_argv");
        return box_open_request(file, ret_policy, ret_argv, err);
}

void hutch_argv_free(char **argv) {
        strv_free(argv);
}
