/* hutch session: a named session, from the start of its shell to its end. */
#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs.h"

struct session_options {
        const char *shell, *idle_timeout, *box, *text, *stdin_from;
        bool json, json_lines, quiet, discard;
};

#define DEFAULT_SESSION "default"

static const char *name_of(const struct invocation *in) {
        return in->n_args > 0 ? in->args[0] : DEFAULT_SESSION;
}

static int fail(const hutch_error *err) {
        cli_complain("%s", err->message);
        return EXIT_HUTCH;
}

static int start(const struct invocation *in) {
        const struct session_options *o = in->options;
        hutch_box_options options = {.struct_size = sizeof(options),
                                     .keep_changes = true,
                                     .session = true,
                                     .shell = o->shell,
                                     .name = name_of(in),
                                     .id = o->box,
                                     .on_event = o->quiet ? NULL : cli_show_at_once};
        hutch_error err = {0};
        hutch_box *box;

        if (o->idle_timeout && hutch_parse_duration(o->idle_timeout, &options.idle_timeout_ms, &err) < 0) {
                cli_complain("--idle-timeout: %s", err.message);
                return EXIT_HUTCH;
        }
        if (hutch_box_open(in->policy, &options, &box, &err) < 0)
                return fail(&err);
        if (!o->quiet)
                cli_show_events(hutch_box_notices(box));
        hutch_box_close(box);
        if (!o->quiet)
                printf("started session '%s'; run commands with 'hutch session run%s%s -- COMMAND'\n", options.name,
                       in->n_args ? " " : "", in->n_args ? options.name : "");
        return 0;
}

/* A terminal is not passed as input: 'hutch session attach' is for typing. */
static int open_stdin(const struct invocation *in, hutch_request *request) {
        const struct session_options *o = in->options;
        struct stat st;

        request->streams[0] = HUTCH_STREAM_NONE;
        if (o->stdin_from && !strcmp(o->stdin_from, "none"))
                return 0;
        if (o->stdin_from && strcmp(o->stdin_from, "inherit") != 0) {
                request->fds[0] = cli_open_stdin(in, o->stdin_from);
                if (request->fds[0] < 0)
                        return -1;
                request->streams[0] = HUTCH_STREAM_FD;
        } else if (fstat(STDIN_FILENO, &st) == 0 && !S_ISCHR(st.st_mode))
                request->streams[0] = HUTCH_STREAM_FD;
        return 0;
}

static const char **collect_env(const struct invocation *in) {
        const char **env = calloc(in->n_given + 1, sizeof(*env));
        size_t n = 0;

        for (size_t i = 0; env && i < in->n_given; i++)
                if (!strcmp(in->given[i].name, "env"))
                        env[n++] = in->given[i].value;
        return env;
}

static void report(const struct session_options *o, const hutch_result *result) {
        if (result->kill_reason == HUTCH_KILLED_TIMEOUT)
                cli_complain("timeout: the command was ended, the session continues");
        else if (result->kill_reason == HUTCH_KILLED_OUTPUT)
                cli_complain("the output reached its limit: the command was ended, the session continues");
        else if (result->killed && result->kill_reason != HUTCH_KILLED_CANCELLED)
                cli_complain("a limit ended the session's box: it was restarted with the state of the last completed "
                             "run");
        if (o->quiet)
                return;
        cli_show_events(result->notices);
        cli_show_denials(result);
}

static int run_request(const struct invocation *in, hutch_request *request) {
        const struct session_options *o = in->options;
        hutch_error err = {0};
        hutch_result *result = NULL;
        hutch_box *box;
        struct lines lines = {0};
        int status;

        if (o->json)
                request->streams[1] = request->streams[2] = HUTCH_STREAM_CAPTURE;
        if (o->json_lines) {
                request->streams[1] = request->streams[2] = HUTCH_STREAM_CALLBACK;
                request->on_output = lines_on_output;
                request->on_event = lines_on_event;
                request->user = &lines;
        }
        request->no_changes = !o->json && !o->json_lines; /* nothing would show them */
        if (hutch_box_attach(name_of(in), &box, &err) < 0) {
                const hutch_result refused = {.struct_size = sizeof(refused),
                                              .exit_code = EXIT_HUTCH,
                                              .output = {NULL, "", ""},
                                              .backend = "",
                                              .error = err};

                if (o->json)
                        output_write_result(&refused);
                if (o->json_lines)
                        lines_end(&lines, &refused);
                request->user = NULL;
                return fail(&err);
        }
        /* The layer in which changes are looked for is the box's. */
        if (!request->no_changes && cli_confine(NULL, NULL, 0, NULL) < 0) {
                request->user = NULL;
                hutch_box_close(box);
                return EXIT_HUTCH;
        }
        hutch_box_run(box, request, &result, &err);
        request->user = NULL;
        status = result ? result->exit_code : EXIT_HUTCH;
        if (!result || result->error.code != HUTCH_OK)
                cli_complain("%s", err.message);
        else if (!o->json && !o->json_lines)
                report(o, result);
        if (result &&
            ((o->json && output_write_result(result) < 0) || (o->json_lines && lines_end(&lines, result) < 0)))
                status = EXIT_HUTCH;
        hutch_result_free(result);
        hutch_box_close(box);
        return status;
}

