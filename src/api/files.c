/* Files of a box, read and written by a program inside of it.
 *
 * A path is resolved inside the box: by its root, mounts and links. A process of the host that followed it could be led
 * out of the box, so none does: cat runs inside, and only bytes leave. */
#include <errno.h>
#include <stdio.h>

#include "api.h"

/* What cat wrote to stderr is the reason, without the name of the program. */
static int fail(const char *what, const char *path, const struct hutch_result *result, struct hutch_error *err) {
        const char *complaint = result->output[HUTCH_STDERR], *reason = strrchr(complaint, ':');

        if (result->killed)
                return error_set(err, HUTCH_E_IO, EIO, "cannot %s %s in the box: ended by %s", what, path,
                                 hutch_kill_reason_name(result->kill_reason));
        reason = reason ? reason + 1 + strspn(reason + 1, " ") : complaint;
        return error_set(err, HUTCH_E_IO, EIO, "cannot %s %s in the box: %.*s", what, path, (int) strcspn(reason, "\n"),
                         reason[0] ? reason : "no reason given\n");
}

static int run_inside(hutch_box *box, const struct hutch_request *request, const char *what, const char *path,
                      struct hutch_result **ret, struct hutch_error *err) {
        struct hutch_result *result = NULL;
        int r = hutch_box_run(box, request, &result, err);

        if (r >= 0 && (result->exit_code != 0 || result->output_dropped[HUTCH_STDOUT] > 0))
                r = fail(what, path, result, err);
        if (r < 0) {
                hutch_result_free(result);
                return r;
        }
        *ret = result;
        return 0;
}

int hutch_box_read_file(hutch_box *box, const char *path, char **ret, size_t *ret_len, hutch_error *err) {
        const char *const argv[] = {"cat", "--", path, NULL};
        const hutch_request request = {.struct_size = sizeof(request), .argv = argv, .no_changes = true};
        struct hutch_result *result;
        int r;

        if (!box)
                return api_null(err, __func__, "box");
        if (!path)
                return api_null(err, __func__, "path");
        if (!ret || !ret_len)
                return api_null(err, __func__, "ret");
        r = run_inside(box, &request, "read", path, &result, err);
        if (r < 0)
                return r;
        *ret = malloc(result->output_len[HUTCH_STDOUT] + 1);
        if (*ret) {
                memcpy(*ret, result->output[HUTCH_STDOUT], result->output_len[HUTCH_STDOUT] + 1);
                *ret_len = result->output_len[HUTCH_STDOUT];
        }
        hutch_result_free(result);
        return *ret ? 0 : error_oom(err);
}

int hutch_box_write_file(hutch_box *box, const char *path, const void *data, size_t len, hutch_error *err) {
        const char *const argv[] = {"sh", "-c", "cat >\"$1\"", "sh", path, NULL};
        const hutch_request request = {.struct_size = sizeof(request),
                                       .argv = argv,
                                       .no_changes = true,
                                       .streams = {HUTCH_STREAM_DATA},
                                       .stdin_data = data ? data : "",
                                       .stdin_len = data ? len : 0};
        struct hutch_result *result;
        int r;

        if (!box)
                return api_null(err, __func__, "box");
        if (!path)
                return api_null(err, __func__, "path");
        if (!data && len > 0)
                return api_null(err, __func__, "data");
        r = run_inside(box, &request, "write", path, &result, err);
        if (r < 0)
                return r;
        hutch_result_free(result);
        return r;
}
