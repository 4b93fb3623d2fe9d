/* The result, and the result as JSON. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdatomic.h>

#include "../base/buf.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "api.h"
#include "json.h"

struct result {
        struct hutch_result public; /* first: what the caller holds */
        char **notices;
        char *backend, *box_id;
        char *output[3];
        struct tracked tracked;
};

static const char *const reasons[] = {NULL,     "timeout", "memory", "cpu",    "pids",
                                      "output", "disk",    "signal", "policy", "cancelled"};

/* Waiting is worth a word when a limit that was asked for made the run clearly longer. */
static int add_waits(const struct plan *plan, const struct outcome *o, char ***notices) {
        const struct {
                uint64_t limit, ms;
                const char *what;
        } waits[] = {{plan->memory, o->waited_ms[WAITED_MEMORY], "for memory to be freed: --memory is tight for it"},
                     {plan->cpu_percent, o->waited_ms[WAITED_CPU], "for a processor: --cpu is tight for it"}};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(waits); i++)
                if (waits[i].limit && waits[i].ms >= 500 && (double) waits[i].ms >= o->duration_ms / 10)
                        r = strv_pushf(notices, "the box waited %llu ms of its %.0f ms %s",
                                       (unsigned long long) waits[i].ms, o->duration_ms, waits[i].what);
        return r;
}

/* The last one's, or else new: room of that size is searched for long in memory that others freed. */
static _Atomic(struct result *) spare;

static struct result *make_room(void) {
        struct result *r = atomic_exchange(&spare, NULL);

        if (!r)
                return calloc(1, sizeof(*r));
        memset(r, 0, offsetof(struct result, public.error.stage[1]));
        r->public.error.message[0] = 0;
        memset(&r->public + 1, 0, sizeof(*r) - sizeof(r->public));
        return r;
}

int result_new(const struct plan *plan, const struct outcome *outcome, struct buf output[3], struct tracked *tracked,
               struct hutch_result **ret) {
        struct result *r = make_room();
        int failed;

        if (!r)
                return -ENOMEM;
        *ret = &r->public;
        r->public.exit_code = outcome->exit_code;
        r->public.signal = outcome->signal;
        r->public.killed = outcome->reason != HUTCH_NOT_KILLED;
        r->public.kill_reason = outcome->reason;
        r->public.duration_ms = outcome->duration_ms;
        r->public.cpu_ms = outcome->cpu_ms;
        r->public.peak_memory_bytes = outcome->peak_memory;
        if (outcome->error.code != HUTCH_OK)
                r->public.error = outcome->error;
        failed = strv_copy(plan ? plan->notices : NULL, &r->notices);
        if (failed >= 0 && plan)
                failed = add_waits(plan, outcome, &r->notices);
        for (const char *line = outcome->notices; failed >= 0 && *line; line += strcspn(line, "\n") + 1)
                failed = strv_pushf(&r->notices, "%.*s", (int) strcspn(line, "\n"), line);
        r->backend = strdup(plan ? plan->backend : "");
        for (int i = 1; i < 3; i++) {
                r->public.output_len[i] = output[i].len;
                r->public.output_dropped[i] = outcome->dropped[i];
                r->output[i] = buf_take_string(&output[i]);
                r->public.output[i] = r->output[i];
                if (!r->output[i])
                        failed = -ENOMEM;
        }
        if (tracked) {
                r->tracked = *tracked;
                *tracked = (struct tracked){0};
                r->public.created = (const char *const *) r->tracked.created;
                r->public.modified = (const char *const *) r->tracked.modified;
                r->public.deleted = (const char *const *) r->tracked.deleted;
                r->box_id = r->tracked.box_id ? strdup(r->tracked.box_id) : NULL;
                r->public.box_id = r->box_id;
        }
        if (plan)
                memcpy(r->public.enforced, plan->enforced, sizeof(plan->enforced));
        r->public.notices = (const char *const *) r->notices;
        r->public.backend = r->backend;
        if (failed < 0 || !r->backend) {
                hutch_result_free(&r->public);
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

void hutch_result_free(hutch_result *result) {
        struct result *r = (struct result *) result;

        if (!r)
                return;
        strv_free(r->notices);
        strv_free(r->tracked.created);
        strv_free(r->tracked.modified);
        strv_free(r->tracked.deleted);
        free(r->box_id);
        free(r->backend);
        free(r->output[1]);
        free(r->output[2]);
        free(atomic_exchange(&spare, r));
}

/* A stream as text where it is UTF-8, else as base64. What the cap cut in the middle of a character loses that
 * character. */
static json_t *stream_json(const struct hutch_result *r, int stream, const char **ret_encoding) {
        _cleanup_(buf_done) struct buf b = {0};
        size_t len = r->output_len[stream];

        if (r->output_dropped[stream] > 0 || r->kill_reason == HUTCH_KILLED_OUTPUT)
                len -= text_cut_tail(r->output[stream], len);
        if (text_is_utf8(r->output[stream], len)) {
                *ret_encoding = "utf-8";
                return json_stringn(r->output[stream], len);
        }
        *ret_encoding = "base64";
        text_put_base64(&b, r->output[stream], len);
        return b.oom ? NULL : json_stringn((const char *) b.data, b.len);
}

static json_t *strings_json(const char *const *v) {
        json_t *a = json_array();

        for (; v && *v; v++)
                json_array_append_new(a, json_string(*v));
        return a;
}

static json_t *paths_json(const char *const *v) {
        json_t *a = json_array();

        for (; v && *v; v++)
                json_array_append_new(a, json_bytes(*v, strlen(*v)));
        return a;
}

static json_t *changes_json(const struct hutch_result *r) {
        if (!r->created)
                return json_null();
        return json_pack("{s:o, s:o, s:o}", "created", paths_json(r->created), "modified", paths_json(r->modified),
                         "deleted", paths_json(r->deleted));
}

static json_t *denials_json(const struct hutch_result *r) {
        json_t *a = json_array();

        for (size_t i = 0; i < r->n_denials; i++)
                json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:s?}", "kind", r->denials[i].kind, "target",
                                                   r->denials[i].target, "rule", r->denials[i].rule, "fix",
                                                   r->denials[i].fix));
        return a;
}