static int run(const struct invocation *in) {
        const struct session_options *o = in->options;
        const char *timeout = cli_value(in, "timeout"), *output_cap = cli_value(in, "output-cap");
        hutch_request request = {.struct_size = sizeof(request),
                                 .argv = in->command,
                                 .command = o->text,
                                 .streams = {0, HUTCH_STREAM_FD, HUTCH_STREAM_FD},
                                 .fds = {0, STDOUT_FILENO, STDERR_FILENO}};
        hutch_error err = {0};
        const char **env;
        int status;

        if (!in->command == !o->text) {
                cli_complain(o->text ? "-c and a command exclude each other"
                                     : "no command to run: hutch session run [NAME] -- COMMAND, or -c TEXT");
                return EXIT_HUTCH;
        }
        if (o->json && o->json_lines) {
                cli_complain("--json, --json-lines, --result and --capture exclude each other: choose one");
                return EXIT_HUTCH;
        }
        if ((timeout && hutch_parse_duration(timeout, &request.timeout_ms, &err) < 0) ||
            (output_cap && hutch_parse_size(output_cap, &request.output_cap, &err) < 0))
                return fail(&err);
        if (open_stdin(in, &request) < 0)
                return EXIT_HUTCH;
        env = collect_env(in);
        request.env = env;
        status = run_request(in, &request);
        free(env);
        return status;
}

static int state(const struct invocation *in) {
        hutch_error err = {0};
        hutch_box *box;
        char *text = NULL;
        int r;

        if (hutch_box_attach(name_of(in), &box, &err) < 0)
                return fail(&err);
        if (cli_confine(NULL, NULL, 0, NULL) < 0) { /* the state is the box's text */
                hutch_box_close(box);
                return EXIT_HUTCH;
        }
        r = hutch_box_state(box, &text, &err);
        hutch_box_close(box);
        if (r < 0)
                return fail(&err);
        puts(text);
        free(text);
        return 0;
}

static int reset(const struct invocation *in) {
        hutch_error err = {0};
        hutch_box *box;
        int r;

        if (hutch_box_attach(name_of(in), &box, &err) < 0)
                return fail(&err);
        r = hutch_box_reset(box, &err);
        hutch_box_close(box);
        return r < 0 ? fail(&err) : 0;
}

static int attach(const struct invocation *in) {
        hutch_error err = {0};
        hutch_box *box;
        int r, status = 0;

        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
                cli_complain("'hutch session attach' needs a terminal: 'hutch session run' does not");
                return EXIT_HUTCH;
        }
        if (hutch_box_attach(name_of(in), &box, &err) < 0)
                return fail(&err);
        r = hutch_box_interact(box, &status, &err);
        hutch_box_close(box);
        return r < 0 ? fail(&err) : status;
}

struct listing {
        bool json;
        size_t n;
};

static void put_json(const hutch_session_info *info, size_t n) {
        fputs(n ? ",\n " : "[", stdout);
        fputs("{\"name\":", stdout);
        cli_put_json(stdout, info->name);
        printf(",\"created\":%llu,\"pid\":%d,\"box\":", (unsigned long long) info->created, info->pid);
        cli_put_json(stdout, info->box_id);
        fputs(",\"workspace\":", stdout);
        cli_put_json(stdout, info->workspace);
        fputc('}', stdout);
}

