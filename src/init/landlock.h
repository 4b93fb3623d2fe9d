/* Landlock rulesets, for the ABI that the kernel supports. */
#pragma once

#include <linux/landlock.h>

#include "../base/error.h"
#include "../host/sys.h"

#define LANDLOCK_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_DEVICES ((uint64_t) (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK))

/* Every right on files in this ABI. */
uint64_t landlock_handled(int abi);

/* A ruleset that grants nothing yet. net and scoped apply as far as the ABI supports them. */
int landlock_new(int abi, uint64_t net, uint64_t scoped, int *ret, struct hutch_error *err);

struct init_input;

/* All rules of a box whose commands are restricted (commands.c). */
int init_allow_commands(const struct init_input *in, int ruleset, uint64_t handled, struct hutch_error *err);

/* Grants rights on a path and everything beneath it. A path that does not exist needs no rule. */
int landlock_allow(int ruleset, const char *path, uint64_t rights, struct hutch_error *err);
