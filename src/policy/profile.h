/* Profiles: policy files that come with hutch (data/profiles, compiled in), chosen by the command's name or --profile.
 *
 * A profile is a policy file with one further key, `profile`:
 *
 *   profile:
 *     summary: what it is for, one line
 *     commands: [claude]            # on one line: the build makes an index of it
 *     files: [package.json]         # in the workspace, for profiles that a workspace's files suggest
 *
 * Its paths may be missing on a host: those are left out without a word. */
#pragma once

#include "node.h"
#include "policy.h"

struct profile {
        char *name, *summary;
        char **commands, **files;
        struct node *root;
};

/* The profiles that come with hutch, by index and by name; NULL past the last, or unknown. */
const char *profile_builtin_name(size_t index);
const char *profile_builtin_text(const char *name);
const char *profile_for_command(const char *command); /* by the base name; NULL: none */
const char *profile_suggest(const char *name);

int profile_parse(const char *name, const char *text, size_t len, struct profile **ret, struct hutch_error *err);
void profile_free(struct profile *profile);
void profile_freep(struct profile **profile);

/* Its settings, as a separate policy. */
int profile_read(const struct profile *profile, struct hutch_policy *p, struct hutch_error *err);
