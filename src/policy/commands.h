/* Which commands a policy lets a box execute: commands.allow and commands.deny.
 *
 * An entry is the name of a program ("curl", "python3.*"), the absolute path of one, or with a "/" at the end a
 * directory whose programs are meant; "default" in the list of what is allowed means data/commands. A denied
 * command is denied even where it is allowed as well; an empty list of what is allowed allows everything else. */
#pragma once

#include "policy.h"

bool policy_has_commands(const struct hutch_policy *p);

/* The list of what is allowed with "default" replaced; NULL: everything. 0 or -ENOMEM. */
int policy_allowed_commands(const struct hutch_policy *p, char ***ret);

/* Whether a command may be executed, by the lists alone. *ret_rule (may be NULL): the entry that denies it, or NULL
 * where none allows it. */
bool policy_allows_command(const struct hutch_policy *p, const char *command, const char **ret_rule);

/* Whether an entry is about the program of that path or name. */
bool command_matches(const char *entry, const char *command);

int check_command(const char *entry, struct hutch_error *err);
