/* Profiles: policy files that come with hutch (data/profiles, compiled in), chosen by the command's name or --profile.
 *
 * A profile is a policy file with one further key, `profile`:
 *
 *   profile:
 *     summary: what it is for, one line
 *     commands: [claude]            # on one line: the build makes an index of it
 *     files: [package.json]         # of a language: it stands beside the command's own profile
 *     arguments: [--no-sandbox]     # behind the command's name: its own sandbox stands down, unless --allow-nested
 *     urls: [X_BASE_URL]            # variables of the caller's: the service that the command is to use instead
 *     keep:                         # files that the command replaces at each save: see struct kept_rule
 *       - ~/.x/auth.json
 *       - {path: ~/.x.json, keys: [theme, projects.*.cost]}
 *
 * Its paths may be missing on a host: those are left out without a word. Of filesystem.write, a run of the profile's
 * own command makes them, as the command would: a directory where the path ends with a slash, else a file. */
#pragma once

#include "node.h"
#include "policy.h"

struct profile {
        char *name, *summary;
        char **commands, **files, **urls, **arguments;
        struct node *root;
        bool accepted; /* by a person for the workspace, see src/trust: explain shows it */
};

/* The profiles that come with hutch, by index and by name; NULL past the last, or unknown. */
const char *profile_builtin_name(size_t index);
const char *profile_builtin_text(const char *name);
const char *profile_for_command(const char *command); /* by the base name; NULL: none */
const char *profile_suggest(const char *name);

int profile_parse(const char *name, const char *text, size_t len, struct profile **ret, struct hutch_error *err);
void profile_free(struct profile *profile);
void profile_freep(struct profile **profile);

/* Its settings, as a separate policy. `command` (may be NULL) is what runs. */
int profile_read(const struct profile *profile, const char *command, struct hutch_policy *p, struct hutch_error *err);
