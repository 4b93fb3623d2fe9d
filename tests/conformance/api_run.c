/* The library in one thread: runs, streams, results, refusals, the JSON that they become. */
#include "tap.h"

static void runs(hutch_context *context) {
        static const struct {
                const char *text, *out, *err;
                int exit_code, signal;
        } rows[] = {
                {"echo hi", "hi\n", "", 0, 0},
                {"echo out; echo err >&2; exit 7", "out\n", "err\n", 7, 0},
                {"exit 124", "", "", 124, 0},
                {"exit 125", "", "", 125, 0},
                {"exit 127", "", "", 127, 0},
                {"kill -9 $$", "", "", 137, 9},
                {"kill -TERM $$", "", "", 143, 15},
                {"pwd", "/workspace\n", "", 0, 0},
                {"id -u; id -un; hostname; echo $HOME", "1000\nuser\nsandbox\n/home/user\n", "", 0, 0},
                {"cat", "", "", 0, 0}, /* stdin is empty unless said */
                {"ls -A /workspace", "", "", 0, 0},
        };
        hutch_box *box = new_box(context);

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                hutch_result *r = run_text(box, rows[i].text);
                bool good = tap_ret == 0 && r->error.code == HUTCH_OK &&
                            !strcmp(r->output[HUTCH_STDOUT], rows[i].out) &&
                            !strcmp(r->output[HUTCH_STDERR], rows[i].err) && r->exit_code == rows[i].exit_code &&
                            r->signal == rows[i].signal && !strcmp(r->backend, "namespace");

                if (!ok(good, "run: %s", rows[i].text))
                        printf("#   %d, out '%s', err '%s', exit %d, signal %d, error '%s'\n", tap_ret, r->output[1],
                               r->output[2], r->exit_code, r->signal, r->error.message);
                hutch_result_free(r);
        }
        hutch_box_close(box);
}

static void argv_cwd_env(hutch_context *context) {
        const char *const argv[] = {"/bin/sh", "-c", "echo \"$0|$1|$PWD|$TOKEN\"", "a b", "c'd\n", NULL};
        const char *const env[] = {"TOKEN=a=b $HOME", NULL};
        hutch_request request = {.struct_size = sizeof(request), .argv = argv, .cwd = "/usr/bin", .env = env};
        hutch_box *box = new_box(context);
        hutch_result *r = NULL;

        hutch_box_run(box, &request, &r, &tap_err);
        is(r ? r->output[1] : NULL, "a b|c'd\n|/usr/bin|a=b $HOME\n", "argv, cwd and env reach the command unchanged");
        hutch_result_free(r);
        hutch_box_close(box);
}

struct heard {
        size_t n[3], calls;
        unsigned long sum;
};

static void hear(void *user, int stream, const void *data, size_t len) {
        struct heard *h = user;

        h->calls++;
        h->n[stream] += len;
        for (size_t i = 0; i < len; i++)
                h->sum = h->sum * 31 + ((const unsigned char *) data)[i];
}

