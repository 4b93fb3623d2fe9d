/* hutch exec: scans a script, then runs it in a box with the workspace read-only.
 *
 * What runs is what was scanned: the text is copied into a private directory, and the copy is attached over the
 * script's own path, so that nothing that changes the file meanwhile gets in. A copy that a killed hutch left is
 * removed by the next start. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "verbs.h"

#define SCRIPT_MOST ((size_t) 16 << 20)
#define PREFIX "hutch-exec."

struct exec_options {
        struct run_options run; /* first: cli_run_command() reads it */
        const char *runtime, *skill_dir, *rules;
};

struct script {
        char path[PATH_MAX], skill[PATH_MAX], dir[PATH_MAX], copy[PATH_MAX + 16];
        char *text;
        size_t len;
};

static int read_script(const char *name, struct script *s) {
        int fd = -1;
        struct stat st;
        ssize_t n = 0;

        if (!realpath(name, s->path) || (fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0 ||
            fstat(fd, &st) < 0) {
                cli_complain("exec: %s: %s", name, hutch_errno_text(errno));
                if (fd >= 0)
                        close(fd);
                return -1;
        }
        if (!S_ISREG(st.st_mode) || (size_t) st.st_size > SCRIPT_MOST) {
                cli_complain("exec: %s: %s", name, S_ISREG(st.st_mode) ? "larger than 16M" : "not a regular file");
                close(fd);
                return -1;
        }
        s->text = malloc(SCRIPT_MOST + 1);
        while (s->text && s->len <= SCRIPT_MOST && (n = read(fd, s->text + s->len, SCRIPT_MOST + 1 - s->len)) > 0)
                s->len += (size_t) n;
        close(fd);
        if (!s->text || n < 0 || s->len > SCRIPT_MOST) {
                cli_complain("exec: %s: cannot read it whole", name);
                return -1;
        }
        return 0;
}

/* Copies that killed processes left. */
static void sweep(const char *parent) {
        DIR *dir = opendir(parent);
        const struct dirent *e;

        while (dir && (e = readdir(dir))) {
                char path[PATH_MAX];
                struct stat st;
                pid_t pid;

                if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0)
                        continue;
                pid = (pid_t) strtol(e->d_name + strlen(PREFIX), NULL, 10);
                if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
                        continue;
                if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
                    st.st_uid != geteuid())
                        continue;
                snprintf(path, sizeof(path), "%s/%s/script", parent, e->d_name);
                unlink(path);
                unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
        }
        if (dir)
                closedir(dir);
}

static int keep_copy(struct script *s) {
        const char *parent = getenv("XDG_RUNTIME_DIR");
        size_t done = 0;
        int fd;

        if (!parent || parent[0] != '/' || access(parent, W_OK) < 0)
                parent = "/tmp";
        sweep(parent);
        snprintf(s->dir, sizeof(s->dir), "%s/" PREFIX "%d.XXXXXX", parent, (int) getpid());
        if (!mkdtemp(s->dir)) {
                s->dir[0] = 0;
                cli_complain("exec: cannot make a directory in %s: %s", parent, hutch_errno_text(errno));
                return -1;
        }
        snprintf(s->copy, sizeof(s->copy), "%s/script", s->dir);
        fd = open(s->copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
        while (fd >= 0 && done < s->len) {
                ssize_t n = write(fd, s->text + done, s->len - done);

                if (n < 0)
                        break;
                done += (size_t) n;
        }
        if (fd < 0 || close(fd) < 0 || done < s->len) {
                cli_complain("exec: cannot write %s: %s", s->copy, hutch_errno_text(errno));
                return -1;
        }
        return 0;
}

static void drop(struct script *s) {
        if (s->copy[0])
                unlink(s->copy);
        if (s->dir[0])
                rmdir(s->dir);
        free(s->text);
}

/* An interpreter from the system's directories, never from PATH. */
static const char *interpreter(const struct script *s, const char *runtime) {
        static const char *const dirs[] = {"/usr/bin/", "/bin/", "/usr/local/bin/"};
        static char path[64];
        const char *end = memchr(s->text, '\n', s->len);
        size_t line =
                s->len > 2 && s->text[0] == '#' && s->text[1] == '!' ? (end ? (size_t) (end - s->text) : s->len) : 0;
        const char *name = !strcmp(runtime, "python")                 ? "python3"
                           : !strcmp(runtime, "node")                 ? "node"
                           : line && memmem(s->text, line, "bash", 4) ? "bash"
                                                                      : "sh";

        for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
                snprintf(path, sizeof(path), "%s%s", dirs[i], name);
                if (access(path, X_OK) == 0)
                        return path;
        }
        cli_complain("exec: no %s in /usr/bin, /bin or /usr/local/bin", name);
        return NULL;
}

