/* Policy files: a YAML tree into a policy, by the rows of keys.def and no other list.
 *
 * Every mistake of a file is reported, not only the first: each is an event of the policy (code "policy_invalid",
 * subject FILE:LINE:COLUMN), and the error that is returned names the first. A file is read into a separate policy, so
 * that one with mistakes changes nothing; policy_merge() puts it over what applied before. */
#pragma once

#include "node.h"
#include "policy.h"

/* `name` is what messages and origins call the file. A relative path is seen from the policy's base_dir. */
int policy_read_yaml(struct hutch_policy *p, const char *name, const char *text, size_t len, struct hutch_error *err);

/* The same from a tree; `own` is one further key at its top that the caller reads itself, or NULL. */
int policy_read_node(struct hutch_policy *p, const char *name, const struct node *root, const char *own,
                     struct hutch_error *err);