static void streams(hutch_context *context) {
        enum { SIZE = 3 << 20 };
        hutch_box *box = new_box(context);
        struct heard heard = {0};
        unsigned char *big = malloc(SIZE);
        unsigned long sum = 0;
        hutch_request request = {.struct_size = sizeof(request), .command = "cat; echo -n err >&2"};
        hutch_result *r = NULL;
        int ends[2];

        for (size_t i = 0; i < SIZE; i++) {
                big[i] = (unsigned char) (i * 2654435761u >> 13);
                sum = sum * 31 + big[i];
        }
        request.stdin_data = big;
        request.stdin_len = SIZE;
        hutch_box_run(box, &request, &r, &tap_err);
        ok(r && r->output_len[1] == SIZE && !memcmp(r->output[1], big, SIZE),
           "3 MiB of bytes go in by .stdin_data and come out captured");
        is(r ? r->output[2] : NULL, "err", "stderr is captured apart");
        hutch_result_free(r);

        r = NULL;
        request.command = "cat";
        request.on_output = hear;
        request.user = &heard;
        hutch_box_run(box, &request, &r, &tap_err);
        ok(heard.n[1] == SIZE && heard.sum == sum && heard.calls > 1,
           "on_output hears all of it, in order, as it comes");
        ok(r && r->output_len[1] == SIZE, "and the result still holds it");
        hutch_result_free(r);

        r = NULL;
        heard = (struct heard){0};
        request = (hutch_request){
                .struct_size = sizeof(request), .command = "echo a; echo b >&2", .on_output = hear, .user = &heard};
        request.streams[HUTCH_STDOUT] = HUTCH_STREAM_NONE;
        hutch_box_run(box, &request, &r, &tap_err);
        ok(r && r->output_len[1] == 0 && r->output_len[2] == 2 && heard.n[1] == 0 && heard.n[2] == 2,
           "HUTCH_STREAM_NONE throws a stream away");
        hutch_result_free(r);

        r = NULL;
        if (pipe(ends) == 0) {
                char text[16] = "";

                request = (hutch_request){.struct_size = sizeof(request), .command = "echo through"};
                request.streams[HUTCH_STDOUT] = HUTCH_STREAM_FD;
                request.fds[HUTCH_STDOUT] = ends[1];
                hutch_box_run(box, &request, &r, &tap_err);
                close(ends[1]);
                if (read(ends[0], text, sizeof(text) - 1) < 0)
                        text[0] = 0;
                is(text, "through\n", "HUTCH_STREAM_FD: the command writes to the caller's pipe");
                close(ends[0]);
        }
        hutch_result_free(r);
        free(big);

        r = run_text(box, "printf 'a\\0b'");
        ok(r->output_len[1] == 3 && !memcmp(r->output[1], "a\0b", 4),
           "NULs in the output are kept, with one behind them");
        hutch_result_free(r);
        hutch_box_close(box);
}

static void limits(hutch_context *context) {
        hutch_policy *p = NULL;
        hutch_box *box;
        hutch_result *r;
        double began;

        MUST(hutch_policy_new(&p));
        MUST(hutch_policy_set_limit(p, HUTCH_LIMIT_TIMEOUT_MS, 200, &tap_err));
        box = new_box_with(context, p);
        began = now_ms();
        r = run_text(box, "echo before; sleep 60");
        ok(r->exit_code == 124 && r->killed && r->kill_reason == HUTCH_KILLED_TIMEOUT && now_ms() - began < 20000,
           "a timeout ends the run: 124");
        is(r->output[1], "before\n", "and what was printed is kept");
        hutch_result_free(r);
        r = run_text(box, "echo again");
        is(r->output[1], "again\n", "the box can be used again");
        hutch_result_free(r);
        hutch_box_close(box);

        MUST(hutch_policy_set_limit(p, HUTCH_LIMIT_TIMEOUT_MS, 60000, &tap_err));
        MUST(hutch_policy_set_limit(p, HUTCH_LIMIT_OUTPUT, 1000, &tap_err));
        box = new_box_with(context, p);
        r = run_text(box, "yes");
        ok(r->exit_code == 137 && r->kill_reason == HUTCH_KILLED_OUTPUT && r->output_len[1] == 1000,
           "the output cap ends the run: 137, the first 1000 bytes kept");
        hutch_result_free(r);
        hutch_box_close(box);
        hutch_policy_free(p);
}