static const char *language_of(const char *runtime) {
        return !strcmp(runtime, "python")  ? "python"
               : !strcmp(runtime, "node")  ? "javascript"
               : !strcmp(runtime, "shell") ? "shell"
                                           : NULL;
}

/* Variables by which others choose what an interpreter or the loader runs: never passed to a script. */
static const char *const blocked[] = {"NODE_OPTIONS",  "NODE_PATH", "PYTHONHOME",      "PYTHONPATH",
                                      "PYTHONSTARTUP", "RUBYOPT",   "PERL5LIB",        "PERL5OPT",
                                      "BASH_ENV",      "ENV",       "CDPATH",          "LD_PRELOAD",
                                      "LD_AUDIT",      "LD_DEBUG",  "LD_LIBRARY_PATH", "LD_BIND_NOW"};

static bool is_blocked(const char *assignment) {
        size_t n = strcspn(assignment, "=");

        if (strncmp(assignment, "LD_", 3) == 0 || strncmp(assignment, "DYLD_", 5) == 0)
                return true;
        for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
                if (strlen(blocked[i]) == n && memcmp(blocked[i], assignment, n) == 0)
                        return true;
        return false;
}

static bool file_sets_blocked(const char *file, char *name, size_t room) {
        FILE *f = fopen(file, "re");
        bool found = false;

        while (f && !found && fgets(name, (int) room, f)) {
                memmove(name, name + strspn(name, " \t"), strlen(name + strspn(name, " \t")) + 1);
                if (strncmp(name, "export ", 7) == 0)
                        memmove(name, name + 7, strlen(name + 7) + 1);
                found = is_blocked(name);
        }
        if (f)
                fclose(f);
        return found;
}

/* An explicit value of such a variable is an error, not something to drop silently. */
static int check_environment(const struct invocation *in, hutch_error *err) {
        char name[256] = "";

        for (size_t i = 0; i < in->n_given; i++) {
                const struct given *g = &in->given[i];

                if (!strcmp(g->name, "env") && g->value && is_blocked(g->value))
                        snprintf(name, sizeof(name), "%s", g->value);
                else if (strcmp(g->name, "env-file") != 0 || !g->value ||
                         !file_sets_blocked(g->value, name, sizeof(name)))
                        continue;
                name[strcspn(name, "=\n")] = 0;
                err->code = HUTCH_E_POLICY_REFUSED;
                snprintf(err->message, sizeof(err->message),
                         "variable '%.100s' is never passed to a script: it decides which code runs", name);
                return -1;
        }
        return 0;
}

/* The defaults of exec, where the command line says nothing else. */
static int set_policy(const struct invocation *in, const struct script *s, hutch_error *err) {
        static const struct given defaults[] = {
                {"workspace", "ro"}, {"timeout", "60s"}, {"output-cap", "1M"}, {"output-overflow", "truncate"}};
        char attach[2 * PATH_MAX + 32];
        int r = check_environment(in, err);

        for (size_t i = 0; r >= 0 && i < sizeof(defaults) / sizeof(defaults[0]); i++)
                if (!cli_value(in, defaults[i].name))
                        r = hutch_policy_set_option(in->policy, defaults[i].name, defaults[i].value, err);
        for (size_t i = 0; r >= 0 && i < sizeof(blocked) / sizeof(blocked[0]); i++)
                r = hutch_policy_set_option(in->policy, "env-block", blocked[i], err);
        if (r >= 0 && s->skill[0])
                r = hutch_policy_set_option(in->policy, "ro", s->skill, err);
        snprintf(attach, sizeof(attach), "%s:%s", s->copy, s->path);
        return r < 0 ? r : hutch_policy_set_option(in->policy, "ro", attach, err);
}

/* {baseDir} in a word becomes the directory of the skill. */
static char *fill_in(const char *word, const char *dir) {
        static const char mark[] = "{baseDir}";
        const char *at = dir[0] ? strstr(word, mark) : NULL;
        char *out, *rest;

        if (!at)
                return strdup(word);
        rest = fill_in(at + sizeof(mark) - 1, dir);
        if (!rest || asprintf(&out, "%.*s%s%s", (int) (at - word), word, dir, rest) < 0)
                out = NULL;
        free(rest);
        return out;
}

