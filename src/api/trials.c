/* See trials.h. */
#include "trials.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define TRIAL_MS 20000

struct attempt {
        hutch_policy *policy;
        struct hutch_error why;
};

static void attempt_begin(struct attempt *a, const char *isolation, const char *as) {
        *a = (struct attempt){.why = {.errnum = EIO, .message = "a trial did not end in time"}};
        if (hutch_policy_new(&a->policy) >= 0 && hutch_policy_set_isolation(a->policy, isolation, &a->why) >= 0 &&
            hutch_policy_set_option(a->policy, "as", as, &a->why) >= 0)
                return;
        hutch_policy_free(take_ptr(a->policy));
}

/* Whether such a box runs shell text, or, where text is NULL, /bin/true. */
static bool attempt_end(struct attempt *a, const hutch_box_options *options, const char *text) {
        static const char *const argv[] = {"/bin/true", NULL};
        const hutch_request request = {
                .struct_size = sizeof(request), .argv = text ? NULL : argv, .command = text, .timeout_ms = TRIAL_MS};
        hutch_box *box = NULL;
        hutch_result *result = NULL;
        bool works = false;

        if (a->policy && hutch_box_open(a->policy, options, &box, &a->why) >= 0 &&
            hutch_box_run(box, &request, &result, &a->why) >= 0) {
                works = result->exit_code == 0;
                if (!works && result->error.code != HUTCH_OK)
                        a->why = result->error;
        }
        hutch_result_free(result);
        hutch_box_close(box);
        hutch_policy_free(take_ptr(a->policy));
        return works;
}

static void record(struct probe *one, bool works, const struct attempt *a) {
        one->tried = true;
        one->works = works;
        if (works)
                return;
        one->errnum = a->why.errnum;
        snprintf(one->detail, sizeof(one->detail), "%s", errno_text(a->why.errnum));
}

/* The rules of a real box, which is allowed an address that leads nowhere. */
static void try_network(hutch_context *context, struct probes *p) {
        const hutch_box_options options = {.struct_size = sizeof(options), .context = context};
        struct attempt a;

        attempt_begin(&a, "namespace", "host");
        if (a.policy && (hutch_policy_set_network(a.policy, HUTCH_NET_ALLOWLIST, &a.why) < 0 ||
                         hutch_policy_allow_host(a.policy, "192.0.2.1", 0, &a.why) < 0))
                hutch_policy_free(take_ptr(a.policy));
        record(&p->of[PROBE_NETWORK], attempt_end(&a, &options, NULL), &a);
        /* what the message says to do about it is of a command, not of a host */
        snprintf(p->network, sizeof(p->network), "%.*s", (int) strcspn(a.why.message, ":"), a.why.message);
}

/* A session needs a warden process, and so a separate context. */
static void try_session(struct probes *p) {
        const hutch_box_options options = {.struct_size = sizeof(options), .session = true};
        struct attempt a;

        attempt_begin(&a, "auto", "user");
        record(&p->of[PROBE_SESSIONS], attempt_end(&a, &options, "cd /"), &a);
        snprintf(p->sessions, sizeof(p->sessions), "%.255s", a.why.message);
}

/* A workspace of its own, and a change in it: the layer, or the private copy, is where those of real boxes are. */
static void try_layers(hutch_context *context, struct probes *p) {
        const hutch_box_options options = {.struct_size = sizeof(options), .context = context};
        const char *tmp = getenv("TMPDIR");
        char directory[PATH_MAX];
        struct attempt a;

        if ((size_t) snprintf(directory, sizeof(directory), "%s/hutch-doctor.XXXXXX",
                              tmp && tmp[0] == '/' ? tmp : "/tmp") >= sizeof(directory) ||
            !mkdtemp(directory))
                return;
        attempt_begin(&a, "auto", "host");
        if (a.policy && (hutch_policy_set_option(a.policy, "dir", directory, &a.why) < 0 ||
                         hutch_policy_set_option(a.policy, "workspace", "cow", &a.why) < 0))
                hutch_policy_free(take_ptr(a.policy));
        record(&p->of[PROBE_LAYERS], attempt_end(&a, &options, ": >made"), &a);
        snprintf(p->layers, sizeof(p->layers), "%.255s", a.why.message);
        rmdir(directory);
}

void trials_of_boxes(hutch_context *context, struct probes *p) {
        bool strong = doctor_is_strong(p);

        if (strong)
                try_network(context, p);
        if (!strong && !doctor_has_landlock(p))
                return;
        try_session(p);
        try_layers(context, p);
}

static void try_backend(hutch_context *context, const struct backend *row, struct trial *ret) {
        const hutch_box_options options = {.struct_size = sizeof(options), .context = context};
        struct attempt a;

        *ret = (struct trial){.name = row->name};
        if (row->check(&context->facts, &ret->why) < 0)
                return;
        backend_read_version(row->name, ret->version, sizeof(ret->version));
        attempt_begin(&a, row->name, "host");
        ret->works = attempt_end(&a, &options, NULL);
        ret->why = a.why;
}

size_t trials_of_backends(hutch_context *context, struct trial trials[TRIALS_MOST]) {
        size_t n = 0;

        for (const struct backend *const *row = backend_rows; *row && n < TRIALS_MOST; row++)
                if ((*row)->traits & TRAIT_DELEGATED)
                        try_backend(context, *row, &trials[n++]);
        return n;
}
