/* What every unit program shares: cmocka with the headers that it wants before it, and tests that are rows of a table.
 *
 * A row is a test of its own, with its own name in the TAP output: a table of forty rows that fails says which row, and
 * the other thirty-nine are still run. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "base/error.h"

typedef void (*unit_fn)(void **state);

/* Adds a test; `name` is copied, `row` becomes *state. */
void unit_add(const char *name, unit_fn fn, const void *row);

/* Runs what was added, in order; what main() returns. `subject` ("base/path") stands before each name. */
int unit_run(const char *subject);

/* Adds one test for each row of a table whose rows begin with their name. */
#define unit_add_rows(table, fn)                                                                                       \
        for (size_t _i_ = 0; _i_ < ARRAY_SIZE(table); _i_++)                                                           \
        unit_add(*(const char *const *) &(table)[_i_], fn, &(table)[_i_])

/* A failure with a message of ours instead of cmocka's: what it is about is often not what the expression says. */
#define unit_check(condition, ...)                                                                                     \
        do                                                                                                             \
                if (!(condition))                                                                                      \
                        fail_msg(__VA_ARGS__);                                                                         \
        while (0)

/* Strings of which either may be NULL. */
void unit_same(const char *what, const char *got, const char *want);

/* A private directory for this program, made in $HUTCH_TMP or /tmp and removed at the end. */
const char *unit_folder(void);

/* $HUTCH_SRC, or the tree that this program was built from. */
const char *unit_source(void);

/* Random numbers that are the same in every run. */
uint32_t unit_random(uint32_t *seed);
