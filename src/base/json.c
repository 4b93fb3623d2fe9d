/* See json.h. */
#include "json.h"

#include "buf.h"
#include "text.h"

json_t *json_bytes(const char *data, size_t len) {
        _cleanup_(buf_done) struct buf b = {0};

        if (!data || text_is_utf8(data, len))
                return json_stringn(data ? data : "", len);
        text_put_base64(&b, data, len);
        return b.oom ? NULL : json_pack("{s:s%}", "base64", (const char *) b.data, b.len);
}

json_t *json_text(const char *text) {
        return text ? json_bytes(text, strlen(text)) : json_null();
}

json_t *json_texts(char *const *texts) {
        json_t *a = json_array();

        for (; texts && *texts; texts++)
                json_array_append_new(a, json_text(*texts));
        return a;
}

json_t *json_event(const struct hutch_event *e) {
        switch (e->kind) {
        case HUTCH_EVENT_DENIAL:
                return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", e->code, "target",
                                 json_text(e->subject), "name", json_text(e->name), "address", json_text(e->address),
                                 "port", e->port ? json_integer(e->port) : json_null(), "rule", json_text(e->text),
                                 "fix", json_text(e->fix), "program", json_text(e->program));
        case HUTCH_EVENT_PUBLISHED:
                return json_pack("{s:o, s:o}", "port", json_text(e->subject), "address", json_text(e->text));
        case HUTCH_EVENT_FINDING:
                return json_pack("{s:s, s:s, s:o, s:i, s:i, s:o, s:o}", "rule", e->code, "severity",
                                 e->severity == HUTCH_WARNING ? "warn" : hutch_severity_name(e->severity), "file",
                                 json_text(e->subject), "line", (int) e->line, "column", (int) e->column, "reason",
                                 json_text(e->text), "fix", json_text(e->fix));
        default:
                return json_pack("{s:s, s:s, s:o, s:o, s:o}", "code", e->code, "severity",
                                 hutch_severity_name(e->severity), "subject", json_text(e->subject), "text",
                                 json_text(e->text), "fix", json_text(e->fix));
        }
}

json_t *json_events(const struct hutch_event *const *events) {
        json_t *a = json_array();

        for (; events && *events; events++)
                json_array_append_new(a, json_event(*events));
        return a;
}

static bool is_c1(const char *at, const char *end) {
        return at + 1 < end && at[0] == '\xc2' && (uint8_t) at[1] >= 0x80 && (uint8_t) at[1] < 0xa0;
}

/* jansson hands over whole characters. */
static int append(const char *text, size_t len, void *user) {
        const char *from = text, *end = text + len;
        struct buf *b = user;

        for (const char *at = text; at < end; at++) {
                bool c1 = is_c1(at, end);

                if (!c1 && *at != '\x7f')
                        continue;
                buf_put(b, from, (size_t) (at - from));
                at += c1;
                buf_printf(b, "\\u%04x", (unsigned) (uint8_t) *at);
                from = at + 1;
        }
        buf_put(b, from, (size_t) (end - from));
        return b->oom ? -1 : 0;
}

char *json_print(const json_t *value, size_t flags) {
        _cleanup_(buf_done) struct buf b = {0};

        return value && json_dump_callback(value, append, &b, flags) >= 0 ? buf_take_string(&b) : NULL;
}
