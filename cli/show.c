/* What is shown of a run's events: by their severity, and by whether a person reads along. */
#include "cli.h"

#include <unistd.h>

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

void cli_show_events(const hutch_event *const *events) {
        for (; events && *events; events++)
                cli_show_event(*events);
}
