/* hutch run: one command in one box, and its result in the form that was asked for. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_stdin(const struct cli *cli, hutch_request *request) {
        request->streams[0] = HUTCH_STREAM_FD;
        request->fds[0] = STDIN_FILENO;
        if (!strcmp(cli->stdin_from, "none"))
                request->streams[0] = HUTCH_STREAM_NONE;
        else if (strcmp(cli->stdin_from, "inherit") != 0) {
                request->fds[0] = open(cli->stdin_from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
                if (request->fds[0] < 0) {
                        cli_complain("--stdin %s: %s", cli->stdin_from, hutch_errno_text(errno));
                        return -1;
                }
        }
        return 0;
}

/* Opened before the command starts: what the box does to the file's name meanwhile does not matter. An earlier box may
 * have put a link or a FIFO there. */
static int open_result(const struct cli *cli, int *ret) {
        struct stat st;

        *ret = -1;
        if (!cli->result_file)
                return 0;
        *ret = open(cli->result_file, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
        if (*ret < 0 || fstat(*ret, &st) < 0) {
                cli_complain("--result %s: %s", cli->result_file,
                             errno == ELOOP   ? "a symbolic link: name the file itself"
                             : errno == ENXIO ? "not a regular file"
                                              : hutch_errno_text(errno));
                return -1;
        }
        if (!S_ISREG(st.st_mode) || ftruncate(*ret, 0) < 0) {
                cli_complain("--result %s: not a regular file", cli->result_file);
                return -1;
        }
        return 0;
}

static int write_json(const hutch_result *result, int fd) {
        hutch_error err = {0};
        char *text;
        FILE *file;
        bool failed;

        if (hutch_result_to_json(result, &text, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        file = fd < 0 ? stdout : fdopen(fd, "w");
        failed = !file || fputs(text, file) < 0 || fputc('\n', file) < 0 || fflush(file) != 0;
        if (file && file != stdout)
                failed = fclose(file) != 0 || failed;
        free(text);
        if (failed)
                cli_complain("cannot write the result: %s", hutch_errno_text(errno));
        return failed ? -1 : 0;
}

/* A command that is not in the box but on the host's PATH: say where it is and how to attach it. */
static bool hint_at_host(const char *command) {
        const char *path = getenv("PATH");
        char *copy = strdup(path ? path : ""), *next = copy;
        bool found = false;

        for (char *dir; !found && !strchr(command, '/') && (dir = strsep(&next, ":"));) {
                char full[4096];

                if (dir[0] != '/' || (size_t) snprintf(full, sizeof(full), "%s/%s", dir, command) >= sizeof(full) ||
                    access(full, X_OK) < 0)
                        continue;
                cli_complain("%s: command not found in the box; the host has it in %s, which the box does not show "
                             "(--ro %s attaches it, "
                             "--env PATH=… finds it)",
                             command, dir, dir);
                found = true;
        }
        free(copy);
        return found;
}

/* Standing comforts that this host gives in part only, in one line, for a person. */
static void tell_degraded(const hutch_result *result) {
        static const char *const names[] = {"filesystem", "network", "processes", "syscalls", "ipc",
                                            "protected",  "memory",  "cpu",       "pids",     "disk"};
        char line[256] = "";

        if (!isatty(STDERR_FILENO))
                return;
        for (int g = 0; g < HUTCH_G_COUNT; g++)
                if (result->enforced[g] == HUTCH_DEGRADED)
                        snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", line[0] ? ", " : "",
                                 names[g]);
        if (line[0])
                cli_complain("note: degraded: %s (`hutch explain` says why)", line);
}

static void report(const struct cli *cli, const hutch_result *result) {
        if (result->error.code != HUTCH_OK && !(result->exit_code == 127 && cli->argv && hint_at_host(cli->argv[0])))
                cli_complain("%s", result->error.message);
        else if (result->kill_reason == HUTCH_KILLED_TIMEOUT)
                cli_complain("timeout: the box was ended");
        else if (result->kill_reason == HUTCH_KILLED_OUTPUT)
                cli_complain("the output reached its cap: the box was ended");
        for (int i = 1; i < 3; i++)
                if (result->output_dropped[i] > 0 && result->kill_reason != HUTCH_KILLED_OUTPUT && !cli->json)
                        cli_complain("%llu bytes of %s over the cap were dropped",
                                     (unsigned long long) result->output_dropped[i], i == 1 ? "stdout" : "stderr");
        for (const char *const *n = result->notices; !cli->json && n && *n; n++)
                if (cli_notice_matters(*n))
                        cli_complain("%s", *n);
        if (result->box_id && !cli->json && result->error.code == HUTCH_OK) {
                size_t n = 0;

                for (const char *const *lists[] = {result->created, result->modified, result->deleted}, *const **l =
                                                                                                                lists;
                     l < lists + 3; l++)
                        for (const char *const *p = *l; *p; p++)
                                n++;
                cli_complain(
                        "%zu change%s kept in box %s, the host is as it was: `hutch diff` shows, `hutch apply` takes, "
                        "`hutch discard` drops them",
                        n, n == 1 ? "" : "s", result->box_id);
        }
        tell_degraded(result);
}

static int run(struct cli *cli, hutch_box *box, const hutch_request *request, int result_fd) {
        hutch_result *result = NULL;
        hutch_error err = {0};
        int status;

        hutch_box_run(box, request, &result, &err);
        if (!result) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        status = result->exit_code;
        if (cli->capture)
                fwrite(result->output[HUTCH_STDOUT], 1, result->output_len[HUTCH_STDOUT], stdout);
        if (fflush(stdout) != 0) {
                cli_complain("cannot write to stdout: %s", hutch_errno_text(errno));
                status = EXIT_HUTCH;
        }
        report(cli, result);
        if ((cli->json || result_fd >= 0) && write_json(result, result_fd) < 0)
                status = EXIT_HUTCH;
        hutch_result_free(result);
        return status;
}

/* No box, but a result all the same. */
static void refuse(const struct cli *cli, const hutch_error *err, int result_fd) {
        const hutch_result result = {.exit_code = EXIT_HUTCH, .output = {NULL, "", ""}, .backend = "", .error = *err};

        cli_complain("%s", err->message);
        if (cli->json || result_fd >= 0)
                write_json(&result, result_fd);
}

int cli_run(struct cli *cli) {
        hutch_request request = {.struct_size = sizeof(request),
                                 .argv = cli->argv,
                                 .command = cli->command,
                                 .streams = {0, HUTCH_STREAM_FD, HUTCH_STREAM_FD},
                                 .fds = {0, STDOUT_FILENO, STDERR_FILENO}};
        hutch_box_options options = {.struct_size = sizeof(options), .keep_changes = true, .id = cli->box};
        hutch_error err = {0};
        hutch_box *box = NULL;
        int result_fd, status = EXIT_HUTCH;

        if (cli->json || cli->capture)
                request.streams[HUTCH_STDOUT] = HUTCH_STREAM_CAPTURE;
        if (cli->json)
                request.streams[HUTCH_STDERR] = HUTCH_STREAM_CAPTURE;
        if (open_stdin(cli, &request) < 0 || open_result(cli, &result_fd) < 0)
                return EXIT_HUTCH;
        if (hutch_context_new(HUTCH_WARDEN_SELF, &options.context, &err) < 0 ||
            hutch_box_open(cli->policy, &options, &box, &err) < 0)
                refuse(cli, &err, result_fd);
        else
                status = run(cli, box, &request, result_fd);
        hutch_box_close(box);
        hutch_context_free(options.context);
        return status;
}
