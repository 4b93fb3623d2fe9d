/* A program with libhutch, in three forms:
 *
 *   host once DIR OPTIONS -- COMMAND…     runs the command and ends as `hutch run` would: its output, its status, one
 * line host row N DIR OPTIONS -- COMMAND…    N runs in a row in one context; "ready" after the first, then waits for a
 * line on stdin; host crowd N DIR OPTIONS -- COMMAND…  N boxes at once in one context; likewise "done OK FAILED" at the
 * end
 *
 * OPTIONS are NAME=VALUE of hutch_policy_set_option(). */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hutch/hutch.h>

struct job {
        hutch_context *context;
        hutch_policy *policy;
        const char *const *argv;
        bool good;
};

static int complain(const hutch_error *err) {
        fprintf(stderr, "hutch: %s\n", err->message);
        return 125;
}

static int make_policy(char ***argv, hutch_policy **ret, hutch_error *err) {
        char **next = *argv;

        if (hutch_policy_new(ret) < 0) {
                snprintf(err->message, sizeof(err->message), "cannot make a policy");
                return -1;
        }
        if (hutch_policy_set_workspace(*ret, *next++, HUTCH_WORKSPACE_RW, err) < 0)
                return -1;
        for (; *next && strcmp(*next, "--") != 0; next++) {
                char name[64], *value = strchr(*next, '=');

                snprintf(name, sizeof(name), "%.*s", (int) (value ? value - *next : 60), *next);
                if (hutch_policy_set_option(*ret, name, value ? value + 1 : NULL, err) < 0)
                        return -1;
        }
        *argv = next + 1;
        return 0;
}

static int run(hutch_context *context, const hutch_policy *policy, const char *const *argv, bool loud,
               hutch_error *err) {
        hutch_box_options options = {.struct_size = sizeof(options), .context = context};
        hutch_request request = {.struct_size = sizeof(request), .argv = argv};
        hutch_result *result = NULL;
        hutch_box *box = NULL;
        int r, status = 125;

        r = hutch_box_open(policy, &options, &box, err);
        if (r >= 0)
                r = hutch_box_run(box, &request, &result, err);
        if (result) {
                status = result->exit_code;
                if (loud)
                        fwrite(result->output[HUTCH_STDOUT], 1, result->output_len[HUTCH_STDOUT], stdout);
        }
        if (r < 0 && loud)
                status = complain(err) == 125 && result ? result->exit_code : 125;
        hutch_result_free(result);
        hutch_box_close(box);
        return status;
}

static void *work(void *data) {
        struct job *job = data;
        hutch_error err = {0};

        job->good = run(job->context, job->policy, job->argv, false, &err) == 0;
        if (!job->good)
                fprintf(stderr, "%s\n", err.message);
        return NULL;
}

static int crowd(struct job *pattern, int n) {
        struct job *jobs = calloc((size_t) n, sizeof(*jobs));
        pthread_t *threads = calloc((size_t) n, sizeof(*threads));
        int good = 0;

        for (int i = 0; i < n; i++) {
                jobs[i] = *pattern;
                if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0)
                        return -1;
        }
        for (int i = 0; i < n; i++) {
                pthread_join(threads[i], NULL);
                good += jobs[i].good;
        }
        free(jobs);
        free(threads);
        return good;
}

static int many(struct job *job, bool at_once, int n) {
        int good = 0;

        work(job);
        puts("ready");
        fflush(stdout);
        if (getchar() == EOF)
                return 2;
        if (at_once)
                good = crowd(job, n);
        else
                for (int i = 0; i < n; i++) {
                        work(job);
                        good += job->good;
                }
        printf("done %d %d\n", good, n - good);
        fflush(stdout);
        return getchar() == EOF ? 2 : 0;
}

int main(int argc, char **argv) {
        struct job job = {0};
        hutch_error err = {0};
        const char *how = argc > 3 ? argv[1] : "";
        int n = 0, status, fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* where faults begin: see inject.c */

        close(fd);
        argv += 2;
        if (!strcmp(how, "row") || !strcmp(how, "crowd"))
                n = atoi(*argv++);
        else if (strcmp(how, "once") != 0)
                return 2;
        if (make_policy(&argv, &job.policy, &err) < 0 ||
            hutch_context_new(HUTCH_WARDEN_PROCESS, &job.context, &err) < 0)
                status = complain(&err);
        else {
                job.argv = (const char *const *) argv;
                status = n ? many(&job, !strcmp(how, "crowd"), n) : run(job.context, job.policy, job.argv, true, &err);
        }
        hutch_context_free(job.context);
        hutch_policy_free(job.policy);
        if (fflush(stdout) == 0)
                return status;
        fputs("hutch: host: cannot write to stdout\n", stderr);
        return 125;
}
