/* hutch exec: scans a script, then runs it in a box with the workspace read-only. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "verbs.h"

struct exec_options {
        struct run_options run; /* first: cli_run_with() reads it */
        const char *runtime, *skill_dir, *collect;
        bool check;
};

struct job {
        const struct invocation *in;
        hutch_exec_request request;
};

static int exec_it(void *data, const hutch_request *request, hutch_result **ret, hutch_error *err) {
        struct job *j = data;
        int r = hutch_context_new(HUTCH_WARDEN_SELF, &j->request.context, err);

        j->request.run = request;
        if (r >= 0)
                r = hutch_exec(j->in->policy, &j->request, ret, err);
        hutch_context_free(j->request.context);
        return r;
}

/* Prints every problem and reports by the exit status whether the script would be refused. */
static int check(const struct invocation *in, const struct exec_options *o, const hutch_exec_request *request) {
        hutch_problem **problems;
        hutch_error err = {0};
        int status = 0;

        if (in->error.code != HUTCH_OK) {
                cli_complain("%s", in->error.message);
                return EXIT_HUTCH;
        }
        if (hutch_exec_check(in->policy, request, &problems, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        if (o->run.json)
                fputs("[", stdout);
        for (size_t i = 0; problems[i]; i++) {
                const hutch_problem *p = problems[i];

                if (p->severity == HUTCH_CRITICAL)
                        status = EXIT_HUTCH;
                if (o->run.json) {
                        printf("%s{\"part\":\"%s\",\"code\":\"%s\",\"refused\":%s,\"message\":", i ? "," : "", p->part,
                               hutch_code_name(p->code), p->severity == HUTCH_CRITICAL ? "true" : "false");
                        cli_put_json(stdout, p->message);
                        fputs("}", stdout);
                } else
                        printf("%s: %s%s\n", p->part, p->severity == HUTCH_CRITICAL ? "" : "note: ", p->message);
        }
        if (o->run.json)
                fputs("]\n", stdout);
        else if (!problems[0])
                puts("no problems");
        hutch_free(problems);
        return status;
}

static int exec_script(const struct invocation *in) {
        const struct exec_options *o = in->options;
        struct job j = {.in = in, .request = {.struct_size = sizeof(j.request)}};

        if (!in->command) {
                cli_complain("no script to run: hutch exec %s", in->verb->synopsis);
                return EXIT_HUTCH;
        }
        j.request.script = in->command[0];
        j.request.args = in->command + 1;
        j.request.runtime = o->runtime;
        j.request.skill_dir = o->skill_dir;
        j.request.collect = o->collect;
        if (o->check)
                return check(in, o, &j.request);
        return cli_run_with(in, in->command, exec_it, &j);
}

/* ---- hutch run script.sh ---- */

static bool is_command(const char *word) {
        const char *path = getenv("PATH");
        bool found = false;

        for (const char *at = path ? path : "/usr/bin:/bin"; *at && !found; at += strspn(at, ":")) {
                size_t n = strcspn(at, ":");
                char file[4096];

                if (n > 0 && (size_t) snprintf(file, sizeof(file), "%.*s/%s", (int) n, at, word) < sizeof(file))
                        found = access(file, X_OK) == 0;
                at += n;
        }
        return found;
}

bool cli_is_script(const struct invocation *in, const char *word) {
        struct stat st;

        (void) in;
        return !strchr(word, '/') && stat(word, &st) == 0 && S_ISREG(st.st_mode) && !is_command(word) &&
               (st.st_mode & 0111 || strcmp(hutch_detect_runtime(word), "binary") != 0);
}

int cli_run_script(const struct invocation *in) {
        struct job j = {
                .in = in,
                .request = {.struct_size = sizeof(j.request), .script = in->command[0], .args = in->command + 1}};

        return cli_run_with(in, in->command, exec_it, &j);
}

#define AT(field) OPTION_AT(struct exec_options, field)

static const struct option options[] = {
        {"runtime", 0, "NAME", "python, node, shell or binary (default: by extension or '#!')", AT(runtime)},
        {"skill-dir", 0, "DIR", "attach DIR read-only and replace {baseDir} in script and arguments by it",
         AT(skill_dir)},
        {"collect", 0, "DIR", "copy the files that the script leaves in its TMPDIR to a new or empty directory",
         AT(collect)},
        {"check", 0, NULL, "report every problem of the script and its policy, and run nothing", AT(check)},
        {"stdin", 0, "inherit|none|FILE", "where standard input comes from", AT(run.stdin_from)},
        {"json", 0, NULL, "capture both streams and print one result object", AT(run.json)},
        {"json-lines", 0, NULL, "print output, notices and denials as JSON lines, then the result", AT(run.json_lines)},
        {"result", 0, "FILE|fd:N", "write the result object to a file, a FIFO or a descriptor", AT(run.result)},
        {"capture", 0, NULL, "print stdout at the end, in one piece", AT(run.capture)},
        {"quiet", 0, NULL, "print nothing of hutch's own on stderr but errors", AT(run.quiet)},
        {"die-with-parent", 0, NULL, "end the box when the process that started hutch ends", AT(run.die_with_parent)},
        {0},
};

const struct verb verb_exec = {
        .name = "exec",
        .synopsis = "[OPTIONS] SCRIPT [ARG…]",
        .summary = "scan a script, then run it in a box",
        .flags = VERB_COMMAND | VERB_RESULT,
        .box_options = HUTCH_OPTION_BOX | HUTCH_OPTION_EXEC,
        .preset = HUTCH_PRESET_EXEC,
        .options = options,
        .size = sizeof(struct exec_options),
        .run = exec_script,
};
