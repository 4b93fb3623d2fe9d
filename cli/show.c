/* What is shown of a run's events: by their severity, and by whether a person reads along. */
#include "cli.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DENIALS_MOST 20 /* a line each */

static void make_folders(char *path) {
        for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = 0;
                mkdir(path, 0700);
                *slash = '/';
        }
}

/* That another backend than the strongest was taken is shown once on a host. */
static bool is_first_time(const char *backend) {
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        char path[PATH_MAX];
        int n, fd;

        if (state && state[0] == '/')
                n = snprintf(path, sizeof(path), "%s/hutch/shown/%s", state, backend);
        else
                n = snprintf(path, sizeof(path), "%s/.local/state/hutch/shown/%s", home ? home : "", backend);
        if (n <= 0 || (size_t) n >= sizeof(path) || path[0] != '/')
                return false;
        make_folders(path);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return false;
        close(fd);
        return true;
}

static bool is_shown(const hutch_event *event) {
        if (strcmp(event->code, "backend_chosen") == 0)
                return isatty(STDERR_FILENO) && event->subject && is_first_time(event->subject);
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
                        cli_complain("refused connection to %s: %s (try: %s)", subject, (*e)->text, (*e)->fix);
                else
                        cli_complain("refused connection to %s: %s", subject, (*e)->text);
        }
        if (more > 0)
                cli_complain("refused connections to %zu more: --json has them all", more);
}

void cli_show_at_once(void *user, const hutch_event *event) {
        (void) user;
        cli_show_event(event);
}

void cli_show_events(const hutch_event *const *events) {
        for (; events && *events; events++)
                cli_show_event(*events);
}
