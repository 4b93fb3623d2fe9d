/* What is shown of a run's events: by their severity, and by whether a person reads along. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

#define DENIALS_MOST 20 /* a line each */

static bool is_shown(const hutch_event *event) {
        return event->severity >= HUTCH_WARNING || (event->severity == HUTCH_NOTICE && isatty(STDERR_FILENO));
}

void cli_show_event(const hutch_event *event) {
        const char *label = event->severity >= HUTCH_WARNING ? "warning" : "note";

        if (!is_shown(event))
                return;
        if (event->fix)
                cli_complain("%s: %s (try: %s)", label, event->text, event->fix);
        else
                cli_complain("%s: %s", label, event->text);
}

static bool is_repeated(const hutch_event *const *first, const hutch_event *event) {
        const char *what = event->fix ? event->fix : event->subject;

        for (; *first != event; first++) {
                const char *other = (*first)->fix ? (*first)->fix : (*first)->subject;

                if (what && other && !strcmp(what, other))
                        return true;
        }
        return false;
}

void cli_show_denials(const hutch_result *result) {
        size_t shown = 0, more = 0;

        if (result->exit_code == 0 || !isatty(STDERR_FILENO))
                return;
        for (const hutch_event *const *e = result->denials; e && *e; e++) {
                const char *subject = (*e)->subject ? (*e)->subject : "?";

                if (is_repeated(result->denials, *e))
                        continue;
                if (shown == DENIALS_MOST) {
                        more++;
                        continue;
                }
                shown++;
                if ((*e)->fix)
                        cli_complain("refused %s: %s (try: %s)", subject, (*e)->text, (*e)->fix);
                else
                        cli_complain("refused %s: %s", subject, (*e)->text);
        }
        if (more > 0)
                cli_complain("refused %zu more: --json has them all", more);
}

void cli_show_events(const hutch_event *const *events) {
        for (; events && *events; events++)
                cli_show_event(*events);
}
