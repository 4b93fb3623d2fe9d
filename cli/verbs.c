/* The table of verbs; see verbs.h. */
#include "verbs.h"

#include <string.h>

#define VERB_ROW(name) &verb_##name,
const struct verb *const cli_verbs[] = {VERBS(VERB_ROW) NULL};
#undef VERB_ROW

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
