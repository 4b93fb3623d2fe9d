/* See script.h. */
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "../policy/commands.h"
#include "../policy/variables.h"

#define SCRIPT_MOST ((size_t) 16 << 20)

static const char *const runtimes[] = {"python", "node", "shell", "binary"};

/* ---- problems ---- */

void problems_add(struct problems *p, const char *part, hutch_severity severity, const struct hutch_error *error) {
        hutch_problem *grown = reallocarray(p->v, p->n + 1, sizeof(*grown));

        if (!grown) {
                p->oom = true;
                return;
        }
        p->v = grown;
        for (size_t i = 0; i < p->n; i++)
                if (streq(p->v[i].message, error->message))
                        return;
        p->v[p->n] = (hutch_problem){.struct_size = sizeof(*grown), .code = error->code, .severity = severity};
        snprintf(p->v[p->n].part, sizeof(p->v[p->n].part), "%s", part);
        snprintf(p->v[p->n].message, sizeof(p->v[p->n].message), "%.511s", error->message);
        p->n++;
}

const hutch_problem *problems_first(const struct problems *p) {
        for (size_t i = 0; i < p->n; i++)
                if (p->v[i].severity == HUTCH_CRITICAL)
                        return &p->v[i];
        return NULL;
}

static void add(struct problems *p, const char *part, const struct hutch_error *error) {
        problems_add(p, part, HUTCH_CRITICAL, error);
}

/* ---- words ---- */

/* {baseDir} becomes the directory of the skill. */
static char *fill_in(const char *word, const char *dir) {
        static const char mark[] = "{baseDir}";
        const char *at = dir[0] ? strstr(word, mark) : NULL;
        _cleanup_(freep) char *rest = NULL;
        char *out;

        if (!at)
                return strdup(word);
        rest = fill_in(at + sizeof(mark) - 1, dir);
        return rest && asprintf(&out, "%.*s%s%s", (int) (at - word), word, dir, rest) >= 0 ? out : NULL;
}

static int make_argv(struct script *s, const struct hutch_exec_request *request) {
        int r = s->interpreter ? strv_push(&s->argv, s->interpreter) : 0;

        if (r < 0)
                return r;
        r = strv_push(&s->argv, s->path);
        for (const char *const *arg = request->args; r >= 0 && arg && *arg; arg++) {
                char *word = fill_in(*arg, s->skill);

                r = word ? strv_push_take(&s->argv, word) : -ENOMEM;
        }
        return r;
}

/* ---- the script ---- */

static int read_script(struct script *s, const char *name, struct hutch_error *err) {
        _cleanup_(freep) char *path = fill_in(name, s->skill);
        _cleanup_(closep) int fd = -1;
        struct stat st;
        int r;

        if (!path)
                return error_oom(err);
        if (!realpath(path, s->path) || (fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0 ||
            fstat(fd, &st) < 0) {
                r = errno;
                snprintf(s->path, sizeof(s->path), "%s", path);
                return error_set(err, r == ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, r, "exec: %s: %s", path,
                                 errno_text(r));
        }
        if (!S_ISREG(st.st_mode))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "exec: %s: not a regular file", path);
        r = read_whole_fd(fd, SCRIPT_MOST, &s->text, &s->len);
        if (r == -EFBIG || (size_t) st.st_size > SCRIPT_MOST)
                return error_set(err, HUTCH_E_USAGE, EFBIG, "exec: %s: larger than 16M", path);
        return r < 0 ? error_set(err, HUTCH_E_IO, r, "exec: %s: %s", path, errno_text(-r)) : 0;
}

