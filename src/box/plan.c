/* From a policy and a request to a plan: the facts are gathered, the backend is chosen, and src/plan does the rest. */
#include <errno.h>
#include <limits.h>

#include "../base/text.h"
#include "../host/beside.h"
#include "box.h"
#include "docker.h"

extern char **environ;

/* A container's network as another tool's configuration names it; what the policy itself says about the network wins.
 */
static int open_container_network(struct hutch_policy *p, struct hutch_error *err) {
        return policy_set(p, KEY_NETWORK, "open", policy_origin(p, KEY_CONTAINER_NETWORK), err);
}

static bool opens_container_network(const struct hutch_policy *p, const struct backend *backend) {
        return backend->traits & TRAIT_IMAGE && policy_number(p, KEY_CONTAINER_NETWORK) != CONTAINER_NETWORK_NONE &&
               !policy_is_set(p, KEY_NETWORK) && p->n_hosts == 0;
}

/* Programs and packages of the caller's home. With --as user a box gets nothing of that home; sessions and shells are
 * another user by default, and have them unless the option is given. */
static bool needs_programs(const struct hutch_policy *policy, bool session) {
        if (policy_flag(policy, KEY_BARE))
                return false;
        if (policy_number(policy, KEY_IDENTITY) != HUTCH_AS_USER)
                return true;
        return (session || policy->preset == HUTCH_PRESET_SESSION) && !policy_is_set(policy, KEY_IDENTITY);
}

int make_plan(const struct hutch_policy *policy, const struct hutch_request *request, const struct host_facts *facts,
              const char *shell, struct plan **ret, struct hutch_error *err) {
        _cleanup_(survey_freep) struct survey *survey = NULL;
        _cleanup_(policy_freep) struct hutch_policy *extended = NULL, *present = NULL;
        const struct backend *backend;
        struct host_facts full = *facts;
        struct offers offers;
        struct hutch_error reason = {0};
        char tools[PATH_MAX];
        struct plan_input input = {.request = request, .facts = &full, .offers = &offers};
        int r = 0;

        input.session = shell != NULL;
        input.shell = shell && shell[0] ? shell : NULL;

        if (box_drop_missing(policy, &present) < 0)
                return error_oom(err);
        if (present)
                policy = present;
        if (policy_flag(policy, KEY_DOCKER)) {
                r = policy_copy(policy, &extended) < 0 ? error_oom(err) : docker_attach(extended, environ, err);
                policy = extended;
        }
        input.policy = policy;
        if (r >= 0)
                r = policy_validate(policy, err);
        if (r < 0) {
                error_stage(err, "policy");
                return r;
        }
        r = backend_choose(backend_rows, policy_text(policy, KEY_ISOLATION), facts, &backend, err);
        if (r < 0) {
                error_stage(err, "backend");
                return r;
        }
        if (opens_container_network(policy, backend)) {
                if (!extended && policy_copy(policy, &extended) < 0)
                        return error_oom(err);
                r = open_container_network(extended, err);
                if (r < 0)
                        return r;
                input.policy = policy = extended;
        }
        r = survey_make(policy, environ, &survey, err);
        if (r < 0)
                return r;
        if (needs_programs(policy, input.session)) {
                _cleanup_(freep) char *word = NULL;

                if (request->command && text_first_word(request->command, &word) < 0)
                        return error_oom(err);
                r = survey_look_for_command(survey, policy,
                                            input.session      ? NULL
                                            : request->command ? word
                                            : request->argv    ? request->argv[0]
                                                               : NULL,
                                            policy_dir(policy));
                if (r < 0)
                        return error_oom(err);
        }
        if (policy_number(policy, KEY_COW_SYSTEM) && host_find_beside("box-tools", tools) == 0) {
                survey->tools = realpath(tools, NULL);
                if (!survey->tools)
                        return error_oom(err);
        }
        if (policy_wants_group(policy))
                full.cgroups = host_cgroups_read();
        backend->offer(policy, &full, &offers);
        if (backend_is_automatic(policy_text(policy, KEY_ISOLATION)) && backend != backend_rows[0] &&
            backend_rows[0]->check(facts, &reason) < 0)
                input.instead = &reason;
        input.survey = survey;
        input.backend = backend->name;
        input.traits = backend->traits;
        return plan_make(&input, ret, err);
}
