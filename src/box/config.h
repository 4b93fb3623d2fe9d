/* From files to a policy: the person's, the profile's, the workspace's, and what was given on the command line over
 * them. */
#pragma once

#include "../policy/policy.h"
#include "../trust/trust.h"

/* Reads one policy file over what p has. */
struct profile;

/* Allows the hosts of the profile's `urls` variables, with the variable as origin. */
int config_allow_urls(const struct profile *profile, const struct hutch_policy *caller, char *const *env,
                      struct hutch_policy *part, struct hutch_error *err);

int config_load_file(struct hutch_policy *p, const char *path, struct hutch_error *err);

/* Reads what applies beneath what p has: the command's profile, config.yaml and .jail of the person, .jail and
 * hutch.yaml of the workspace, --config. `command` chooses the profile (NULL: none is chosen by it); of shell
 * text it is the first word. `for_person`:
 * notices reach a person, so what is shown only once may be shown now. */
int config_load(struct hutch_policy *p, const char *command, bool for_person, char *const *env,
                struct hutch_error *err);

/* hutch's directories; NULL in *ret where no home is known. 0 or -ENOMEM. */
int config_dir(char *const *env, char **ret);
int config_state_dir(char *const *env, char **ret);

/* The text of a profile: the person's own ($XDG_CONFIG_HOME/hutch/profiles/NAME.yaml), or the one that comes with
 * hutch. */
int config_profile_text(const char *name, char *const *env, char **ret, struct hutch_error *err);

/* Whether something is seen for the first time by this person; it is not the next time. */
bool config_first_time(char *const *env, const char *what);

/* What a person decides on: the files' texts, or how they differ from what was accepted. */
int config_describe_trust(const struct trust *t, char **ret);
