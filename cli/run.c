/* hutch run and hutch shell: one command in one box, and its result in the requested form. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "output.h"
#include "verbs.h"

/* What follows the directory in the path, if the path is inside it as written; NULL: elsewhere. */
static const char *beneath(const char *path, const char *dir) {
        size_t n = dir ? strlen(dir) : 0;

        return n > 0 && !strncmp(path, dir, n) && path[n] == '/' ? path + n + 1 : NULL;
}

/* In the workspace an earlier box may have left a link to any file of the host, so none is followed there. */
int cli_open_stdin(const struct invocation *in, const char *file) {
        const char *dir = in->policy ? cli_value(in, "dir") : NULL, *inside = NULL, *top = ".";
        struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY, .resolve = RESOLVE_NO_SYMLINKS};
        char cwd[PATH_MAX];
        int at, fd;

        if (file[0] != '/')
                inside = file;
        else if (getcwd(cwd, sizeof(cwd)) && beneath(file, cwd))
                inside = beneath(file, cwd);
        else if (dir && beneath(file, dir)) {
                inside = beneath(file, dir);
                top = dir;
        }
        if (!inside)
                fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        else {
                at = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
                fd = (int) syscall(SYS_openat2, at, inside, &how, sizeof(how));
                if (fd < 0 && errno == ENOSYS)
                        fd = openat(at, inside, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
                if (at >= 0)
                        close(at);
        }
        if (fd < 0)
                cli_complain("--stdin: %s: %s", file,
                             errno == ELOOP ? "symbolic links are not followed in the workspace: name the file itself"
                                            : hutch_errno_text(errno));
        return fd;
}

static int open_stdin(const struct invocation *in, hutch_request *request) {
        const struct run_options *o = in->options;

        request->streams[0] = HUTCH_STREAM_FD;
        request->fds[0] = STDIN_FILENO;
        if (!o->stdin_from || !strcmp(o->stdin_from, "inherit"))
                return 0;
        if (!strcmp(o->stdin_from, "none")) {
                request->streams[0] = HUTCH_STREAM_NONE;
                return 0;
        }
        request->fds[0] = cli_open_stdin(in, o->stdin_from);
        return request->fds[0] < 0 ? -1 : 0;
}

static bool is_quiet(const struct run_options *o) {
        return o->json || o->json_lines || o->quiet;
}

static void report_changes(const hutch_result *result) {
        size_t n = result->n_reviewable;

        if (n == 0) {
                cli_complain(
                        "kept box %s, which this run did not change (host unchanged); review with 'hutch diff', then "
                        "'hutch apply' or 'hutch discard'",
                        result->box_id);
                return;
        }
        cli_complain("kept %zu change%s in box %s (host unchanged); review with 'hutch diff', then 'hutch apply' or "
                     "'hutch discard'",
                     n, n == 1 ? "" : "s", result->box_id);
}

/* The findings of a scan that preceded the run: those of one severity. Warnings are for a terminal. */
static void report_findings(const hutch_result *result, hutch_severity severity) {
        for (const hutch_event *const *f = result->findings; f && *f; f++)
                if ((*f)->severity == severity && (severity == HUTCH_CRITICAL || isatty(STDERR_FILENO)))
                        cli_complain("%s:%u:%u: %s: %s: %s", (*f)->subject, (*f)->line, (*f)->column,
                                     severity == HUTCH_CRITICAL ? "critical" : "warn", (*f)->code, (*f)->text);
}

static void report(const struct invocation *in, const struct run_options *o, const char *const *argv,
                   const hutch_result *result) {
        if (result->error.code != HUTCH_OK) {
                /* Of a script it is the interpreter that was not found. */
                bool names_it = argv && strncmp(result->error.message, argv[0], strlen(argv[0])) == 0;

                report_findings(result, HUTCH_CRITICAL);
                if (result->exit_code != EXIT_NOT_FOUND || !names_it || !cli_hint_not_found(in, argv[0]))
                        cli_complain("%s", result->error.message);
        } else if (result->kill_reason == HUTCH_KILLED_TIMEOUT)
                cli_complain("timeout: the box was ended");
        else if (result->kill_reason == HUTCH_KILLED_OUTPUT)
                cli_complain("the output reached its limit: the box was ended");
        if (is_quiet(o))
                return;
        for (int i = 1; i < 3; i++)
                if (result->output_dropped[i] > 0 && result->kill_reason != HUTCH_KILLED_OUTPUT)
                        cli_complain("dropped %llu bytes of %s over the limit",
                                     (unsigned long long) result->output_dropped[i], i == 1 ? "stdout" : "stderr");
        cli_show_events(result->notices);
        cli_show_denials(result);
        report_findings(result, HUTCH_WARNING);
        if (result->box_id && result->error.code == HUTCH_OK)
                report_changes(result);
}

