/* A runner of the caller's starts the program that builds the box. usage: runner POLICY-FILE   (whose backend is bwrap,
 * container or systemd-run). Prints "ok - …" or "not ok - …". */
#include <errno.h>
#include <hutch/hutch.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>

struct seen {
        int calls, words;
        bool leaked;
};

static int start(void *user, const char *program, const char *const *argv, const char *const *env) {
        struct seen *seen = user;
        pid_t pid;
        int r;

        seen->calls++;
        for (const char *const *word = argv; *word; word++, seen->words++)
                seen->leaked = seen->leaked || strstr(*word, "a secret") || strstr(*word, "echo");
        for (const char *const *variable = env; *variable; variable++)
                seen->leaked = seen->leaked || strstr(*variable, "a secret");
        r = posix_spawn(&pid, program, NULL, NULL, (char *const *) argv, (char *const *) env);
        return r ? -r : pid;
}

static int refuse(void *user, const char *program, const char *const *argv, const char *const *env) {
        (void) user, (void) program, (void) argv, (void) env;
        return -EACCES;
}

static void tell(bool good, const char *what, const hutch_result *result, const hutch_error *err) {
        printf("%s - runner: %s\n", good ? "ok" : "not ok", what);
        if (!good)
                printf("# %s; %s\n", err->message, result ? result->error.message : "no result");
}

int main(int argc, char **argv) {
        static const char *const command[] = {"sh", "-c", "echo \"$VALUE\"", NULL};
        static const char *const env[] = {"VALUE=a secret", NULL};
        struct seen seen = {0};
        hutch_request request = {.struct_size = sizeof(request), .argv = command, .env = env, .runner = start, .user = &seen};
        hutch_box_options options = {.struct_size = sizeof(options)};
        hutch_policy *policy = NULL;
        hutch_box *box = NULL;
        hutch_result *result = NULL;
        hutch_error err = {0};
        int r = -1;

        if (argc == 2 && hutch_context_new(HUTCH_WARDEN_SELF, &options.context, &err) >= 0 && hutch_policy_new(&policy) >= 0 &&
            hutch_policy_load_file(policy, argv[1], &err) >= 0 && hutch_box_open(policy, &options, &box, &err) >= 0)
                r = hutch_box_run(box, &request, &result, &err);
        tell(r >= 0 && result->exit_code == 0 && !strcmp(result->output[HUTCH_STDOUT], "a secret\n"), "the box ran", result, &err);
        tell(seen.calls == 1 && seen.words > 4 && !seen.leaked, "it got the program's arguments, and nothing of the command", result, &err);
        hutch_result_free(result);
        result = NULL;
        request.runner = refuse;
        r = hutch_box_run(box, &request, &result, &err);
        tell(r < 0 || result->exit_code == 125, "one that starts nothing is hutch's failure", result, &err);
        hutch_result_free(result);
        result = NULL;
        hutch_box_close(box);
        hutch_policy_set_isolation(policy, "namespace", &err);
        hutch_box_open(policy, &options, &box, &err);
        r = hutch_box_run(box, &request, &result, &err);
        tell(r < 0 || result->exit_code == 125, "it is refused where hutch starts init itself", result, &err);
        hutch_result_free(result);
        hutch_box_close(box);
        hutch_policy_free(policy);
        hutch_context_free(options.context);
        return 0;
}