/* The findings, for people. Returns whether something is critical. */
static int check(const struct exec_options *o, const struct script *s, const char *runtime) {
        const char *rules[] = {o->rules, NULL};
        hutch_scan_options options = {.struct_size = sizeof(options), .rules = rules, .ignore_suppressions = true};
        hutch_findings *findings;
        hutch_error err = {0};
        int critical;

        if (hutch_scan(s->text, s->len, language_of(runtime), &options, &findings, &err) < 0) {
                cli_complain("exec: %s", err.message);
                return -1;
        }
        for (size_t i = 0; i < hutch_findings_count(findings); i++) {
                const hutch_finding *f = hutch_findings_get(findings, i);

                if (f->severity == HUTCH_CRITICAL ||
                    (f->severity == HUTCH_WARNING && !o->run.quiet && isatty(STDERR_FILENO)))
                        cli_complain("%s:%u:%u: %s: %s: %s", s->path, f->line, f->column,
                                     f->severity == HUTCH_CRITICAL ? "critical" : "warn", f->rule, f->reason);
        }
        critical = hutch_findings_critical(findings);
        hutch_findings_free(findings);
        return critical;
}

static int run_script(const struct invocation *in, struct script *s) {
        const struct exec_options *o = in->options;
        struct invocation run = *in;
        const char *runtime, *path = NULL;
        char **argv;
        size_t n = 0, given = 0;
        int critical, status = EXIT_HUTCH;

        if (o->skill_dir && !realpath(o->skill_dir, s->skill)) {
                cli_complain("--skill-dir: %s: %s", o->skill_dir, hutch_errno_text(errno));
                return EXIT_HUTCH;
        }
        runtime = o->runtime ? o->runtime : hutch_detect_runtime(s->path);
        if (strcmp(runtime, "binary") != 0 && !language_of(runtime)) {
                cli_complain("--runtime: '%s' is not one of python, node, shell, binary", runtime);
                return EXIT_HUTCH;
        }
        critical = check(o, s, runtime);
        if (critical < 0)
                return EXIT_HUTCH;
        if (strcmp(runtime, "binary") != 0 && !(path = interpreter(s, runtime)))
                return EXIT_HUTCH;
        if (keep_copy(s) < 0)
                return EXIT_HUTCH;
        if (critical) {
                run.error = (hutch_error){.code = HUTCH_E_POLICY_REFUSED};
                snprintf(run.error.message, sizeof(run.error.message),
                         "refused to run %.200s: the scan has critical findings (see 'hutch scan')", s->path);
        } else if (run.error.code == HUTCH_OK)
                (void) set_policy(in, s, &run.error);
        while (in->command[given])
                given++;
        argv = calloc(given + 2, sizeof(*argv));
        if (!argv)
                return EXIT_HUTCH;
        if (path)
                argv[n++] = strdup(path);
        argv[n++] = strdup(s->path);
        for (size_t i = 1; i < given; i++)
                argv[n++] = fill_in(in->command[i], s->skill);
        for (size_t i = 0; i < n; i++)
                given = argv[i] ? given : 0;
        if (given)
                status = cli_run_command(&run, (const char *const *) argv);
        for (size_t i = 0; i < n; i++)
                free(argv[i]);
        free(argv);
        return status;
}

static int exec_script(const struct invocation *in) {
        struct script s = {0};
        int status = EXIT_HUTCH;

        if (!in->command) {
                cli_complain("no script to run: hutch exec %s", in->verb->synopsis);
                return EXIT_HUTCH;
        }
        if (read_script(in->command[0], &s) == 0)
                status = run_script(in, &s);
        drop(&s);
        return status;
}

#define AT(field) OPTION_AT(struct exec_options, field)

static const struct option options[] = {
        {"runtime", 0, "NAME", "python, node, shell or binary (default: by extension or '#!')", AT(runtime)},
        {"skill-dir", 0, "DIR", "attach DIR read-only and replace {baseDir} in arguments by it", AT(skill_dir)},
        {"rules", 0, "FILE", "further scan rules (YAML)", AT(rules)},
        {"stdin", 0, "inherit|none|FILE", "where standard input comes from", AT(run.stdin_from)},
        {"json", 0, NULL, "capture both streams and print one result object", AT(run.json)},
        {"result", 0, "FILE|fd:N", "write the result object to a file, a FIFO or a descriptor", AT(run.result)},
        {"quiet", 0, NULL, "print nothing of hutch's own on stderr but errors", AT(run.quiet)},
        {"die-with-parent", 0, NULL, "end the box when the process that started hutch ends", AT(run.die_with_parent)},
        {0},
};

const struct verb verb_exec = {
        .name = "exec",
        .synopsis = "[OPTIONS] SCRIPT [ARG…]",
        .summary = "scan a script, then run it in a box",
        .flags = VERB_COMMAND | VERB_RESULT,
        .box_options = HUTCH_OPTION_BOX,
        .preset = HUTCH_PRESET_RUN,
        .options = options,
        .size = sizeof(struct exec_options),
        .run = exec_script,
};