static int finish(const struct run_options *o, const hutch_result *result, struct lines *lines,
                  struct destination *to) {
        if (o->json_lines && lines_end(lines, result) < 0)
                return -1;
        if (o->json && output_write_result(result) < 0)
                return -1;
        return destination_write(to, result);
}

/* In a separate box; `data` is a struct in_box. */
struct in_box {
        const struct invocation *in;
        hutch_box_options options;
        hutch_box *box;
};

static int run_in_box(void *data, const hutch_request *request, hutch_result **ret, hutch_error *err) {
        struct in_box *b = data;

        b->options.on_event = request->on_event          ? request->on_event
                              : is_quiet(b->in->options) ? NULL
                                                         : cli_show_at_once;
        b->options.user = request->user;
        if (hutch_context_new(HUTCH_WARDEN_SELF, &b->options.context, err) < 0 ||
            hutch_box_open(b->in->policy, &b->options, &b->box, err) < 0)
                return -1;
        return hutch_box_run(b->box, request, ret, err);
}

/* No box, but a result all the same. */
static void refuse(const struct run_options *o, const hutch_error *err, struct destination *to) {
        const hutch_result result = {.struct_size = sizeof(result),
                                     .exit_code = EXIT_HUTCH,
                                     .output = {NULL, "", ""},
                                     .backend = "",
                                     .error = *err};
        struct lines lines = {0};

        cli_complain("%s", err->message);
        finish(o, &result, &lines, to);
}

static int run_by(const struct invocation *in, cli_runner *runner, void *data, hutch_request *request,
                  struct destination *to) {
        const struct run_options *o = in->options;
        struct lines lines = {0};
        hutch_result *result = NULL;
        hutch_error err = {0};
        int status;

        if (o->json_lines) {
                request->on_output = lines_on_output;
                request->on_event = lines_on_event;
                request->user = &lines;
        }
        runner(data, request, &result, &err);
        request->user = NULL;
        if (!result) {
                refuse(o, &err, to);
                return EXIT_HUTCH;
        }
        status = result->exit_code;
        if (o->capture)
                fwrite(result->output[HUTCH_STDOUT], 1, result->output_len[HUTCH_STDOUT], stdout);
        if (fflush(stdout) != 0) {
                cli_complain("cannot write to stdout: %s", hutch_errno_text(errno));
                status = EXIT_HUTCH;
        }
        report(in, o, request->argv, result);
        if (finish(o, result, &lines, to) < 0)
                status = EXIT_HUTCH;
        hutch_result_free(result);
        return status;
}

static void choose_streams(const struct run_options *o, hutch_request *request) {
        if (o->json || o->capture)
                request->streams[HUTCH_STDOUT] = HUTCH_STREAM_CAPTURE;
        if (o->json)
                request->streams[HUTCH_STDERR] = HUTCH_STREAM_CAPTURE;
        if (o->json_lines)
                request->streams[HUTCH_STDOUT] = request->streams[HUTCH_STDERR] = HUTCH_STREAM_CALLBACK;
}

static int check_options(const struct run_options *o) {
        if (o->json + o->json_lines + o->capture > 1 || ((o->json || o->json_lines) && o->result)) {
                cli_complain("--json, --json-lines, --result and --capture exclude each other: choose one");
                return -1;
        }
        return 0;
}

/* The parent may be gone before the signal is set. */
static void die_with_parent(void) {
        pid_t parent = getppid();

        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                raise(SIGTERM);
}

int cli_run_with(const struct invocation *in, const char *const *argv, cli_runner *runner, void *data) {
        const struct run_options *o = in->options;
        hutch_request request = {.struct_size = sizeof(request),
                                 .argv = argv,
                                 .command = argv ? NULL : o->text,
                                 .streams = {0, HUTCH_STREAM_FD, HUTCH_STREAM_FD},
                                 .fds = {0, STDOUT_FILENO, STDERR_FILENO}};
        struct destination to = DESTINATION_NONE;
        int status = EXIT_HUTCH;

        if (check_options(o) < 0)
                return EXIT_HUTCH;
        if (o->die_with_parent)
                die_with_parent();
        choose_streams(o, &request);
        if (open_stdin(in, &request) < 0 || destination_open(o->result, &to) < 0)
                return EXIT_HUTCH;
        if (in->error.code != HUTCH_OK)
                refuse(o, &in->error, &to);
        else
                status = run_by(in, runner, data, &request, &to);
        destination_close(&to);
        return status;
}

