/* See variables.h. */
#include "variables.h"

#include <fnmatch.h>

static const char *const safe[] = {"TERM", "COLORTERM", "NO_COLOR", "LANG", "TZ", "LC_*", NULL};

static const char *const running_code[] = {"NODE_OPTIONS", "NODE_PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP",
                                           "RUBYOPT",      "PERL5LIB",  "PERL5OPT",   "BASH_ENV",   "ENV",
                                           "CDPATH",       "PATH",      "LD_*",       "DYLD_*",     NULL};

static bool matches(const char *const *patterns, const char *name) {
        for (; patterns && *patterns; patterns++)
                if (fnmatch(*patterns, name, 0) == 0)
                        return true;
        return false;
}

bool variable_runs_code(const char *name) {
        return matches(running_code, name);
}

bool policy_blocks_variable(const struct hutch_policy *p, const char *name) {
        return matches((const char *const *) policy_list(p, KEY_ENV_BLOCK), name);
}

bool policy_passes_by_default(const struct hutch_policy *p, const char *name) {
        return matches(policy_is_set(p, KEY_ENV_ONLY) ? (const char *const *) policy_list(p, KEY_ENV_ONLY) : safe,
                       name);
}

bool policy_passes_variable(const struct hutch_policy *p, const char *name) {
        bool passes = policy_passes_by_default(p, name);

        if (!name[0] || policy_blocks_variable(p, name) || variable_runs_code(name))
                return false;
        for (size_t i = 0; i < p->n_env && !passes; i++)
                passes = !p->env[i].value && fnmatch(p->env[i].name, name, 0) == 0;
        return passes;
}
