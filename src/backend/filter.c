/* See filter.h. The programs are made when hutch is built, by filter-gen.c. */
#include "filter.h"

#include "filter_program.h"

static const struct filter closed = {program_closed, ARRAY_SIZE(program_closed)};
static const struct filter nested = {program_nested, ARRAY_SIZE(program_nested)};

const struct filter *filter_for(bool allow_nested) {
        return allow_nested ? &nested : &closed;
}