static int choose_runtime(struct script *s, const char *wanted, struct hutch_error *err) {
        const char *near;

        if (!wanted) {
                s->runtime = hutch_detect_runtime(s->path);
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
                if (streq(wanted, runtimes[i])) {
                        s->runtime = runtimes[i];
                        return 0;
                }
        near = text_nearest(wanted, runtimes, ARRAY_SIZE(runtimes));
        return error_set(err, HUTCH_E_USAGE, EINVAL, "--runtime: '%s' is not one of python, node, shell, binary%s%s%s",
                         wanted, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- interpreters: of the system, or named by a person's configuration; never found by PATH ---- */

static const char *const system_dirs[] = {"/usr/bin", "/bin", "/usr/local/bin"};

static const char *configured(const struct hutch_policy *p, const char *runtime) {
        for (char **entry = policy_list(p, KEY_RUNTIMES); entry && *entry; entry++)
                if (startswith(*entry, runtime) && (*entry)[strlen(runtime)] == '=')
                        return *entry + strlen(runtime) + 1;
        return NULL;
}

/* The program that the first line names, where it is one of the same runtime: bash for a shell script, python3.12. */
static bool first_line_names(const struct script *s, char *ret, size_t room) {
        size_t n = streq(s->runtime, "python") ? 6 : streq(s->runtime, "node") ? 4 : 0;

        if (!text_interpreter(s->text, s->len, ret, room))
                return false;
        if (n)
                return strncmp(ret, s->runtime, n) == 0 && ret[n + strspn(ret + n, "0123456789.")] == 0;
        return script_is_shell(ret);
}

/* What an image has is known to the container alone: there an interpreter is looked up by the box's PATH, which no
 * script and no variable of the caller's chooses. */
static bool is_in_image(const struct hutch_policy *p) {
        const char *name = policy_text(p, KEY_ISOLATION);
        const struct backend *backend = name ? backend_of(name) : NULL;

        return backend && backend->traits & TRAIT_IMAGE;
}

static int find_interpreter(struct script *s, const struct hutch_policy *p, struct hutch_error *err) {
        const char *name = configured(p, s->runtime);
        bool explicit = name != NULL;
        char named[64];
        struct stat st;

        if (streq(s->runtime, "binary"))
                return 0;
        if (!explicit)
                name = first_line_names(s, named, sizeof(named)) ? named
                       : streq(s->runtime, "python")             ? "python3"
                       : streq(s->runtime, "node")               ? "node"
                                                                 : "sh";
        if (is_in_image(p)) {
                s->interpreter = strdup(name);
                return s->interpreter ? 0 : error_oom(err);
        }
        if (name[0] == '/') {
                if (stat(name, &st) < 0 || !S_ISREG(st.st_mode) || access(name, X_OK) < 0)
                        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT, "runtimes: %s: %s is not a program",
                                         s->runtime, name);
                s->interpreter = strdup(name);
                return s->interpreter ? 0 : error_oom(err);
        }
        for (size_t i = 0; i < ARRAY_SIZE(system_dirs); i++) {
                char path[PATH_MAX];

                snprintf(path, sizeof(path), "%s/%s", system_dirs[i], name);
                if (access(path, X_OK) < 0)
                        continue;
                s->interpreter = strdup(path);
                return s->interpreter ? 0 : error_oom(err);
        }
        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                         "exec: no %s in /usr/bin, /bin or /usr/local/bin: install it, or name one with --interpreter "
                         "%s=PATH",
                         name, s->runtime);
}

/* ---- where it comes from ---- */

static int strength(const char *name) {
        const struct backend *backend = backend_of(name);

        return !backend ? 1 : !backend->traits ? 0 : backend->traits & TRAIT_IMAGE ? 2 : 1;
}

static int choose_isolation(struct hutch_policy *p, const struct hutch_exec_request *request, struct hutch_error *err) {
        static const char *const levels[] = {"none", "auto", "container"};
        const char *level, *origin;
        int r = 0;

        if (request->isolation)
                r = policy_set(p, KEY_ISOLATION, request->isolation, "isolation", err);
        if (r >= 0 && request->origin)
                r = policy_set(p, KEY_ORIGIN, request->origin, "origin", err);
        if (r < 0 || !policy_is_set(p, KEY_ORIGIN))
                return r;
        origin = key_name(KEY_ORIGIN, policy_number(p, KEY_ORIGIN));
        level = levels[policy_number(p, KEY_ORIGIN)];
        for (char **entry = policy_list(p, KEY_LEVELS); entry && *entry; entry++)
                if (startswith(*entry, origin) && (*entry)[strlen(origin)] == '=')
                        level = *entry + strlen(origin) + 1;
        if (!policy_is_set(p, KEY_ISOLATION))
                return policy_set(p, KEY_ISOLATION, level, "--origin", err);
        if (strength(policy_text(p, KEY_ISOLATION)) >= strength(level))
                return 0;
        return error_set(err, HUTCH_E_POLICY_REFUSED, EACCES,
                         "--origin %s wants --isolation %s, and '%s' is weaker: leave one of them out", origin, level,
                         policy_text(p, KEY_ISOLATION));
}

/* ---- the scan ---- */

/* The rules by which a policy's lists of commands are shown in the text; the kernel enforces them in any case. */
static int add_words(struct buf *b, char *const *words) {
        for (bool first = true; words && *words; words++) {
                if ((*words)[strlen(*words) - 1] == '/')
                        continue;
                buf_printf(b, "%s'", first ? "" : ", ");
                for (const char *c = path_basename(*words); *c; c++) {
                        if (*c == '\'')
                                buf_put(b, c, 1);
                        buf_put(b, c, 1);
                }
                buf_puts(b, "'");
                first = false;
        }
        return b->oom ? -ENOMEM : 0;
}

static const char builtins[] =
        "'.', ':', '[', '[[', alias, bg, bind, break, builtin, caller, case, cd, chdir, command, compgen, complete, "
        "compopt, "
        "continue, declare, dirs, disown, echo, enable, eval, exec, exit, export, 'false', fc, fg, getopts, hash, "
        "help, "
        "history, jobs, kill, let, local, logout, mapfile, popd, printf, pushd, pwd, read, readarray, readonly, "
        "return, "
        "set, shift, shopt, source, suspend, test, time, times, trap, 'true', type, typeset, ulimit, umask, unalias, "
        "unset, wait";

static int make_rules(const struct script *s, const struct hutch_policy *p, struct buf *b) {
        _cleanup_(strv_freep) char **allowed = NULL;
        int r;

        if (!policy_has_commands(p) || policy_allowed_commands(p, &allowed) < 0)
                return policy_has_commands(p) ? -ENOMEM : 0;
        if (policy_is_set(p, KEY_COMMANDS_DENY)) {
                buf_puts(b,
                         "- {id: command-denied, severity: critical, languages: shell, reason: the policy denies this "
                         "program (commands.deny), fix: remove it or change the policy, match: [{command: [");
                r = add_words(b, policy_list(p, KEY_COMMANDS_DENY));
                if (r < 0)
                        return r;
                buf_puts(b, "]}]}\n");
        }
        if (allowed) {
                buf_printf(
                        b,
                        "- {id: command-not-allowed, severity: critical, languages: shell, reason: the policy does not "
                        "allow this program (commands.allow), fix: --allow-command, match: [{other: [%s, ",
                        builtins);
                if (s->interpreter)
                        buf_printf(b, "'%s', ", path_basename(s->interpreter));
                r = add_words(b, allowed);
                if (r < 0)
                        return r;
                buf_puts(b, "]}]}\n");
        }
        return b->oom ? -ENOMEM : 0;
}

/* A program that is none to the kernel is run by sh, and an interpreter that is not of the system may be a shell. */
static bool may_be_shell_text(const struct script *s) {
        const char *at = s->text + 2, *end = s->text + s->len;

        if (!streq(s->runtime, "binary") || (s->len >= 4 && memcmp(s->text, "\177ELF", 4) == 0))
                return false;
        if (s->len < 3 || memcmp(s->text, "#!", 2) != 0)
                return true;
        while (at < end && (*at == ' ' || *at == '\t'))
                at++;
        for (size_t i = 0; i < ARRAY_SIZE(system_dirs); i++) {
                size_t n = strlen(system_dirs[i]);

                if ((size_t) (end - at) > n && memcmp(at, system_dirs[i], n) == 0 && at[n] == '/' &&
                    !memmem(at, strcspn(at, "\n"), "/..", 3))
                        return false;
        }
        return true;
}

static int scan(struct script *s, const struct hutch_policy *p, struct hutch_error *err) {
        hutch_scan_options options = {.struct_size = sizeof(options),
                                      .rules = (const char *const *) policy_list(p, KEY_SCAN_RULES),
                                      .ignore_suppressions = true};
        _cleanup_(buf_done) struct buf rules = {0};
        _cleanup_(freep) char *text = NULL;
        const char *language = streq(s->runtime, "python")                          ? "python"
                               : streq(s->runtime, "node")                          ? "javascript"
                               : streq(s->runtime, "shell") || may_be_shell_text(s) ? "shell"
                                                                                    : NULL;

        if (make_rules(s, p, &rules) < 0)
                return error_oom(err);
        if (rules.len > 0 && !(text = buf_take_string(&rules)))
                return error_oom(err);
        return scan_with_rules(s->text, s->len, language, &options, text, &s->findings, err);
}

static void judge_findings(const struct script *s, const struct hutch_policy *p, struct problems *problems) {
        uint64_t block = policy_number(p, KEY_SCAN_BLOCK);

        for (size_t i = 0; i < hutch_findings_count(s->findings); i++) {
                const hutch_finding *f = hutch_findings_get(s->findings, i);
                bool blocks = block != SCAN_BLOCK_NEVER && (f->severity == HUTCH_CRITICAL ||
                                                            (f->severity == HUTCH_WARNING && block == SCAN_BLOCK_WARN));
                struct hutch_error error = {0};

                error_set(&error, HUTCH_E_POLICY_REFUSED, EACCES, "%.200s:%u:%u: %s: %s", s->path, f->line, f->column,
                          f->rule, f->reason);
                problems_add(problems, "scan", blocks ? HUTCH_CRITICAL : HUTCH_INFO, &error);
        }
}

/* ---- all of it ---- */

static void check_environment(const struct hutch_policy *p, const struct hutch_exec_request *request,
                              struct problems *problems) {
        struct hutch_error error = {0};

        for (const char *const *e = request->env; e && *e; e++) {
                _cleanup_(freep) char *name = strndup(*e, strcspn(*e, "="));

                if (!name)
                        return;
                if (!name[0])
                        error_set(&error, HUTCH_E_USAGE, EINVAL, "environment: an entry without a name");
                else if (!variable_runs_code(name) && !policy_blocks_variable(p, name))
                        continue;
                else
                        error_set(&error, HUTCH_E_POLICY_REFUSED, EACCES, "environment: %s is stripped: %s", name,
                                  policy_blocks_variable(p, name) ? "the policy blocks it"
                                                                  : "it decides which code runs");
                problems_add(problems, "environment", name[0] ? HUTCH_INFO : HUTCH_CRITICAL, &error);
        }
        for (size_t i = 0; i < p->n_env; i++) {
                if (!p->env[i].value ||
                    (!variable_runs_code(p->env[i].name) && !policy_blocks_variable(p, p->env[i].name)))
                        continue;
                error_set(&error, HUTCH_E_POLICY_REFUSED, EACCES, "environment: %s is stripped: %s", p->env[i].name,
                          policy_blocks_variable(p, p->env[i].name) ? "the policy blocks it"
                                                                    : "it decides which code runs");
                problems_add(problems, "environment", HUTCH_INFO, &error);
        }
}

void script_prepare(struct script *s, struct hutch_policy *p, const struct hutch_exec_request *request,
                    struct problems *problems) {
        struct hutch_error error = {0};
        bool readable, known;

        if (policy_set_number(p, KEY_SCRIPT, 1, "exec", &error) < 0)
                add(problems, "script", &error);
        if (request->skill_dir && !realpath(request->skill_dir, s->skill)) {
                error_set(&error, HUTCH_E_PATH_MISSING, errno, "--skill-dir: %s: %s", request->skill_dir,
                          errno_text(errno));
                add(problems, "skill", &error);
                s->skill[0] = 0;
        }
        readable = read_script(s, request->script, &error) >= 0;
        if (!readable)
                add(problems, "script", &error);
        known = choose_runtime(s, request->runtime, &error) >= 0;
        if (!known)
                add(problems, "runtime", &error);
        if (choose_isolation(p, request, &error) < 0)
                add(problems, "isolation", &error);
        if (readable && known && find_interpreter(s, p, &error) < 0)
                add(problems, "runtime", &error);
        check_environment(p, request, problems);
        if (readable && known) {
                if (scan(s, p, &error) < 0)
                        add(problems, "scan", &error);
                judge_findings(s, p, problems);
        }
        if (make_argv(s, request) < 0)
                problems->oom = true;
}

void script_done(struct script *s) {
        free(s->text);
        free(s->interpreter);
        strv_free(s->argv);
        hutch_findings_free(s->findings);
}