int cli_run_command(const struct invocation *in, const char *const *argv) {
        const struct run_options *o = in->options;
        struct in_box b = {.in = in, .options = {.struct_size = sizeof(b.options), .keep_changes = true, .id = o->box}};
        int status = cli_run_with(in, argv, run_in_box, &b);

        hutch_box_close(b.box);
        hutch_context_free(b.options.context);
        return status;
}

#define AT(field) OPTION_AT(struct run_options, field)

static const struct option run_options[] = {
        {"cmd", 'c', "TEXT", "run shell text (with bash where available, else sh)", AT(text)},
        {"stdin", 0, "inherit|none|FILE", "where standard input comes from", AT(stdin_from)},
        {"json", 0, NULL, "capture both streams and print one result object", AT(json)},
        {"json-lines", 0, NULL, "print output, notices and denials as JSON lines, then the result", AT(json_lines)},
        {"result", 0, "FILE|fd:N", "write the result object to a file, a FIFO or a descriptor", AT(result)},
        {"capture", 0, NULL, "print stdout at the end, in one piece", AT(capture)},
        {"quiet", 0, NULL, "print nothing of hutch's own on stderr but errors", AT(quiet)},
        {"box", 0, "ID", "go on in a box that was kept (default: a new one)", AT(box)},
        {"die-with-parent", 0, NULL, "end the box when the process that started hutch ends", AT(die_with_parent)},
        {"request", 0, "FILE", "run what hutch wrap wrote to a file", AT(request)},
        {0},
};

static bool has_other_options(const struct run_options *o) {
        return o->text || o->stdin_from || o->result || o->box || o->shell || o->json || o->json_lines || o->capture ||
               o->quiet || o->die_with_parent;
}

/* A wrapped command: policy and command come from the file, and only errors are printed. */
static int run_request(const struct invocation *in) {
        const struct run_options *given = in->options;
        struct run_options o = {.quiet = true};
        struct invocation wrapped = *in;
        hutch_error err = {0};
        hutch_policy *policy;
        char **argv;
        int status;

        if (in->command || in->n_given > 0 || has_other_options(given)) {
                cli_complain("--request takes no other option and no command");
                return EXIT_HUTCH;
        }
        if (hutch_request_open(given->request, &policy, &argv, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        wrapped.policy = policy;
        wrapped.options = &o;
        status = cli_run_command(&wrapped, (const char *const *) argv);
        hutch_policy_free(policy);
        hutch_argv_free(argv);
        return status;
}

static int run(const struct invocation *in) {
        const struct run_options *o = in->options;

        if (o->request)
                return run_request(in);

        if (in->command && o->text) {
                cli_complain("-c and a command exclude each other: unexpected argument '%s'", in->command[0]);
                return EXIT_HUTCH;
        }
        if (!in->command && !o->text) {
                cli_complain("no command to run: hutch run %s", in->verb->synopsis);
                return EXIT_HUTCH;
        }
        return in->command && cli_is_script(in, in->command[0]) ? cli_run_script(in) : cli_run_command(in, in->command);
}

const struct verb verb_run = {
        .name = "run",
        .synopsis = "[OPTIONS] [--] COMMAND [ARG…] | -c TEXT",
        .summary = "run a command in a box",
        .flags = VERB_COMMAND | VERB_RESULT,
        .box_options = HUTCH_OPTION_BOX,
        .preset = HUTCH_PRESET_RUN,
        .options = run_options,
        .size = sizeof(struct run_options),
        .run = run,
};

static const struct option shell_options[] = {
        {"shell", 0, "PATH", "which shell (default: bash where available, else sh)", AT(shell)},
        {"quiet", 0, NULL, "print nothing of hutch's own on stderr but errors", AT(quiet)},
        {"box", 0, "ID", "go on in a box that was kept (default: a new one)", AT(box)},
        {"die-with-parent", 0, NULL, "end the box when the process that started hutch ends", AT(die_with_parent)},
        {0},
};

/* A shell at the terminal, in a separate box. */
static int shell(const struct invocation *in) {
        const struct run_options *o = in->options;
        const char *const argv[] = {o->shell ? o->shell : access("/bin/bash", X_OK) == 0 ? "bash" : "sh", NULL};

        return cli_run_command(in, argv);
}

const struct verb verb_shell = {
        .name = "shell",
        .synopsis = "[OPTIONS]",
        .summary = "an interactive shell in a box",
        .flags = VERB_RESULT,
        .box_options = HUTCH_OPTION_BOX,
        .preset = HUTCH_PRESET_SESSION,
        .options = shell_options,
        .size = sizeof(struct run_options),
        .run = shell,
};