/* Each row is a policy or a request that must be refused, with the code that says why. */
static void refusals(hutch_context *context) {
        static const struct {
                const char *option, *value, *text, *cwd;
                hutch_code code;
                const char *named; /* must stand in the message */
        } rows[] = {
                {"ro", "/no/such/directory", "true", NULL, HUTCH_E_PATH_MISSING, "/no/such/directory"},
                {"dir", "/no/such/directory", "true", NULL, HUTCH_OK, ""}, /* workspace none: never looked at */
                {"isolation", "chroot", "true", NULL, HUTCH_E_BACKEND_UNKNOWN, "chroot"},
                {"rw", "/", "true", NULL, HUTCH_E_POLICY_REFUSED, "/"},
                {"rw", "~", "true", NULL, HUTCH_E_POLICY_REFUSED, "home"},
                {NULL, NULL, "true", "relative", HUTCH_E_USAGE, "relative"},
                {NULL, NULL, "true", "/no/such/cwd", HUTCH_E_PATH_MISSING, "/no/such/cwd"},
                {NULL, NULL, NULL, NULL, HUTCH_E_USAGE, "no command"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                hutch_request request = {.struct_size = sizeof(request), .command = rows[i].text, .cwd = rows[i].cwd};
                hutch_box_options options = {.struct_size = sizeof(options), .context = context};
                hutch_error err = {0};
                hutch_result *r = NULL;
                hutch_policy *p = NULL;
                hutch_box *box = NULL;
                int ret;

                MUST(hutch_policy_new(&p));
                ret = rows[i].option ? hutch_policy_set_option(p, rows[i].option, rows[i].value, &err) : 0;
                if (ret >= 0)
                        ret = hutch_box_open(p, &options, &box, &err);
                if (ret >= 0)
                        ret = hutch_box_run(box, &request, &r, &err);
                if (!ok((ret < 0) == (rows[i].code != HUTCH_OK) && err.code == rows[i].code &&
                                strstr(err.message, rows[i].named) &&
                                (!r || (r->error.code == rows[i].code && (ret == 0 || r->exit_code == 125))),
                        "refusal: --%s %s, '%s' in %s: %s", rows[i].option, rows[i].value, rows[i].text, rows[i].cwd,
                        hutch_code_name(rows[i].code)))
                        printf("#   %d, %s: %s\n", ret, hutch_code_name(err.code), err.message);
                hutch_result_free(r);
                hutch_box_close(box);
                hutch_policy_free(p);
        }
}

static void not_found(hutch_context *context) {
        static const struct {
                const char *name;
                int exit_code;
        } rows[] = {{"no-such-command", 127}, {"/no/such/command", 127}, {"/etc/passwd", 126}, {"/usr", 126}};
        hutch_box *box = new_box(context);

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const char *const argv[] = {rows[i].name, NULL};
                hutch_request request = {.struct_size = sizeof(request), .argv = argv};
                hutch_result *r = NULL;

                hutch_box_run(box, &request, &r, &tap_err);
                if (!ok(r && r->exit_code == rows[i].exit_code && r->error.code != HUTCH_OK &&
                                strstr(r->error.message, rows[i].name),
                        "%s: %d, and an error that names it", rows[i].name, rows[i].exit_code))
                        printf("#   exit %d: %s\n", r ? r->exit_code : -1, r ? r->error.message : "");
                hutch_result_free(r);
        }
        hutch_box_close(box);
}

static void as_json(hutch_context *context) {
        hutch_box *box = new_box(context);
        hutch_result *r = run_text(box, "printf '\\377'; echo é >&2; exit 3");
        char *text = NULL;

        hutch_result_to_json(r, &text, &tap_err);
        ok(text && strstr(text, "\"exit_code\":3") && strstr(text, "\"stdout\":\"/w==\"") &&
                   strstr(text, "\"stdout\":\"base64\"") && strstr(text, "\"stderr\":\"utf-8\""),
           "the result as JSON: bytes as base64, text as text");
        free(text);
        hutch_result_free(r);
        hutch_box_close(box);
}

static void looking(hutch_context *context) {
        hutch_request request = {.struct_size = sizeof(request), .command = "touch /tmp/never"};
        hutch_policy *p = NULL;
        hutch_error err = {0};
        char *text = NULL;

        ok(hutch_backend_available(context, "namespace", &tap_err) == 0, "hutch_backend_available: namespace is (%s)",
           tap_err.message);
        ok(hutch_backend_available(context, "none", &tap_err) == 0, "hutch_backend_available: none is");
        ok(hutch_backend_available(context, "chroot", &err) < 0 && err.code == HUTCH_E_BACKEND_UNKNOWN,
           "hutch_backend_available: chroot is unknown");
        MUST(hutch_policy_new(&p));
        ok(hutch_explain(p, &request, true, &text, &tap_err) == 0 && text && text[0] == '{',
           "hutch_explain gives a plan");
        free(text);
        ok(hutch_policy_set_option(p, "memroy", "1", &err) < 0 && strstr(err.message, "--memory"),
           "an unknown option suggests the nearest: %s", err.message);
        ok(hutch_policy_set_option(p, "memory", "1", NULL) == 0 && hutch_policy_set_option(p, "memory", "x", NULL) < 0,
           "err may be NULL");
        hutch_policy_free(p);
        hutch_policy_free(NULL);
        hutch_result_free(NULL);
        hutch_box_close(NULL);
        hutch_context_free(NULL);
        ok(true, "every free function takes NULL");
}

int main(void) {
        hutch_context *context = new_context();

        runs(context);
        argv_cwd_env(context);
        streams(context);
        limits(context);
        refusals(context);
        not_found(context);
        as_json(context);
        looking(context);
        hutch_context_free(context);
        return done_testing();
}
