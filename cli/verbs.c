/* The verbs, in the order in which help lists them. */
#include "verbs.h"

#include <string.h>

/* One a line, so that two changes seldom meet. */
/* clang-format off */
const struct verb *const cli_verbs[] = {
        &verb_run,
        &verb_shell,
        &verb_session,
        &verb_boxes,
        &verb_diff,
        &verb_apply,
        &verb_discard,
        &verb_snapshot,
        &verb_restore,
        &verb_fork,
        &verb_export,
        &verb_import,
        &verb_exec,
        &verb_scan,
        &verb_wrap,
        &verb_explain,
        &verb_why,
        &verb_doctor,
        &verb_init,
        &verb_trust,
        &verb_profiles,
        &verb_image,
        &verb_help,
        &verb_version,
        NULL,
};
/* clang-format on */

/* Words that later versions use; a program of that name is run with `--` before it. */
static const char *const reserved[] = {"tui", "mcp", "batch"};

const struct verb *cli_find_verb(const struct verb *const *verbs, const char *name) {
        for (; *verbs; verbs++)
                if (!strcmp((*verbs)->name, name))
                        return *verbs;
        return NULL;
}

const char *cli_suggest_verb(const struct verb *const *verbs, const char *word) {
        const char *names[64];
        size_t n = 0;

        for (; *verbs && n < sizeof(names) / sizeof(names[0]); verbs++)
                names[n++] = (*verbs)->name;
        return hutch_suggest(word, names, n);
}

bool cli_is_reserved(const char *word) {
        for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
                if (!strcmp(reserved[i], word))
                        return true;
        return false;
}
