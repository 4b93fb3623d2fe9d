/* hutch: the command. Each verb has a file of its own. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is lost with the box, always; what the box may not do, to a person. */
bool cli_notice_matters(const char *notice) {
        return strncmp(notice, "the box has no network", 22) == 0 || strncmp(notice, "what changes in ", 16) == 0 ||
               (isatty(STDERR_FILENO) &&
                (strstr(notice, "mounted inside") || strstr(notice, "of another group than yours")));
}

void cli_complain(const char *format, ...) {
        char line[2048];
        va_list args;

        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        hutch_clean_line(line);
        fprintf(stderr, "hutch: %s\n", line);
}

static const struct {
        const char *verb;
        int (*act)(struct cli *cli);
} reviewing[] = {{"session", cli_session}, {"boxes", cli_boxes},       {"diff", cli_diff},       {"apply", cli_apply},
                 {"discard", cli_discard}, {"snapshot", cli_snapshot}, {"restore", cli_restore}, {"fork", cli_fork},
                 {"export", cli_export},   {"import", cli_import}};

/* An option that another verb would have understood is not passed over: `discard --stat` must not discard. */
static int check_options(const struct cli *cli) {
        const struct {
                const char *name, *verbs;
                bool given;
        } options[] = {
                {"stat", "diff", cli->stat},
                {"name-only", "diff", cli->name_only},
                {"force", "apply import", cli->force},
                {"older-than", "discard", cli->older_than != NULL},
                {"box", "run session diff apply discard snapshot restore fork export", cli->box != NULL},
                {"list", "snapshot", cli->list},
                {"remove", "snapshot", cli->remove != NULL},
                {"max-size", "import", cli->max_size != NULL},
                {"max-entries", "import", cli->max_entries != NULL},
                {"json", "run explain doctor diff session shell", cli->json},
                {"shell", "session shell", cli->shell != NULL},
                {"idle-timeout", "session", cli->idle_timeout != NULL},
                {"discard", "session", cli->discard},
                {"session", "snapshot restore fork export", cli->session != NULL},
                {"stop", "snapshot fork", cli->stop},
                {"copy", "snapshot fork", cli->copy},
        };

        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                if (options[i].given && !strstr(options[i].verbs, cli->verb)) {
                        cli_complain("%s: takes no --%s", cli->verb, options[i].name);
                        return -1;
                }
        if (cli->paths && strcmp(cli->verb, "session") != 0 && (!strcmp(cli->verb, "boxes") || cli->older_than)) {
                cli_complain("%s: takes no paths here", cli->verb);
                return -1;
        }
        return 0;
}

static int dispatch(struct cli *cli) {
        if (cli->help) {
                cli_usage(stdout);
                return 0;
        }
        if (cli->version) {
                printf("hutch %s\n", hutch_version());
                return 0;
        }
        if (check_options(cli) < 0)
                return EXIT_HUTCH;
        if (!strcmp(cli->verb, "doctor")) {
                if (cli->argv || cli->command) {
                        cli_complain("doctor: takes no command; `hutch -- doctor …` runs a program of that name");
                        return EXIT_HUTCH;
                }
                return cli_doctor(cli);
        }
        for (size_t i = 0; i < sizeof(reviewing) / sizeof(reviewing[0]); i++)
                if (!strcmp(cli->verb, reviewing[i].verb)) {
                        if ((cli->argv || cli->command) && reviewing[i].act != cli_session) {
                                cli_complain("%s: takes paths; `hutch -- %s …` runs a program of that name", cli->verb,
                                             cli->verb);
                                return EXIT_HUTCH;
                        }
                        return reviewing[i].act(cli);
                }
        if (!strcmp(cli->verb, "shell"))
                return cli_shell(cli);
        if (!cli->argv && !cli->command) {
                if (!strcmp(cli->verb, "run"))
                        cli_usage(stderr);
                else
                        cli_complain("%s: no command given", cli->verb);
                return EXIT_HUTCH;
        }
        return !strcmp(cli->verb, "explain") ? cli_explain(cli) : cli_run(cli);
}

int main(int argc, char **argv) {
        struct cli cli = {.verb = "run", .stdin_from = "inherit"};
        hutch_error err = {0};
        int status = EXIT_HUTCH, fd;

        /* A caller that closed one of the three must not have hutch's own fds born there. */
        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd < 3);
        if (fd >= 3)
                close(fd);
        if (hutch_policy_new(&cli.policy) < 0) {
                cli_complain("cannot find out the current folder: enter one that exists");
                return EXIT_HUTCH;
        }
        if (hutch_policy_use_preset(cli.policy, HUTCH_PRESET_RUN, &err) < 0)
                cli_complain("%s", err.message);
        else if (cli_parse(argc, argv, &cli) == 0)
                status = dispatch(&cli);
        hutch_policy_free(cli.policy);
        if (fflush(stdout) != 0 && status == 0) {
                cli_complain("cannot write to stdout: %s", hutch_errno_text(errno));
                status = EXIT_HUTCH;
        }
        return status;
}
