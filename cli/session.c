/* hutch session: a named session, from the start of its shell to its end; and hutch shell, an interactive one. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A shell at the terminal, in a box of its own: `run` with another beginning. */
int cli_shell(struct cli *cli) {
        static const char *const bash[] = {"bash", NULL};
        const char *const own[] = {cli->shell, NULL};

        if (cli->argv || cli->command) {
                cli_complain("shell: takes no command: `hutch run` runs one");
                return EXIT_HUTCH;
        }
        cli->argv = cli->shell ? own : access("/bin/bash", X_OK) == 0 ? bash : (const char *const[]){"sh", NULL};
        return cli_run(cli);
}

static int fail(const hutch_error *err) {
        cli_complain("%s", err->message);
        return EXIT_HUTCH;
}

static int start(struct cli *cli, const char *name) {
        hutch_box_options options = {.struct_size = sizeof(options),
                                     .keep_changes = true,
                                     .session = true,
                                     .shell = cli->shell,
                                     .name = name,
                                     .id = cli->box};
        hutch_error err = {0};
        hutch_box *box;

        if (cli->idle_timeout && hutch_parse_duration(cli->idle_timeout, &options.idle_timeout_ms, &err) < 0) {
                cli_complain("--idle-timeout: %s", err.message);
                return EXIT_HUTCH;
        }
        if (hutch_box_open(cli->policy, &options, &box, &err) < 0)
                return fail(&err);
        for (const char *const *notice = hutch_box_notices(box); notice && *notice; notice++)
                if (cli_notice_matters(*notice))
                        cli_complain("%s", *notice);
        hutch_box_close(box);
        printf("session %s is there: `hutch session run %s -c '…'`\n", name, name);
        return 0;
}

/* A terminal is nobody's input here: who wants to type uses attach. */
static int open_stdin(const struct cli *cli, hutch_request *request) {
        struct stat st;

        request->streams[0] = HUTCH_STREAM_NONE;
        if (!strcmp(cli->stdin_from, "none"))
                return 0;
        if (strcmp(cli->stdin_from, "inherit") != 0) {
                request->fds[0] = open(cli->stdin_from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
                if (request->fds[0] < 0) {
                        cli_complain("--stdin %s: %s", cli->stdin_from, hutch_errno_text(errno));
                        return -1;
                }
                request->streams[0] = HUTCH_STREAM_FD;
        } else if (fstat(STDIN_FILENO, &st) == 0 && !S_ISCHR(st.st_mode))
                request->streams[0] = HUTCH_STREAM_FD;
        return 0;
}

static int run(struct cli *cli, const char *name) {
        hutch_request request = {.struct_size = sizeof(request),
                                 .argv = cli->argv,
                                 .command = cli->command,
                                 .env = cli->env,
                                 .streams = {0, HUTCH_STREAM_FD, HUTCH_STREAM_FD},
                                 .fds = {0, STDOUT_FILENO, STDERR_FILENO}};
        hutch_error err = {0};
        hutch_result *result = NULL;
        hutch_box *box;
        char *text;
        int status;

        if (!cli->argv && !cli->command) {
                cli_complain("session run: no command given: -c 'TEXT', or one behind --");
                return EXIT_HUTCH;
        }
        if (cli->n_env >= sizeof(cli->env) / sizeof(cli->env[0])) {
                cli_complain("session run: too many --env: export them in the session");
                return EXIT_HUTCH;
        }
        if ((cli->timeout && hutch_parse_duration(cli->timeout, &request.timeout_ms, &err) < 0) ||
            (cli->output_cap && hutch_parse_size(cli->output_cap, &request.output_cap, &err) < 0))
                return fail(&err);
        if (open_stdin(cli, &request) < 0)
                return EXIT_HUTCH;
        if (cli->json)
                request.streams[1] = request.streams[2] = HUTCH_STREAM_CAPTURE;
        request.no_changes = !cli->json; /* nobody would be told */
        if (hutch_box_attach(name, &box, &err) < 0)
                return fail(&err);
        hutch_box_run(box, &request, &result, &err);
        status = result ? result->exit_code : EXIT_HUTCH;
        if (!result || result->error.code != HUTCH_OK)
                cli_complain("%s", err.message);
        else if (!cli->json) {
                if (result->kill_reason == HUTCH_KILLED_TIMEOUT)
                        cli_complain("timeout: the command was ended, the session goes on");
                else if (result->kill_reason == HUTCH_KILLED_OUTPUT)
                        cli_complain("the output reached its cap: the command was ended, the session goes on");
                else if (result->killed && result->kill_reason != HUTCH_KILLED_CANCELLED)
                        cli_complain(
                                "a limit ended the session's box: it was started again, with the state of the last "
                                "completed run");
                for (const char *const *notice = result->notices; notice && *notice; notice++) /* as run does */
                        if (strncmp(*notice, "the box has no network", 22) == 0)
                                cli_complain("%s", *notice);
                        else if (isatty(STDERR_FILENO))
                                cli_complain("note: %s", *notice);
        }
        if (cli->json && result && hutch_result_to_json(result, &text, &err) >= 0) {
                puts(text);
                free(text);
        }
        hutch_result_free(result);
        hutch_box_close(box);
        return status;
}

static int state(struct cli *cli, const char *name) {
        hutch_error err = {0};
        hutch_box *box;
        char *text = NULL;
        int r;

        (void) cli;
        if (hutch_box_attach(name, &box, &err) < 0)
                return fail(&err);
        r = hutch_box_state(box, &text, &err);
        hutch_box_close(box);
        if (r < 0)
                return fail(&err);
        puts(text);
        free(text);
        return 0;
}

static int reset(struct cli *cli, const char *name) {
        hutch_error err = {0};
        hutch_box *box;
        int r;

        (void) cli;
        if (hutch_box_attach(name, &box, &err) < 0)
                return fail(&err);
        r = hutch_box_reset(box, &err);
        hutch_box_close(box);
        return r < 0 ? fail(&err) : 0;
}

static int attach(struct cli *cli, const char *name) {
        hutch_error err = {0};
        hutch_box *box;
        int r, status = 0;

        (void) cli;
        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
                cli_complain("session attach: needs a terminal: `hutch session run` runs commands without one");
                return EXIT_HUTCH;
        }
        if (hutch_box_attach(name, &box, &err) < 0)
                return fail(&err);
        r = hutch_box_interact(box, &status, &err);
        hutch_box_close(box);
        return r < 0 ? fail(&err) : status;
}

