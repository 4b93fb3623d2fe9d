/* See guess.h. A line that ends in one of three errors names a path somewhere; the plan shows how the box treats that
 * path. Where the plan gives no reason for the error, nothing is reported: the command may have failed for other
 * reasons. */
#include "guess.h"

#include <stdio.h>

#include "../base/path.h"
#include "../base/text.h"
#include "../plan/why.h"

#define GUESSES_MOST 3
#define SEPARATORS " \t'\"`\xe2\x80\x98\x99(),;[]<>"

enum cause { CAUSE_NONE, CAUSE_READ_ONLY, CAUSE_DENIED, CAUSE_MISSING };

static enum cause cause_of(const char *line) {
        static const struct {
                const char *text;
                enum cause cause;
        } texts[] = {
                {"Read-only file system", CAUSE_READ_ONLY},
                {"EROFS", CAUSE_READ_ONLY},
                {"Permission denied", CAUSE_DENIED},
                {"EACCES", CAUSE_DENIED},
                {"could not write config file", CAUSE_READ_ONLY},
                {"could not lock config file", CAUSE_READ_ONLY},
                {"No such file or directory", CAUSE_MISSING},
                {"ENOENT", CAUSE_MISSING},
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (strstr(line, texts[i].text))
                        return texts[i].cause;
        return CAUSE_NONE;
}

static bool explains(enum cause cause, enum place place, const char *path) {
        switch (cause) {
        case CAUSE_READ_ONLY:
        case CAUSE_DENIED:
                return place == PLACE_READ || place == PLACE_SEALED || place == PLACE_HIDDEN;
        case CAUSE_MISSING: /* only what the host has is missed because of the box */
                return (place == PLACE_ABSENT || place == PLACE_OWN || place == PLACE_HIDDEN) &&
                       access(path, F_OK) == 0;
        default:
                return false;
        }
}

/* One word of the line, as a path of the box. */
static bool try_word(const struct plan *plan, enum cause cause, const char *word, struct report *report) {
        _cleanup_(freep) char *path = NULL;
        struct place_answer a;
        struct hutch_event event;
        char text[1024];

        if (!strchr(word, '/') && !strchr(word, '.'))
                return false;
        if (path_make_absolute(word, plan->cwd, &path) < 0 || streq(path, "/") || streq(path, plan->cwd))
                return false;
        plan_look_up(plan, path, &a);
        if (!explains(cause, a.place, path))
                return false;
        snprintf(text, sizeof(text), "a guess: %.400s is %s: %s", path, place_name(a.place), a.rule);
        text_clean_in_place(text);
        text_clean_in_place(a.fix);
        event = event_notice(NOTICE_GUESS, path, a.fix[0] ? a.fix : NULL, text);
        report_event(report, &event);
        return true;
}

/* A name without a directory: what was to be written is in the directory that the command started in. */
static bool try_directory(const struct plan *plan, enum cause cause, struct report *report) {
        struct hutch_event event;
        struct place_answer a;
        char text[1024];

        if (cause != CAUSE_READ_ONLY)
                return false;
        plan_look_up(plan, plan->cwd, &a);
        if (a.place != PLACE_READ)
                return false;
        snprintf(text, sizeof(text), "a guess: %.400s is %s: %s", plan->cwd, place_name(a.place), a.rule);
        text_clean_in_place(text);
        event = event_notice(NOTICE_GUESS, plan->cwd, a.fix[0] ? a.fix : NULL, text);
        report_event(report, &event);
        return true;
}

/* What package managers print when they do not reach their registry, and the profile that allows it. */
static bool guess_registry(const struct plan *plan, const char *text, struct report *report) {
        static const struct {
                const char *host, *profile;
        } registries[] = {
                {"registry.npmjs.org", "node"},   {"pypi.org", "python"},      {"host='pypi", "python"},
                {"': /simple/", "python"},        {"index.crates.io", "rust"}, {"static.crates.io", "rust"},
                {"files.pythonhosted", "python"}, {"proxy.golang.org", "go"},
        };
        struct hutch_event event;
        char line[128], fix[128];

        if (plan->net_open || plan->network.outbound || !(plan->traits & TRAIT_OWN_NET))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(registries); i++) {
                if (!strstr(text, registries[i].host))
                        continue;
                snprintf(line, sizeof(line), "a guess: the command needs packages from a registry");
                snprintf(fix, sizeof(fix),
                         "--profile %s, or 'hutch trust --profile %s' for every run in this workspace",
                         registries[i].profile, registries[i].profile);
                event = event_notice(NOTICE_GUESS, registries[i].profile, fix, line);
                report_event(report, &event);
                return true;
        }
        return false;
}

static bool guess_line(const struct plan *plan, char *line, struct report *report) {
        enum cause cause = cause_of(line);

        if (cause == CAUSE_NONE)
                return false;
        for (char *next = line, *word; (word = strsep(&next, SEPARATORS));) {
                size_t n = strlen(word);

                while (n > 0 && strchr(":.", word[n - 1]))
                        word[--n] = 0;
                if (n > 0 && try_word(plan, cause, word, report))
                        return true;
        }
        return try_directory(plan, cause, report);
}

void guess_add(const struct plan *plan, const char *tail, size_t len, struct report *report) {
        _cleanup_(freep) char *copy = calloc(1, len + 1);
        unsigned n = 0;

        for (size_t i = 0; copy && i < len; i++)
                copy[i] = tail[i] ? tail[i] : ' ';

        if (copy && guess_registry(plan, copy, report))
                n++;
        for (char *next = copy, *line; next && n < GUESSES_MOST && (line = strsep(&next, "\r\n"));)
                n += guess_line(plan, line, report);
}
