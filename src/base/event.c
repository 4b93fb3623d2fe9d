/* See event.h. */
#include "event.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
        const char *name;
        hutch_severity severity;
} notices[NOTICE_COUNT] = {
#define NOTICE_ROW(name, code, severity) [NOTICE_##name] = {code, HUTCH_##severity},
        NOTICES(NOTICE_ROW)
#undef NOTICE_ROW
};

const char *notice_name(enum notice code) {
        return notices[code].name;
}

struct hutch_event event_notice(enum notice code, const char *subject, const char *fix, const char *text) {
        return (struct hutch_event){.kind = HUTCH_EVENT_NOTICE,
                                    .severity = notices[code].severity,
                                    .code = notices[code].name,
                                    .subject = subject,
                                    .text = text,
                                    .fix = fix};
}

void event_free(struct hutch_event *event) {
        if (!event)
                return;
        free((char *) event->code);
        free((char *) event->subject);
        free((char *) event->text);
        free((char *) event->fix);
        free((char *) event->name);
        free((char *) event->address);
        free((char *) event->program);
        free(event);
}

void event_freep(struct hutch_event **event) {
        event_free(*event);
}

static bool same_text(const char *a, const char *b) {
        return a == b || (a && b && streq(a, b));
}

static bool same_event(const struct hutch_event *a, const struct hutch_event *b) {
        return a->kind == b->kind && streq(a->code, b->code) && same_text(a->subject, b->subject) &&
               a->line == b->line && a->column == b->column && same_text(a->text, b->text) &&
               same_text(a->address, b->address);
}

static int copy_text(const char *text, const char **ret) {
        *ret = text ? strndup(text, EVENT_TEXT_MOST) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

static int event_copy(const struct hutch_event *event, struct hutch_event **ret) {
        _cleanup_(event_freep) struct hutch_event *copy = calloc(1, sizeof(*copy));

        if (!copy)
                return -ENOMEM;
        copy->kind = event->kind;
        copy->severity = event->severity;
        copy->port = event->port;
        copy->line = event->line;
        copy->column = event->column;
        if (copy_text(event->code, &copy->code) < 0 || copy_text(event->subject, &copy->subject) < 0 ||
            copy_text(event->text, &copy->text) < 0 || copy_text(event->fix, &copy->fix) < 0 ||
            copy_text(event->name, &copy->name) < 0 || copy_text(event->address, &copy->address) < 0 ||
            copy_text(event->program, &copy->program) < 0)
                return -ENOMEM;
        *ret = take_ptr(copy);
        return 0;
}

/* Takes the event over, also on failure. */
static int add_taken(struct events *events, struct hutch_event *event) {
        struct hutch_event **grown = reallocarray(events->items, events->n + 2, sizeof(*grown));

        if (!grown) {
                event_free(event);
                return -ENOMEM;
        }
        events->items = grown;
        grown[events->n++] = event;
        grown[events->n] = NULL;
        return 0;
}

int events_add(struct events *events, const struct hutch_event *event) {
        struct hutch_event *copy;
        int r;

        for (size_t i = 0; i < events->n; i++)
                if (same_event(events->items[i], event))
                        return 0;
        if (events->n >= EVENTS_MOST) {
                events->dropped++;
                return 0;
        }
        r = event_copy(event, &copy);
        return r < 0 ? r : add_taken(events, copy);
}

int events_add_all(struct events *events, const struct events *more) {
        for (size_t i = 0; i < more->n; i++) {
                int r = events_add(events, more->items[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

int events_note(struct events *events, enum notice code, const char *subject, const char *fix, const char *format,
                ...) {
        struct hutch_event event;
        char text[EVENT_TEXT_MOST];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        event = event_notice(code, subject, fix, text);
        return events_add(events, &event);
}

void events_done(struct events *events) {
        for (size_t i = 0; i < events->n; i++)
                event_free(events->items[i]);
        free(events->items);
        *events = (struct events){0};
}

/* ---- the wire ---- */

void event_put(struct buf *b, const struct hutch_event *event) {
        wire_put_u32(b, event->kind);
        wire_put_u32(b, event->severity);
        wire_put_str(b, event->code);
        wire_put_str(b, event->subject);
        wire_put_str(b, event->text);
        wire_put_str(b, event->fix);
        wire_put_str(b, event->name);
        wire_put_str(b, event->address);
        wire_put_str(b, event->program);
        wire_put_u32(b, event->port);
        wire_put_u32(b, event->line);
        wire_put_u32(b, event->column);
}

int event_get(struct wire_reader *r, struct hutch_event **ret) {
        _cleanup_(event_freep) struct hutch_event *event = calloc(1, sizeof(*event));
        uint32_t kind, severity;

        if (!event)
                return -ENOMEM;
        kind = wire_get_u32(r);
        severity = wire_get_u32(r);
        event->code = wire_get_str(r);
        event->subject = wire_get_str(r);
        event->text = wire_get_str(r);
        event->fix = wire_get_str(r);
        event->name = wire_get_str(r);
        event->address = wire_get_str(r);
        event->program = wire_get_str(r);
        event->port = wire_get_u32(r);
        event->line = wire_get_u32(r);
        event->column = wire_get_u32(r);
        if (r->failed || kind > HUTCH_EVENT_PUBLISHED || severity > HUTCH_CRITICAL || !event->code || !event->text)
                return -EBADMSG;
        event->kind = (hutch_event_kind) kind;
        event->severity = (hutch_severity) severity;
        *ret = take_ptr(event);
        return 0;
}

void events_put(struct buf *b, const struct events *events) {
        wire_put_u32(b, (uint32_t) events->n);
        for (size_t i = 0; i < events->n; i++)
                event_put(b, events->items[i]);
}

int events_get(struct wire_reader *r, struct events *ret) {
        uint32_t n = wire_get_count(r, 12 * sizeof(uint32_t));

        for (uint32_t i = 0; i < n; i++) {
                struct hutch_event *event;
                int failed = event_get(r, &event);

                if (failed >= 0)
                        failed = add_taken(ret, event);
                if (failed < 0) {
                        r->failed = true;
                        return failed;
                }
        }
        return 0;
}