static void age_text(uint64_t created, char ret[32]) {
        uint64_t s = (uint64_t) time(NULL) - created;

        if (s < 120)
                snprintf(ret, 32, "%llus", (unsigned long long) s);
        else if (s < 7200)
                snprintf(ret, 32, "%llum", (unsigned long long) s / 60);
        else if (s < 172800)
                snprintf(ret, 32, "%lluh", (unsigned long long) s / 3600);
        else
                snprintf(ret, 32, "%llud", (unsigned long long) s / 86400);
}

static void see(void *user, const hutch_session_info *info) {
        size_t *n = user;
        char age[32], where[4096];

        age_text(info->created, age);
        snprintf(where, sizeof(where), "%s", info->workspace);
        hutch_clean_line(where);
        if ((*n)++ == 0)
                printf("%-20s %6s %8s %-18s %s\n", "SESSION", "AGE", "PID", "BOX", "WORKSPACE");
        printf("%-20s %6s %8d %-18s %s\n", info->name, age, info->pid, info->box_id ? info->box_id : "-", where);
}

static int list(struct cli *cli, const char *name) {
        hutch_error err = {0};
        size_t n = 0;

        (void) cli;
        (void) name;
        if (hutch_sessions(see, &n, &err) < 0)
                return fail(&err);
        return 0;
}

static int stop(struct cli *cli, const char *name) {
        hutch_error err = {0};
        char *box_id = NULL;

        if (hutch_session_stop(name, cli->discard, &box_id, &err) < 0)
                return fail(&err);
        if (box_id)
                cli_complain(
                        "what it changed is kept in box %s: `hutch diff --box %s` shows, `hutch apply` takes, `hutch "
                        "discard` drops it",
                        box_id, box_id);
        free(box_id);
        return 0;
}

static const struct {
        const char *name;
        int (*act)(struct cli *cli, const char *name);
        bool needs_name;
} actions[] = {{"start", start, false},  {"run", run, true},    {"state", state, true}, {"reset", reset, true},
               {"attach", attach, true}, {"list", list, false}, {"stop", stop, true}};

/* What a session is made of is said when it starts: `run --net open` must not run without a network and say nothing. */
static int check_options(const struct cli *cli, const char *action) {
        const struct {
                const char *name, *actions;
                bool given;
        } options[] = {
                {cli->box_option, "start", cli->box_option != NULL},
                {"box", "start", cli->box != NULL},
                {"shell", "start", cli->shell != NULL},
                {"idle-timeout", "start", cli->idle_timeout != NULL},
                {"timeout", "start run", cli->timeout != NULL},
                {"output-cap", "start run", cli->output_cap != NULL},
                {"env", "start run", cli->n_env > 0},
                {"stdin", "run", strcmp(cli->stdin_from, "inherit") != 0},
                {"json", "run state", cli->json},
                {"discard", "stop", cli->discard},
                {"capture", "", cli->capture},
                {"result", "", cli->result_file != NULL},
        };

        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                if (options[i].given && !strstr(options[i].actions, action)) {
                        cli_complain("session %s: takes no --%s%s", action, options[i].name,
                                     !strcmp(options[i].actions, "start") ? ": `hutch session start` does" : "");
                        return -1;
                }
        return 0;
}

int cli_session(struct cli *cli) {
        const char *names[sizeof(actions) / sizeof(actions[0])], *near;
        const char *action = cli->paths ? cli->paths[0] : NULL;
        const char *name = action ? cli->paths[1] : NULL;

        if (!action) {
                cli_complain("session: say what: start, run, state, reset, attach, list or stop");
                return EXIT_HUTCH;
        }
        if (name && cli->paths[2]) {
                cli_complain("session %s: '%s' is one word too many%s", action, cli->paths[2],
                             strcmp(action, "run") != 0 ? "" : ": a command stands behind --, or -c 'TEXT'");
                return EXIT_HUTCH;
        }
        for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
                names[i] = actions[i].name;
                if (strcmp(actions[i].name, action) != 0)
                        continue;
                if (actions[i].needs_name && !name) {
                        cli_complain("session %s: which one? `hutch session list` shows them", action);
                        return EXIT_HUTCH;
                }
                if ((cli->argv || cli->command) && actions[i].act != run) {
                        cli_complain("session %s: takes no command: `hutch session run` does", action);
                        return EXIT_HUTCH;
                }
                if (check_options(cli, action) < 0)
                        return EXIT_HUTCH;
                return actions[i].act(cli, name ? name : "default");
        }
        near = hutch_suggest(action, names, sizeof(names) / sizeof(names[0]));
        cli_complain("session: there is no '%s'%s%s%s", action, near ? "; did you mean '" : "", near ? near : "",
                     near ? "'?" : "");
        return EXIT_HUTCH;
}
