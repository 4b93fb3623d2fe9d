/* The verbs of the command, in the order in which help lists them; each is defined in the file of its subject. One a
 * line, so that two changes seldom meet. */
#pragma once

#include "cli.h"

/* clang-format off */
#define VERBS(X) \
        X(run) \
        X(shell) \
        X(session) \
        X(boxes) \
        X(diff) \
        X(apply) \
        X(discard) \
        X(snapshot) \
        X(restore) \
        X(fork) \
        X(export) \
        X(import) \
        X(exec) \
        X(scan) \
        X(wrap) \
        X(explain) \
        X(why) \
        X(doctor) \
        X(init) \
        X(trust) \
        X(profiles) \
        X(image) \
        X(help) \
        X(version)
/* clang-format on */

#define VERB_DECLARATION(name) extern const struct verb verb_##name;
VERBS(VERB_DECLARATION)
#undef VERB_DECLARATION
