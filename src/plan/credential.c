/* The environment of a box that uses credentials: the variables that hold them stay outside, and those by which
 * programs find a host lead to the one inside. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/strv.h"
#include "../net/credential.h"
#include "plan.h"

static const char *const defaults[] = {
#include "credentials.h"
};

/* What a person set is left alone; what was merely passed is not. */
static bool is_set_by_person(const struct plan_input *in, const char *name) {
        for (size_t i = 0; i < in->policy->n_env; i++) {
                const struct env_rule *rule = &in->policy->env[i];

                if (rule->value && streq(rule->name, name) && !startswith(rule->origin, "profile "))
                        return true;
        }
        for (const char *const *e = in->request->env; e && *e; e++)
                if (startswith(*e, name) && (*e)[strlen(name)] == '=')
                        return true;
        return false;
}

static bool is_blocked_by_person(const struct plan_input *in, const char *name) {
        for (char **one = policy_list(in->policy, KEY_ENV_BLOCK); one && *one; one++)
                if (fnmatch(*one, name, 0) == 0)
                        return true;
        return false;
}

int plan_block_credentials(struct plan *plan) {
        for (char **text = plan->network.credentials; text && *text; text++) {
                struct hutch_error ignored;
                struct credential c;
                int r = credential_parse(*text, &c, &ignored);

                if (r >= 0)
                        r = strv_push(&plan->env_block, c.variable);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_default(struct plan *plan, const struct plan_input *in, const struct credential *c, const char *line,
                       plan_set_fn set) {
        const char *name = line + strcspn(line, " ") + 1, *value = name + strcspn(name, " ") + 1;
        _cleanup_(freep) char *variable = strndup(name, (size_t) (value - name - 1)), *text = NULL;

        if (!variable)
                return -ENOMEM;
        if (is_set_by_person(in, variable) || is_blocked_by_person(in, variable))
                return 0;
        if (!startswith(value, "${URL}"))
                return set(plan, variable, value, "credential");
        if (asprintf(&text, "http://%s" CREDENTIAL_SUFFIX "%s", c->host, value + strlen("${URL}")) < 0)
                return -ENOMEM;
        return set(plan, variable, text, "credential");
}

int plan_add_credential_env(struct plan *plan, const struct plan_input *in, plan_set_fn set) {
        int r = 0;

        for (char **text = plan->network.credentials; r >= 0 && text && *text; text++) {
                struct hutch_error ignored;
                struct credential c;

                r = credential_parse(*text, &c, &ignored);
                for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(defaults); i++)
                        if (startswith(defaults[i], c.host) && defaults[i][strlen(c.host)] == ' ')
                                r = add_default(plan, in, &c, defaults[i], set);
        }
        return r;
}
