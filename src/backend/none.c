/* No isolation: the command runs as the caller, on the caller's files. Only by explicit request. The environment is
 * still the policy's, and the process tree still ends with the run. */
#include "backend.h"

static int check(const struct host_facts *facts _unused_, struct hutch_error *err _unused_) {
        return 0;
}

static void offer(const struct hutch_policy *policy _unused_, const struct host_facts *facts _unused_,
                  struct offers *ret) {
        *ret = (struct offers){0};
        for (int g = 0; g < HUTCH_G_COUNT; g++)
                ret->lack[g] = "there are no walls with --isolation none";
}

static int compile(const struct plan *plan _unused_, const struct init_place *place _unused_, struct launch_spec *ret,
                   struct hutch_error *err _unused_) {
        *ret = (struct launch_spec){0};
        return 0;
}

const struct backend backend_none = {
        .name = "none", .alias = "native", .check = check, .offer = offer, .compile = compile};
