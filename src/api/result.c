/* The result, and the result as JSON. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdatomic.h>

#include "../base/buf.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "api.h"
#include "../base/json.h"

struct result {
        struct hutch_result public; /* first: what the caller holds */
        struct events events;
        const struct hutch_event **lists; /* the same by kind, each with its NULL */
        enum hutch_enforcement enforced[HUTCH_G_COUNT];
        char *backend, *box_id;
        char *output[3];
        struct tracked tracked;
        struct output_files files;
};

/* Waiting deserves a notice when an explicit limit made the run clearly longer. */
static int add_waits(const struct plan *plan, const struct outcome *o, struct events *events) {
        const struct {
                uint64_t limit, ms;
                const char *subject, *what;
        } waits[] = {{plan->memory, o->waited_ms[WAITED_MEMORY], "memory",
                      "for memory to be freed: --memory is tight for it"},
                     {plan->cpu_percent, o->waited_ms[WAITED_CPU], "cpu", "for a processor: --cpu is tight for it"}};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(waits); i++)
                if (waits[i].limit && waits[i].ms >= 500 && (double) waits[i].ms >= o->duration_ms / 10)
                        r = events_note(events, NOTICE_LIMIT_WAITED, waits[i].subject, NULL,
                                        "the box waited %llu ms of its %.0f ms %s", (unsigned long long) waits[i].ms,
                                        o->duration_ms, waits[i].what);
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

static void degrade(struct result *r, enum hutch_guarantee which) {
        if (r->enforced[which] == HUTCH_ENFORCED)
                r->enforced[which] = HUTCH_DEGRADED;
}

/* What a plan promises can be lost while the box is built or runs. */
static void set_enforced(struct result *r, const struct plan *plan) {
        memcpy(r->enforced, plan->enforced, sizeof(plan->enforced));
        for (size_t i = 0; i < r->events.n; i++) {
                const struct hutch_event *e = r->events.items[i];

                if (e->kind != HUTCH_EVENT_NOTICE)
                        continue;
                if (streq(e->code, notice_name(NOTICE_HIDDEN_REPLACED)))
                        degrade(r, HUTCH_G_FILESYSTEM);
                if (!e->subject || !streq(e->code, notice_name(NOTICE_GUARANTEE_DEGRADED)))
                        continue;
                for (int g = 0; g < HUTCH_G_COUNT; g++)
                        if (streq(e->subject, hutch_guarantee_name((enum hutch_guarantee) g)))
                                degrade(r, (enum hutch_guarantee) g);
        }
}

/* Apart by kind, in the order in which they happened. */
static int sort_events(struct result *r) {
        const struct hutch_event *const **const lists[] = {[HUTCH_EVENT_NOTICE] = &r->public.notices,
                                                           [HUTCH_EVENT_DENIAL] = &r->public.denials,
                                                           [HUTCH_EVENT_FINDING] = &r->public.findings,
                                                           [HUTCH_EVENT_PUBLISHED] = &r->public.published};
        const struct hutch_event **next = calloc(r->events.n + ARRAY_SIZE(lists), sizeof(*next));

        if (!next)
                return -ENOMEM;
        r->lists = next;
        for (size_t kind = 0; kind < ARRAY_SIZE(lists); kind++) {
                *lists[kind] = next;
                for (size_t i = 0; i < r->events.n; i++)
                        if (r->events.items[i]->kind == kind)
                                *next++ = r->events.items[i];
                next++;
        }
        return 0;
}

static int take_events(struct result *r, const struct plan *plan, const struct outcome *outcome,
                       struct events *events) {
        int failed = 0;

        r->events = take_struct(*events);
        if (r->events.dropped > 0)
                failed = events_note(&r->events, NOTICE_EVENTS_DROPPED, NULL, NULL, "%zu more events were dropped",
                                     r->events.dropped);
        if (failed >= 0 && plan)
                failed = add_waits(plan, outcome, &r->events);
        return failed < 0 ? failed : sort_events(r);
}

