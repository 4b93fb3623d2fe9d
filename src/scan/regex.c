/* PCRE2 with limits. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.h"

#include <errno.h>
#include <pcre2.h>

struct regex {
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *context;
};

int regex_new(const char *pattern, bool jit, struct regex **ret, struct hutch_error *err) {
        struct regex *regex = calloc(1, sizeof(*regex));
        PCRE2_SIZE at;
        int code;

        if (!regex)
                return error_oom(err);
        regex->code =
                pcre2_compile((PCRE2_SPTR) pattern, PCRE2_ZERO_TERMINATED, PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
        if (!regex->code) {
                PCRE2_UCHAR why[200];

                pcre2_get_error_message(code, why, sizeof(why));
                free(regex);
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "bad pattern '%s': %s at character %zu", pattern,
                                 why, (size_t) at + 1);
        }
        regex->data = pcre2_match_data_create(1, NULL);
        regex->context = pcre2_match_context_create(NULL);
        if (!regex->data || !regex->context) {
                regex_free(regex);
                return error_oom(err);
        }
        pcre2_set_match_limit(regex->context, 200000);
        pcre2_set_depth_limit(regex->context, 2000);
        pcre2_set_heap_limit(regex->context, 4096);
        if (jit)
                (void) pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
        *ret = regex;
        return 0;
}

bool regex_matches(const struct regex *regex, const char *s, size_t len, size_t *ret_at) {
        int r = pcre2_match(regex->code, (PCRE2_SPTR) s, len, 0, 0, regex->data, regex->context);

        if (ret_at)
                *ret_at = r >= 0 ? pcre2_get_ovector_pointer(regex->data)[0] : 0;
        return r >= 0 || r == PCRE2_ERROR_MATCHLIMIT || r == PCRE2_ERROR_DEPTHLIMIT || r == PCRE2_ERROR_HEAPLIMIT ||
               r == PCRE2_ERROR_JIT_STACKLIMIT;
}

void regex_free(struct regex *regex) {
        if (!regex)
                return;
        pcre2_match_data_free(regex->data);
        pcre2_match_context_free(regex->context);
        pcre2_code_free(regex->code);
        free(regex);
}