static json_t *enforced_json(const struct hutch_result *r) {
        json_t *o = json_object();

        for (int g = 0; g < HUTCH_G_COUNT; g++)
                json_object_set_new(o, guarantee_name(g), json_string(enforcement_name(r->enforced[g])));
        return o;
}

static json_t *error_json(const struct hutch_error *e) {
        char message[sizeof(e->message)];

        if (e->code == HUTCH_OK)
                return json_null();
        memcpy(message, e->message, sizeof(message));
        text_clean_in_place(message);
        return json_pack("{s:s, s:s, s:s}", "code", hutch_code_name(e->code), "stage", e->stage[0] ? e->stage : "run",
                         "message", message);
}

static double rounded(double ms) {
        return round(ms * 1000) / 1000;
}

int hutch_result_to_json(const hutch_result *r, char **ret, hutch_error *err) {
        const char *out_encoding, *err_encoding;
        json_t *out = stream_json(r, HUTCH_STDOUT, &out_encoding), *error = stream_json(r, HUTCH_STDERR, &err_encoding);
        json_t *root;

        root = json_pack("{s:i, s:o, s:o, s:o, s:{s:s, s:s}, s:{s:I, s:I}, s:f, s:f, s:I, s:b, s:s?, s:o, s:[], s:[], "
                         "s:[], s:o, s:s, s:o, "
                         "s:o, s:o}",
                         "exit_code", r->exit_code, "signal", r->signal ? json_integer(r->signal) : json_null(),
                         "stdout", out, "stderr", error, "encoding", "stdout", out_encoding, "stderr", err_encoding,
                         "truncated", "stdout", (json_int_t) r->output_dropped[1], "stderr",
                         (json_int_t) r->output_dropped[2], "duration_ms", rounded(r->duration_ms), "cpu_ms",
                         rounded(r->cpu_ms), "peak_memory_bytes", (json_int_t) r->peak_memory_bytes, "killed",
                         r->killed, "kill_reason", reasons[r->kill_reason], "changes", changes_json(r), "output_files",
                         "published", "findings", "denials", denials_json(r), "backend", r->backend, "enforced",
                         enforced_json(r), "notices", strings_json(r->notices), "error", error_json(&r->error));
        if (root && r->box_id) /* only where there is one to name */
                json_object_set_new(root, "box", json_string(r->box_id));
        *ret = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
        json_decref(root);
        return *ret ? 0 : error_oom(err);
}
