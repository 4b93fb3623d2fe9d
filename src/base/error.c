/* Filling struct hutch_error; see error.h. Nothing here allocates. Messages may carry names from a hostile tree to a
 * terminal, so whatever a terminal would obey is taken out at once. */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "text.h"

static const char *const code_names[] = {
        [HUTCH_OK] = "ok",
        [HUTCH_E_USAGE] = "usage",
        [HUTCH_E_POLICY_INVALID] = "policy_invalid",
        [HUTCH_E_POLICY_REFUSED] = "policy_refused",
        [HUTCH_E_BACKEND_UNKNOWN] = "backend_unknown",
        [HUTCH_E_BACKEND_UNAVAILABLE] = "backend_unavailable",
        [HUTCH_E_GUARANTEE_UNAVAILABLE] = "guarantee_unavailable",
        [HUTCH_E_PATH_MISSING] = "path_missing",
        [HUTCH_E_SETUP_FAILED] = "setup_failed",
        [HUTCH_E_SESSION_CLOSED] = "session_closed",
        [HUTCH_E_IO] = "io",
        [HUTCH_E_INTERNAL] = "internal",
};

const char *hutch_code_name(hutch_code code) {
        return (size_t) code < ARRAY_SIZE(code_names) ? code_names[code] : "internal";
}

const char *errno_text(int errnum) {
        switch (errnum) {
        case ENOENT:
                return "does not exist";
        case ENOTDIR:
                return "not a directory";
        case EISDIR:
                return "is a directory";
        case EACCES:
                return "permission denied";
        case ELOOP:
                return "symbolic links are not allowed here";
        default: {
                const char *text = strerrordesc_np(errnum);

                return text ? text : "unknown error";
        }
        }
}

int error_set(struct hutch_error *err, hutch_code code, int errnum, const char *format, ...) {
        va_list args;

        if (errnum < 0)
                errnum = -errnum;
        if (err) {
                err->code = code;
                err->errnum = errnum;
                err->stage[0] = 0;
                va_start(args, format);
                vsnprintf(err->message, sizeof(err->message), format, args);
                va_end(args);
                text_clean_in_place(err->message);
        }
        return errnum ? -errnum : -EINVAL;
}

int error_wrap(struct hutch_error *err, int r, const char *format, ...) {
        char inner[sizeof(err->message)];
        va_list args;
        int n;

        if (!err)
                return r;
        memcpy(inner, err->message, sizeof(inner));
        va_start(args, format);
        n = vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
        if (n >= 0 && (size_t) n < sizeof(err->message))
                snprintf(err->message + n, sizeof(err->message) - (size_t) n, ": %s", inner);
        text_clean_in_place(err->message);
        return r;
}

int error_oom(struct hutch_error *err) {
        return error_set(err, HUTCH_E_INTERNAL, ENOMEM, "out of memory");
}

void error_stage(struct hutch_error *err, const char *stage) {
        if (err && !err->stage[0])
                snprintf(err->stage, sizeof(err->stage), "%s", stage);
}