static void see(void *user, const hutch_session_info *info) {
        struct listing *l = user;
        char age[32];

        if (l->json) {
                put_json(info, l->n++);
                return;
        }
        if (l->n++ == 0)
                printf("%-20s %6s %8s %-18s %s\n", "SESSION", "AGE", "PID", "BOX", "WORKSPACE");
        cli_age(info->created, age, sizeof(age));
        memmove(strchr(age, ' '), strchr(age, ' ') + 1, strlen(strchr(age, ' '))); /* one word a column */
        printf("%-20s %6s %8d %-18s ", info->name, age, info->pid, info->box_id ? info->box_id : "-");
        cli_put_path(stdout, info->workspace);
        fputc('\n', stdout);
}

static int list(const struct invocation *in) {
        const struct session_options *o = in->options;
        struct listing l = {.json = o->json};
        hutch_error err = {0};

        if (hutch_sessions(see, &l, &err) < 0)
                return fail(&err);
        if (l.json)
                puts(l.n ? "]" : "[]");
        return 0;
}

static int stop(const struct invocation *in) {
        const struct session_options *o = in->options;
        hutch_error err = {0};
        char *box_id = NULL;

        if (hutch_session_stop(name_of(in), o->discard, &box_id, &err) < 0)
                return fail(&err);
        if (box_id)
                cli_complain("kept its changes in box %s (host unchanged); review with 'hutch diff --box %s'", box_id,
                             box_id);
        free(box_id);
        return 0;
}

#define AT(field) OPTION_AT(struct session_options, field)

static const struct option start_options[] = {
        {"shell", 0, "PATH", "which shell (default: bash where available, else sh)", AT(shell)},
        {"idle-timeout", 0, "DURATION", "end the session when it was not used for this time", AT(idle_timeout)},
        {"box", 0, "ID", "go on in a box that was kept (default: a new one)", AT(box)},
        {"quiet", 0, NULL, "print nothing of hutch's own but errors", AT(quiet)},
        {0},
};

static const struct option session_run_options[] = {
        {"cmd", 'c', "TEXT", "run shell text", AT(text)},
        {"stdin", 0, "inherit|none|FILE", "where standard input comes from", AT(stdin_from)},
        {"json", 0, NULL, "capture both streams and print one result object", AT(json)},
        {"json-lines", 0, NULL, "print output and notices as JSON lines, then the result", AT(json_lines)},
        {"quiet", 0, NULL, "print nothing of hutch's own on stderr but errors", AT(quiet)},
        {0},
};

static const struct option json_options[] = {
        {"json", 0, NULL, "print JSON", AT(json)},
        {0},
};

static const struct option stop_options[] = {
        {"discard", 0, NULL, "drop what the session changed", AT(discard)},
        {0},
};

#define SUBVERB(n, s, text, ...)                                                                                       \
        { .name = (n), .synopsis = (s), .summary = (text), .size = sizeof(struct session_options), __VA_ARGS__ }

static const struct verb start_verb = SUBVERB("start", "[NAME] [OPTIONS]", "start a session", .max_args = 1,
                                              .box_options = HUTCH_OPTION_BOX, .preset = HUTCH_PRESET_SESSION,
                                              .options = start_options, .run = start),
                         run_verb =
                                 SUBVERB("run", "[NAME] [OPTIONS] -- COMMAND [ARG…] | -c TEXT", "run a command in it",
                                         .flags = VERB_COMMAND, .max_args = 1, .box_options = HUTCH_OPTION_SESSION_RUN,
                                         .options = session_run_options, .run = run),
                         state_verb = SUBVERB("state", "[NAME]", "print its directory, variables and functions as JSON",
                                              .max_args = 1, .options = json_options, .run = state),
                         reset_verb =
                                 SUBVERB("reset", "[NAME]", "go back to its beginning", .max_args = 1, .run = reset),
                         attach_verb = SUBVERB("attach", "[NAME]", "type into its shell", .max_args = 1, .run = attach),
                         list_verb = SUBVERB("list", "[--json]", "list sessions", .options = json_options, .run = list),
                         stop_verb = SUBVERB("stop", "[NAME] [--discard]", "end it", .max_args = 1,
                                             .options = stop_options, .run = stop);

static const struct verb *const subverbs[] = {&start_verb,  &run_verb,  &state_verb, &reset_verb,
                                              &attach_verb, &list_verb, &stop_verb,  NULL};

const struct verb verb_session = {
        .name = "session",
        .synopsis = "start|run|state|reset|attach|list|stop …",
        .summary = "a persistent shell, usable from any process",
        .subverbs = subverbs,
};
