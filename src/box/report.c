/* The events of a run, and the caller's log. */
#include <stdarg.h>
#include <stdio.h>

#include "../base/text.h"
#include "box.h"

void report_event(void *data, const struct hutch_event *event) {
        struct report *report = data;

        events_add(&report->events, event);
        if (report->request->on_event)
                report->request->on_event(report->request->user, event);
        report_log(report, event->severity, "%s: %s: %s", hutch_event_kind_name(event->kind), event->code, event->text);
}

void report_log(const struct report *report, hutch_severity severity, const char *format, ...) {
        char line[EVENT_TEXT_MOST];
        va_list args;

        if (!report->request->on_log)
                return;
        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        text_clean_in_place(line);
        report->request->on_log(report->request->user, severity, line);
}
