/* See filter.h. The programs are made when hutch is built, by filter-gen.c. */
#include "filter.h"

#include "filter_program.h"

#define FILTER(program)                                                                                                \
        { program, ARRAY_SIZE(program) }

static const struct filter closed = FILTER(program_closed), nested = FILTER(program_nested);

/* By what Landlock lacks: cutting files (3), scoping signals (6). */
static const struct filter landlock[3][3] = {
        [FILTER_DENY] = {FILTER(program_landlock_1), FILTER(program_landlock_3), FILTER(program_landlock_6)},
        [FILTER_RULES] = {FILTER(program_rules_1), FILTER(program_rules_3), FILTER(program_rules_6)},
        [FILTER_OPEN] = {FILTER(program_open_1), FILTER(program_open_3), FILTER(program_open_6)},
};

const struct filter *filter_for(bool allow_nested) {
        return allow_nested ? &nested : &closed;
}

const struct filter *filter_for_landlock(enum filter_network network, int abi) {
        return &landlock[network][abi >= 6 ? 2 : abi >= 3 ? 1 : 0];
}