int result_new(const struct plan *plan, const struct outcome *outcome, struct events *events, struct buf output[3],
               struct tracked *tracked, struct hutch_result **ret) {
        struct result *r = make_room();
        int failed;

        if (!r)
                return -ENOMEM;
        *ret = &r->public;
        r->public.struct_size = sizeof(r->public);
        r->public.exit_code = outcome->exit_code;
        r->public.signal = outcome->signal;
        r->public.killed = outcome->reason != HUTCH_NOT_KILLED;
        r->public.kill_reason = outcome->reason;
#define NUMBER(type, name) r->public.name = outcome->name;
#include "../supervise/numbers.def"
#undef NUMBER
        if (outcome->error.code != HUTCH_OK)
                r->public.error = outcome->error;
        failed = take_events(r, plan, outcome, events);
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
                r->public.n_reviewable = r->tracked.n_reviewable;
        }
        if (plan)
                set_enforced(r, plan);
        r->public.enforced = r->enforced;
        r->public.n_enforced = ARRAY_SIZE(r->enforced);
        r->public.backend = r->backend;
        if (failed < 0 || !r->backend) {
                hutch_result_free(&r->public);
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

void output_files_done(struct output_files *files) {
        for (size_t i = 0; i < files->n; i++)
                free(files->v[i]);
        free(files->v);
        *files = (struct output_files){0};
}

int result_add(struct hutch_result *result, const struct events *events, struct output_files *files) {
        struct result *r = (struct result *) result;

        r->files = take_struct(*files);
        r->public.output_files = (const hutch_output_file *const *) r->files.v;
        if (events_add_all(&r->events, events) < 0)
                return -ENOMEM;
        free(take_ptr(r->lists));
        return sort_events(r);
}

void hutch_result_free(hutch_result *result) {
        struct result *r = (struct result *) result;

        if (!r)
                return;
        events_done(&r->events);
        output_files_done(&r->files);
        free(r->lists);
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

static json_t *files_json(const struct hutch_result *r) {
        json_t *a = json_array();

        for (const hutch_output_file *const *f = r->output_files; f && *f; f++)
                json_array_append_new(
                        a, json_pack("{s:o, s:I}", "path", json_text((*f)->path), "size", (json_int_t) (*f)->size));
        return a;
}

static json_t *enforced_json(const struct hutch_result *r) {
        json_t *o = json_object();

        for (int g = 0; g < HUTCH_G_COUNT; g++)
                json_object_set_new(o, hutch_guarantee_name(g),
                                    json_string(hutch_enforcement_name(
                                            (size_t) g < r->n_enforced ? r->enforced[g] : HUTCH_NOT_REQUESTED)));
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

static int dump(json_t *object, char **ret, struct hutch_error *err) {
        *ret = json_print(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
        json_decref(object);
        return *ret ? 0 : error_oom(err);
}

int hutch_event_to_json(const hutch_event *event, char **ret, hutch_error *err) {
        if (!event)
                return api_null(err, __func__, "event");
        if (!ret)
                return api_null(err, __func__, "ret");
        json_t *line = json_pack("{s:s}", "type", hutch_event_kind_name(event->kind)), *rest = json_event(event);

        json_object_update(line, rest);
        json_decref(rest);
        return dump(line, ret, err);
}

int hutch_output_to_json(int stream, const void *data, size_t len, char **ret, hutch_error *err) {
        if (!data)
                return api_null(err, __func__, "data");
        if (!ret)
                return api_null(err, __func__, "ret");
        _cleanup_(buf_done) struct buf encoded = {0};
        bool text = text_is_utf8(data, len);

        if (!text) {
                text_put_base64(&encoded, data, len);
                if (encoded.oom)
                        return error_oom(err);
                data = encoded.data;
                len = encoded.len;
        }
        return dump(json_pack("{s:s, s:s, s:s%, s:s}", "type", "output", "stream",
                              stream == HUTCH_STDERR ? "stderr" : "stdout", "data", data, len, "encoding",
                              text ? "utf-8" : "base64"),
                    ret, err);
}

size_t hutch_incomplete_tail(const void *data, size_t len) {
        if (!data)
                return 0;
        return text_cut_tail(data, len);
}

static json_t *json_of_double(double ms) {
        return json_real(round(ms * 1000) / 1000);
}

static json_t *json_of_integer(uint64_t n) {
        return json_integer((json_int_t) n);
}

#define JSON_OF(n) _Generic((n), double : json_of_double, uint64_t : json_of_integer)(n)

int hutch_result_to_json(const hutch_result *r, char **ret, hutch_error *err) {
        if (!r)
                return api_null(err, __func__, "result");
        if (!ret)
                return api_null(err, __func__, "ret");
        const char *out_encoding, *err_encoding;
        json_t *out = stream_json(r, HUTCH_STDOUT, &out_encoding), *error = stream_json(r, HUTCH_STDERR, &err_encoding);
        json_t *root, *rest;

        root = json_pack("{s:i, s:o, s:o, s:o, s:{s:s, s:s}, s:{s:I, s:I}}", "exit_code", r->exit_code, "signal",
                         r->signal ? json_integer(r->signal) : json_null(), "stdout", out, "stderr", error, "encoding",
                         "stdout", out_encoding, "stderr", err_encoding, "truncated", "stdout",
                         (json_int_t) r->output_dropped[1], "stderr", (json_int_t) r->output_dropped[2]);
#define NUMBER(type, name) json_object_set_new(root, #name, JSON_OF(r->name));
#include "../supervise/numbers.def"
#undef NUMBER
        rest = json_pack("{s:b, s:s?, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "killed", r->killed, "kill_reason",
                         r->killed ? hutch_kill_reason_name(r->kill_reason) : NULL, "changes", changes_json(r),
                         "output_files", files_json(r), "published", json_events(r->published), "findings",
                         json_events(r->findings), "denials", json_events(r->denials), "backend", r->backend,
                         "enforced", enforced_json(r), "notices", json_events(r->notices), "error",
                         error_json(&r->error));
        if (!rest || json_object_update(root, rest) < 0) {
                json_decref(root);
                root = NULL;
        }
        json_decref(rest);
        if (root && r->box_id) /* only where there is one to name */
                json_object_set_new(root, "box", json_string(r->box_id));
        return dump(root, ret, err);
}
