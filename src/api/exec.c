/* Running scripts: hutch_exec() and hutch_exec_check().
 *
 * What runs is what was scanned: the text is copied into a private directory (scratch.c), and the copy is attached over
 * the script's own path, so that later changes to the file have no effect. A box without a separate root cannot show a
 * file elsewhere: there the file itself runs, after it was compared with what was scanned.
 *
 * The script's TMPDIR and HOME are a directory beside the copy. Its final content is listed in the result, collected on
 * request, and removed. */
#include <errno.h>
#include <fcntl.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "scratch.h"
#include "script.h"

struct job {
        struct hutch_exec_request request;
        struct hutch_policy *policy;
        struct problems problems;
        struct script script;
        struct events findings;
};

static void job_done(struct job *j) {
        policy_free(j->policy);
        free(j->problems.v);
        script_done(&j->script);
        events_done(&j->findings);
}

static int copy_or_make(const hutch_policy *policy, struct hutch_policy **ret, struct hutch_error *err) {
        int r;

        if (policy)
                return policy_copy(policy, ret) < 0 ? error_oom(err) : 0;
        r = hutch_policy_new(ret);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make a policy: %s", errno_text(-r));
        return policy_use_preset(*ret, HUTCH_PRESET_EXEC, err);
}

static int collect_findings(struct job *j) {
        for (size_t i = 0; i < hutch_findings_count(j->script.findings); i++) {
                const hutch_finding *f = hutch_findings_get(j->script.findings, i);
                struct hutch_event event = {.kind = HUTCH_EVENT_FINDING,
                                            .severity = f->severity,
                                            .code = f->rule,
                                            .subject = j->script.path,
                                            .text = f->reason,
                                            .fix = f->fix,
                                            .line = f->line,
                                            .column = f->column};

                if (j->request.run && j->request.run->on_event)
                        j->request.run->on_event(j->request.run->user, &event);
                if (events_add(&j->findings, &event) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int prepare(const hutch_policy *policy, const struct hutch_exec_request *request, struct job *j,
                   struct hutch_error *err) {
        int r;

        api_read_struct(request, sizeof(j->request), &j->request, sizeof(j->request));
        if (!j->request.script)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_exec: no script");
        r = copy_or_make(policy, &j->policy, err);
        if (r < 0)
                return r;
        script_prepare(&j->script, j->policy, &j->request, &j->problems);
        return j->problems.oom || collect_findings(j) < 0 ? error_oom(err) : 0;
}

/* ---- the box ---- */

static bool is_set(const struct job *j, const char *name) {
        for (size_t i = 0; i < j->policy->n_env; i++)
                if (streq(j->policy->env[i].name, name))
                        return true;
        return j->request.env && strv_find_assignment((char *const *) j->request.env, name);
}

/* The policy of one run: the private directory, the copy and the skill attached, as far as the backend attaches. */
static int attach(const struct job *j, const struct scratch_dir *dir, unsigned traits, struct hutch_policy **ret,
                  struct hutch_error *err) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL;
        int r = 0;

        if (policy_copy(j->policy, &p) < 0)
                return error_oom(err);
        if (traits && dir->tmp)
                r = policy_add_path(p, HUTCH_WRITE, dir->tmp, NULL, "temp_dir", err);
        if (r >= 0 && traits && j->script.skill[0])
                r = policy_add_path(p, HUTCH_READ, j->script.skill, NULL, "--skill-dir", err);
        if (r >= 0 && traits & TRAIT_OWN_ROOT)
                r = policy_add_path(p, HUTCH_READ, dir->script ? dir->script : j->script.path, j->script.path, "script",
                                    err);
        else if (r >= 0 && traits)
                r = policy_add_path(p, HUTCH_READ, j->script.path, NULL, "script", err);
        for (int i = 0; r >= 0 && dir->tmp && i < 2; i++)
                if (!is_set(j, i ? "HOME" : "TMPDIR"))
                        r = policy_add_env(p, i ? "HOME" : "TMPDIR", dir->tmp, "temp_dir", err);
        if (r < 0)
                return r;
        *ret = take_ptr(p);
        return 0;
}

static void make_request(const struct job *j, struct hutch_request *ret) {
        request_read(j->request.run, ret);
        ret->struct_size = sizeof(*ret);
        ret->command = NULL;
        ret->argv = (const char *const *) j->script.argv;
        if (j->request.env)
                ret->env = j->request.env;
        if (j->request.cwd)
                ret->cwd = j->request.cwd;
        if (j->request.timeout_ms)
                ret->timeout_ms = j->request.timeout_ms;
        if (j->request.stdin_data) {
                ret->streams[HUTCH_STDIN] = HUTCH_STREAM_DATA;
                ret->stdin_data = j->request.stdin_data;
                ret->stdin_len = j->request.stdin_len;
        }
}

/* Where the file itself runs, it must still be what was scanned. */
static int check_unchanged(const struct script *s, struct hutch_error *err) {
        _cleanup_(freep) char *text = NULL;
        size_t len;
        int r = read_whole_file(AT_FDCWD, s->path, s->len, &text, &len);

        if (r >= 0 && len == s->len && memcmp(text, s->text, len) == 0)
                return 0;
        return error_set(err, HUTCH_E_POLICY_REFUSED, ESTALE, "exec: %s changed while it was scanned: try again",
                         s->path);
}

static int backend_traits(const struct job *j, hutch_context *context, unsigned *ret, struct hutch_error *err) {
        const struct backend *backend;
        int r = backend_choose(backend_rows, policy_text(j->policy, KEY_ISOLATION), &context->facts, &backend, err);

        if (r < 0)
                return r;
        *ret = backend->traits;
        return r;
}

static int run_by(const struct job *j, const struct scratch_dir *dir, unsigned traits, hutch_context *context,
                  struct hutch_result **ret, struct hutch_error *err) {
        _cleanup_(policy_freep) struct hutch_policy *policy = NULL;
        struct hutch_request request;
        hutch_box *box;
        int r;

        r = attach(j, dir, traits, &policy, err);
        if (r < 0)
                return r;
        if (!(traits & TRAIT_OWN_ROOT))
                r = check_unchanged(&j->script, err);
        if (r < 0)
                return r;
        make_request(j, &request);
        r = hutch_box_open(policy, &(hutch_box_options){.struct_size = sizeof(hutch_box_options), .context = context},
                           &box, err);
        if (r < 0)
                return r;
        r = hutch_box_run(box, &request, ret, err);
        hutch_box_close(box);
        return r;
}

static int run(const struct job *j, const struct scratch_dir *dir, hutch_context *context, struct hutch_result **ret,
               struct hutch_error *err) {
        unsigned traits;
        int r;

        r = backend_traits(j, context, &traits, err);
        if (r < 0)
                return r;
        r = run_by(j, dir, traits, context, ret, err);
        /* `auto`, where only the launch found out that namespaces are refused. */
        if (r < 0 && traits & TRAIT_OWN_ROOT && context->facts.namespaces == NO &&
            backend_traits(j, context, &traits, NULL) >= 0 && !(traits & TRAIT_OWN_ROOT)) {
                hutch_result_free(take_ptr(*ret));
                r = run_by(j, dir, traits, context, ret, err);
        }
        return r;
}

/* A result for a script that was not started. */
static int refuse(struct job *j, const struct hutch_error *error, struct hutch_result **ret, struct hutch_error *err) {
        struct outcome outcome;
        struct buf output[3] = {0};
        struct events none = {0};
        struct output_files files = {0};

        outcome_clear(&outcome);
        outcome.exit_code = 125;
        outcome.error = *error;
        if (err)
                *err = *error;
        if (ret &&
            (result_new(NULL, &outcome, &none, output, NULL, ret) < 0 || result_add(*ret, &j->findings, &files) < 0))
                return error_oom(err);
        return error->errnum ? -error->errnum : -EINVAL;
}

static int run_with_context(const struct job *j, const struct scratch_dir *dir, struct hutch_result **ret,
                            struct hutch_error *err) {
        hutch_context *context = j->request.context;
        int r = 0;

        if (!context)
                r = hutch_context_new(HUTCH_WARDEN_PROCESS, &context, err);
        if (r >= 0)
                r = run(j, dir, context, ret, err);
        if (!j->request.context)
                hutch_context_free(context);
        return r;
}

int hutch_exec(const hutch_policy *policy, const hutch_exec_request *request, hutch_result **ret, hutch_error *err) {
        if (!request)
                return api_null(err, __func__, "request");
        _cleanup_(job_done) struct job j = {0};
        _cleanup_(output_files_done) struct output_files files = {0};
        _cleanup_(scratch_done) struct scratch_dir dir = {.parent = -1, .fd = -1};
        const hutch_problem *problem;
        struct hutch_result *result = NULL;
        struct hutch_error error = {0};
        const char *place;
        int r;

        r = prepare(policy, request, &j, &error);
        if (r < 0)
                return refuse(&j, &error, ret, err);
        problem = problems_first(&j.problems);
        if (problem) {
                error_set(&error, problem->code, problem->code == HUTCH_E_POLICY_REFUSED ? EACCES : EINVAL, "%s",
                          problem->message);
                if (streq(problem->part, "scan") && hutch_findings_count(j.script.findings) > 0)
                        error_set(&error, problem->code, EACCES,
                                  "refused to run %.300s: the scan has critical findings (see 'hutch scan')",
                                  j.script.path);
                return refuse(&j, &error, ret, err);
        }
        place = policy_text(j.policy, KEY_TEMP_DIR);
        r = scratch_make(place ? place : "/var/tmp", j.script.text, j.script.len, &dir, &error);
        if (r >= 0)
                r = run_with_context(&j, &dir, &result, &error);
        if (!result)
                return refuse(&j, &error, ret, err);
        if (scratch_list(&dir, &files) < 0)
                r = error_oom(&error);
        if (j.request.collect && result->error.code == HUTCH_OK) {
                int failed = scratch_collect(&dir, &files, j.request.collect, &error);

                if (failed < 0) {
                        r = failed;
                        result->error = error;
                        result->exit_code = 125;
                }
        }
        if (result_add(result, &j.findings, &files) < 0)
                r = error_oom(&error);
        if (err && r < 0)
                *err = error;
        if (ret)
                *ret = take_ptr(result);
        hutch_result_free(result);
        return r;
}

/* ---- everything that is wrong ---- */

static const struct {
        enum key key;
        int guarantee;
} limits[] = {
#define LIMIT(id, name, field, key, guarantee, label, unit, json) {KEY_##key, guarantee},
#include "../base/limits.def"
#undef LIMIT
};

static bool may_lack(size_t limit) {
        return limits[limit].guarantee >= 0;
}

/* Each limit that a host may lack is checked alone, so that each reports what it lacks; then everything else. */
static void check_plan(struct job *j, const struct host_facts *facts, unsigned traits) {
        const struct scratch_dir none = {.parent = -1, .fd = -1};
        struct hutch_request request;

        make_request(j, &request);
        for (size_t i = 0; i <= ARRAY_SIZE(limits); i++) {
                _cleanup_(policy_freep) struct hutch_policy *policy = NULL;
                _cleanup_(plan_freep) struct plan *plan = NULL;
                struct hutch_error error = {0};

                if (i < ARRAY_SIZE(limits) && (!may_lack(i) || !policy_is_set(j->policy, limits[i].key)))
                        continue;
                if (attach(j, &none, traits, &policy, &error) < 0 || !policy) {
                        problems_add(&j->problems, "plan", HUTCH_CRITICAL, &error);
                        return;
                }
                for (size_t k = 0; k < ARRAY_SIZE(limits); k++)
                        if (k != i && may_lack(k)) {
                                free(policy->values[limits[k].key].origin);
                                policy->values[limits[k].key] = (struct value){0};
                        }
                if (make_plan(policy, &request, facts, NULL, &plan, &error) < 0)
                        problems_add(&j->problems,
                                     i < ARRAY_SIZE(limits)              ? "limits"
                                     : strstr(error.message, "commands") ? "commands"
                                     : error.code == HUTCH_E_BACKEND_UNAVAILABLE ||
                                                     error.code == HUTCH_E_BACKEND_UNKNOWN
                                             ? "isolation"
                                             : "plan",
                                     HUTCH_CRITICAL, &error);
        }
}

/* One block: the pointers, and what they point to. */
static hutch_problem **list_problems(const struct problems *p) {
        hutch_problem **list = malloc((p->n + 1) * sizeof(*list) + p->n * sizeof(**list)), *v;

        if (!list)
                return NULL;
        v = (hutch_problem *) (list + p->n + 1);
        for (size_t i = 0; i < p->n; i++) {
                v[i] = p->v[i];
                list[i] = &v[i];
        }
        list[p->n] = NULL;
        return list;
}

int hutch_exec_check(const hutch_policy *policy, const hutch_exec_request *request, hutch_problem ***ret,
                     hutch_error *err) {
        if (!request)
                return api_null(err, __func__, "request");
        if (!ret)
                return api_null(err, __func__, "ret");
        _cleanup_(job_done) struct job j = {0};
        struct host_facts facts;
        const struct backend *backend;
        struct hutch_error error = {0};
        int r;

        r = prepare(policy, request, &j, err);
        if (r < 0)
                return r;
        r = host_facts_read(&facts, err);
        if (r < 0)
                return r;
        if (backend_choose(backend_rows, policy_text(j.policy, KEY_ISOLATION), &facts, &backend, &error) < 0)
                problems_add(&j.problems, "isolation", HUTCH_CRITICAL, &error);
        else if (j.script.argv)
                check_plan(&j, &facts, j.script.text ? backend->traits : 0);
        *ret = j.problems.oom ? NULL : list_problems(&j.problems);
        return *ret ? 0 : error_oom(err);
}
