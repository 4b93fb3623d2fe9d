/* What goes into a run and comes out of it: text of any size, stdin, variables, directory, arguments, output as it
 * comes, and the output of background jobs, which is never another run's. */
#include "scene.h"

#include <fcntl.h>

static void texts(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        enum { MEGABYTES = 4 << 20 };
        char *big = malloc(MEGABYTES + 100);
        hutch_result *r;
        size_t n = 0;

        n += (size_t) sprintf(big, "x='");
        memset(big + n, 'a', MEGABYTES);
        strcpy(big + n + MEGABYTES, "'; echo ${#x}; y=1");
        says(box, big, "4194304\n", "a text of 4 MiB in one word");
        says(box, "echo ${#x} $y", "4194304 1\n", "what it set is there");
        n = 0;
        while (n < MEGABYTES - 20)
                n += (size_t) sprintf(big + n, "z=%zu\n", n);
        strcpy(big + n, "echo $z");
        r = run_text(box, big);
        ok(r->exit_code == 0 && atol(r->output[1]) > MEGABYTES - 60, "a text of 300,000 lines");
        hutch_result_free(r);
        hutch_result_free(run_text(box, "unset x"));
        n = (size_t) sprintf(big, "quoted=1; :");
        while (n < MEGABYTES / 4)
                n += (size_t) sprintf(big + n, " 'a'");
        hutch_result_free(run_text(box, big));
        says(box, "echo $quoted; history | grep -c '^ *[0-9]* *quoted=1; : .a. .a.'", "1\n1\n",
             "a megabyte of quotes, which the history cuts");
        says(box, "echo \xff\xfe; v=\xc3; echo ${v@Q}", "\xff\xfe\n$'\\303'\n", "a text that is no UTF-8");
        says(box, "echo -n a; printf '\\0'; echo b", "a", "output with a NUL is kept");
        r = run_text(box, "printf 'a\\0b'");
        ok(r->output_len[1] == 3 && !memcmp(r->output[1], "a\0b", 3), "to its last byte");
        hutch_result_free(r);
        r = run_text(box, "head -c 3000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero | tr '\\0' y >&2");
        ok(r->output_len[1] == 3000000 && r->output_len[2] == 1000000, "megabytes of output on both streams");
        hutch_result_free(r);
        says(box, "printf 'no newline'", "no newline", "output without a newline at its end");
        says(box, "echo out; echo err >&2", "out\n", "stdout and stderr are apart");
        ok(in_step(box), "in step after all of it");
        free(big);
        hutch_box_close(box);
}

/* Where the text's length is known, a NUL byte cannot cut it short without a word. */
static void nul(hutch_box *box) {
        static const char text[] = "echo one\0; echo two";
        hutch_request request = {.struct_size = sizeof(request), .command = text, .command_len = sizeof(text) - 1};
        hutch_result *r = run_request(box, &request);

        ok(tap_ret < 0 && r->error.code == HUTCH_E_USAGE && r->output_len[1] == 0,
           "a NUL byte in a text is refused: %s", tap_err.message);
        hutch_result_free(r);
        request.command_len = 8;
        r = run_request(box, &request);
        is(r->output[1], "one\n", "the same text up to it is not");
        hutch_result_free(r);
}

static void refusals(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        const char *const argv[] = {"echo", NULL}, *const bad[] = {"1X=2", NULL},
                          *const worse[] = {"HUTCH_TEST_X", NULL};
        hutch_request both = {.struct_size = sizeof(both), .command = "echo", .argv = argv},
                      none = {.struct_size = sizeof(none)};
        hutch_request env = {.struct_size = sizeof(env), .command = "echo ${HUTCH_TEST_X-none}", .env = bad};
        hutch_box *plain;
        hutch_result *r;

        r = run_request(box, &both);
        ok(tap_ret < 0 && r->error.code == HUTCH_E_USAGE, "a text and arguments at once are refused: %s",
           tap_err.message);
        hutch_result_free(r);
        r = run_request(box, &none);
        ok(tap_ret < 0 && r->error.code == HUTCH_E_USAGE, "neither is refused: %s", tap_err.message);
        hutch_result_free(r);
        r = run_request(box, &env);
        ok(tap_ret < 0 && r->error.code == HUTCH_E_USAGE, "a variable with a bad name is refused: %s", tap_err.message);
        hutch_result_free(r);
        env.env = worse;
        setenv("HUTCH_TEST_X", "the caller's", 1);
        r = run_request(box, &env);
        is(r->output[1], "the caller's\n", "a variable without a value is the caller's");
        hutch_result_free(r);
        unsetenv("HUTCH_TEST_X");
        r = run_request(box, &env);
        is(r->output[1], "none\n", "and not there where the caller has none");
        hutch_result_free(r);
        nul(box);
        plain = new_box(context);
        nul(plain);
        hutch_box_close(plain);
        ok(in_step(box), "in step after refusals");
        hutch_box_close(box);
}

static void inputs(hutch_context *context) {
        enum { SIZE = 3 << 20 };
        hutch_box *box = open_session(context, NULL);
        hutch_request request = {.struct_size = sizeof(request), .command = "cat"};
        unsigned char *big = malloc(SIZE);
        hutch_result *r;
        int ends[2], file;

        for (size_t i = 0; i < SIZE; i++)
                big[i] = (unsigned char) (i * 2654435761u >> 13);
        request.stdin_data = big;
        request.stdin_len = SIZE;
        r = run_request(box, &request);
        ok(r->output_len[1] == SIZE && !memcmp(r->output[1], big, SIZE), "3 MiB of bytes go through a run's stdin");
        hutch_result_free(r);
        request.command = "read -r line; echo \"got $line\"";
        request.stdin_data = "first\nsecond\n";
        request.stdin_len = 13;
        r = run_request(box, &request);
        is(r->output[1], "got first\n", "a builtin reads the run's stdin");
        hutch_result_free(r);
        request.command = "sleep 0.3; cat /dev/stdin; echo end; . /dev/stdin; cat </dev/stdin";
        r = run_request(box, &request);
        is(r->output[1], "first\nsecond\nend\n", "stdin can be opened by its name, also after its end");
        hutch_result_free(r);
        says(box, "read -r line; echo \"got $line\"; cat", "got \n", "the next run does not get the rest of it");
        request.command = "true";
        request.stdin_data = big;
        request.stdin_len = SIZE;
        r = run_request(box, &request);
        ok(tap_ret == 0 && r->exit_code == 0, "stdin that nobody reads holds up nobody");
        hutch_result_free(r);
        request.command = "exec <&-; exec 3<&0; true";
        r = run_request(box, &request);
        ok(tap_ret == 0, "nor does one that is closed");
        hutch_result_free(r);
        ok(in_step(box), "in step");
        if (pipe2(ends, O_CLOEXEC) == 0) {
                request = (hutch_request){.struct_size = sizeof(request), .command = "cat"};
                request.streams[0] = HUTCH_STREAM_FD;
                request.fds[0] = ends[0];
                if (write(ends[1], "piped", 5) != 5)
                        abort();
                close(ends[1]);
                r = run_request(box, &request);
                is(r->output[1], "piped", "a pipe of the caller's as stdin");
                hutch_result_free(r);
                close(ends[0]);
        }
        file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
        request.fds[0] = file;
        request.command = "head -c 5";
        r = run_request(box, &request);
        ok(r->output_len[1] == 5, "a file of the caller's as stdin");
        hutch_result_free(r);
        close(file);
        file = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        request = (hutch_request){.struct_size = sizeof(request), .command = "echo into; echo err >&2"};
        request.streams[1] = HUTCH_STREAM_FD;
        request.fds[1] = file;
        request.streams[2] = HUTCH_STREAM_NONE;
        r = run_request(box, &request);
        ok(lseek(file, 0, SEEK_END) == 5 && r->output_len[1] == 0 && r->output_len[2] == 0,
           "a file of the caller's as stdout, stderr thrown away");
        hutch_result_free(r);
        close(file);
        unlink("out");
        ok(in_step(box), "in step");
        free(big);
        hutch_box_close(box);
}

static void parts_of_a_run(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        const char *const env[] = {"TOKEN=a=b 'c' $HOME", "EMPTY=", NULL};
        const char *const argv[] = {"printf", "<%s>", "a b", "c'd", "$HOME", "*", "", "e\nf", NULL}, *const cd[] = {
                                                                                                             "cd",
                                                                                                             "/usr",
                                                                                                             NULL};
        const char *const missing[] = {"no-such-command", "-x", NULL};
        hutch_request request = {
                .struct_size = sizeof(request), .command = "echo \"$TOKEN|$EMPTY|\"; env | grep ^TOKEN", .env = env};
        hutch_result *r = run_request(box, &request);

        is(r->output[1], "a=b 'c' $HOME||\nTOKEN=a=b 'c' $HOME\n", "variables of one run");
        hutch_result_free(r);
        says(box, "echo ${TOKEN-none}${EMPTY-none}; env | grep TOKEN", "nonenone\n", "do not persist");
        hutch_result_free(run_text(box, "TOKEN=mine"));
        request.command = "OTHER=set; exit 3";
        r = run_request(box, &request);
        ok(r->exit_code == 3, "nor over an exit");
        hutch_result_free(r);
        says(box, "echo $TOKEN $OTHER", "mine set\n", "what they covered is back, what the text set stays");
        request = (hutch_request){.struct_size = sizeof(request), .argv = argv};
        r = run_request(box, &request);
        is(r->output[1], "<a b><c'd><$HOME><*><><e\nf>", "arguments are taken as they are");
        hutch_result_free(r);
        request.argv = cd;
        hutch_result_free(run_request(box, &request));
        says(box, "pwd", "/usr\n", "a builtin by arguments is the shell's own");
        request.argv = missing;
        r = run_request(box, &request);
        ok(r->exit_code == 127, "a command that is not there: 127");
        hutch_result_free(r);
        request = (hutch_request){.struct_size = sizeof(request), .command = "pwd", .cwd = "/usr/lib"};
        r = run_request(box, &request);
        is(r->output[1], "/usr/lib\n", "the directory of one run");
        hutch_result_free(r);
        request.cwd = "/no/such/directory";
        r = run_request(box, &request);
        ok(r->exit_code != 0 && r->output_len[1] == 0, "one that is not there: the text is not run");
        hutch_result_free(r);
        ok(in_step(box), "in step");
        hutch_box_close(box);
}

/* Plain builtins go a shorter way: it must not be seen. */
static void plain_builtins(hutch_context *context) {
        static const struct {
                const char *text, *out, *err;
                int code;
        } rows[] = {
                {"echo a b", "a b\n", "", 0},
                {"echo a b\n\n", "a b\n", "", 0},
                {"  echo  -n 2", "2", "", 0},
                {"cd /usr", "", "", 0},
                {"pwd", "/usr\n", "", 0},
                {"false", "", "", 1},
                {"true", "", "", 0},
                {"X=1", "", "", 0},
                {"export Y=a=b", "", "", 0},
                {"cd /nonexistent", "", NULL, 1},
                {"cd", "", "", 0},
                {"pwd", "/home/user\n", "", 0},
                {"export 1=2", "", NULL, 1},
                {"cd -", "/usr\n", "", 0},
                {"X=", "", "", 0},
                {"echo", "\n", "", 0},
        };
        hutch_box *box = open_session(context, NULL);
        hutch_request thrown = {
                .struct_size = sizeof(thrown), .command = "echo away", .streams = {[1] = HUTCH_STREAM_NONE}};
        struct hutch_request capped = {.struct_size = sizeof(capped), .command = "echo 1234567890", .output_cap = 4};
        hutch_result *r;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                if (i % 2)
                        nap(10); /* the state is known then, and the text is known to be plain */
                r = run_text(box, rows[i].text);
                if (!ok(!strcmp(r->output[1], rows[i].out) && (!rows[i].err || !strcmp(r->output[2], rows[i].err)) &&
                                r->exit_code == rows[i].code && (rows[i].err || strstr(r->output[2], "bash")),
                        "plain: '%s'", rows[i].text))
                        printf("#   got '%s' '%s' %d\n", r->output[1], r->output[2], r->exit_code);
                hutch_result_free(r);
        }
        says(box, "echo \"$X|$Y\"", "|a=b\n", "what they set is there");
        nap(10);
        r = run_request(box, &thrown);
        ok(r->output_len[1] == 0 && r->exit_code == 0, "thrown away");
        hutch_result_free(r);
        r = run_request(box, &capped);
        ok(r->output_len[1] == 4 && r->kill_reason == HUTCH_KILLED_OUTPUT, "capped");
        hutch_result_free(r);
        hutch_result_free(run_text(box, "echo() { builtin echo mine; }"));
        nap(10);
        says(box, "echo x", "mine\n", "a function of that name");
        hutch_result_free(run_text(box, "unset -f echo; alias echo='echo alias'"));
        nap(10);
        says(box, "echo x", "alias x\n", "an alias");
        hutch_result_free(run_text(box, "unalias echo; (sleep 0.3; echo late) & true"));
        for (int i = 0; i < 20; i++) {
                r = run_text(box, "echo x");
                if (strcmp(r->output[1], "x\n") || r->output_len[2])
                        ok(false, "a plain run got '%s' '%s'", r->output[1], r->output[2]);
                hutch_result_free(r);
                nap(20);
        }
        ok(in_step(box), "in step");
        hutch_box_close(box);
}

struct heard {
        char text[256];
        double first, last;
        int calls;
};

static void hear(void *user, int stream, const void *data, size_t len) {
        struct heard *h = user;

        (void) stream;
        h->last = now_ms();
        if (h->calls++ == 0)
                h->first = h->last;
        strncat(h->text, data, len < 100 ? len : 100);
}

static void streaming(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        struct heard h = {0};
        hutch_request request = {.struct_size = sizeof(request),
                                 .command = "echo one; sleep 0.4; echo two",
                                 .on_output = hear,
                                 .user = &h};
        hutch_result *r = run_request(box, &request);

        ok(!strcmp(h.text, "one\ntwo\n") && h.last - h.first > 200, "output is heard as it comes (%.0f ms apart)",
           h.last - h.first);
        is(r->output[1], "one\ntwo\n", "and is in the result");
        hutch_result_free(r);
        hutch_box_close(box);
}

/* Whoever reads what is printed goes away: the run ends, as in a pipe of a shell. */
static void nobody_reads(hutch_context *context) {
        static const char *const texts[] = {"yes", "yes #", "seq 1 1000000; echo $? >&2"};
        hutch_box *box = open_session(context, NULL);

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                hutch_request request = {.struct_size = sizeof(request), .command = texts[i], .timeout_ms = 5000};
                hutch_result *r;
                int ends[2];

                MUST(pipe(ends));
                close(ends[0]);
                request.streams[1] = HUTCH_STREAM_FD;
                request.fds[1] = ends[1];
                r = run_request(box, &request);
                close(ends[1]);
                ok(!r->killed && (i == 2 ? !strcmp(r->output[2], "141\n") : r->exit_code == 141),
                   "'%s' that nobody reads: status %d", texts[i], r->exit_code);
                hutch_result_free(r);
                ok(in_step(box), "'%s' that nobody reads: in step", texts[i]);
        }
        says(box, "/bin/echo a", "a\n", "afterwards it is read again");
        hutch_box_close(box);
}

static void background(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        char *state = NULL;
        hutch_result *r;
        bool noticed = false;

        says(box, "(sleep 0.2; echo late line; echo late error >&2) & echo now", "now\n",
             "a job in the background holds up nobody");
        says(box, "echo other", "other\n", "its output is not the next run's");
        for (int i = 0; i < 100 && !noticed; i++) {
                r = run_text(box, "echo quiet");
                noticed = strstr(notice_of(r), "background jobs") != NULL;
                if (strcmp(r->output[1], "quiet\n") || r->output_len[2])
                        ok(false, "late output in another run's result: '%s' '%s'", r->output[1], r->output[2]);
                hutch_result_free(r);
                nap(20);
        }
        ok(noticed, "a notice tells of it");
        MUST(hutch_box_state(box, &state, &tap_err));
        ok(strstr(state, "late line") && strstr(state, "late error") && strstr(state, "\"run\":1"),
           "the state has it, with the run that it is of");
        free(state);
        r = run_text(box, "echo quiet");
        is(notice_of(r), "", "it is told once");
        hutch_result_free(r);
        hutch_result_free(run_text(box, "yes late & Y=$!"));
        nap(300);
        ok(in_step(box), "a job that never stops talking: in step");
        MUST(hutch_box_state(box, &state, &tap_err));
        ok(strlen(state) < 2000000, "and what is kept of it is bounded (%zu bytes)", strlen(state));
        free(state);
        says(box, "kill $Y; wait $Y 2>/dev/null; echo $?", "143\n", "it is the shell's own job");
        hutch_box_close(box);
}

/* python3 is there wherever the tests run. */
static void server(hutch_context *context) {
        static const char text[] =
                "python3 -c '\nimport socket\ns = socket.create_server((\"127.0.0.1\", 8123))\nprint(\"up\", "
                "flush=True)\nwhile True:\n"
                "  c, _ = s.accept()\n  c.sendall(b\"hello from the server\\n\")\n  c.close()\n' >log 2>&1 &";
        hutch_box *box = open_session(context, NULL);

        hutch_result_free(run_text(box, text));
        says(box, "until grep -q up log; do sleep 0.05; done; echo up", "up\n", "a server is started in one run");
        says(box, "exec 5<>/dev/tcp/127.0.0.1/8123; cat <&5; exec 5<&-", "hello from the server\n",
             "and answers in the next");
        hutch_result_free(run_for(box, "sleep 1000", 200));
        says(box, "exec 5<>/dev/tcp/127.0.0.1/8123; cat <&5; exec 5<&-", "hello from the server\n",
             "also after a timeout");
        hutch_result_free(run_text(box, "exit 3"));
        says(box, "exec 5<>/dev/tcp/127.0.0.1/8123; cat <&5; exec 5<&-", "hello from the server\n", "and an exit");
        hutch_box_close(box);
}

static void state(hutch_context *context) {
        static const char *const parts[] = {"\"cwd\":\"/usr\"",   "\"umask\":\"0027\"",          "\"PLAIN\":\"p p\"",
                                            "\"EXPORTED\":\"e\"", "\"LIST\":\"declare -a LIST=", "\"f\":\"f ()",
                                            "\"hi\":\"echo hi\"", "\"previous\":\"/workspace\"", "sleep 1234",
                                            "\"late_output\":[]", "{\"base64\":\"/w==\"}"};
        hutch_box *box = open_session(context, NULL), *plain = new_box(context);
        char *json = NULL;

        hutch_result_free(run_text(box, "cd /usr; umask 027; PLAIN='p p'; export EXPORTED=e; LIST=(1 2); f() { :; }; "
                                        "alias hi='echo hi'; ODD=$'\\xff'; IFS=,; sleep 1234 &"));
        MUST(hutch_box_state(box, &json, &tap_err));
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                if (!ok(strstr(json, parts[i]) != NULL, "the state says %s", parts[i]))
                        printf("#   %s\n", json);
        ok(!strstr(json, "__hutch"), "and nothing of hutch's own");
        free(json);
        says(box, "echo $PLAIN $PWD", "p p /usr\n", "asking for it changes nothing");
        hutch_result_free(run_text(box, "LOST=1; __hutch_dump() { kill -9 $$; }"));
        MUST(hutch_box_state(box, &json, &tap_err));
        ok(strstr(json, "\"code\":\"shell_restarted\"") && !strstr(json, "LOST"),
           "a shell that ended before it reported its state: a notice");
        free(json);
        MUST(hutch_box_state(box, &json, &tap_err));
        ok(strstr(json, "\"notices\":[]") != NULL, "which is reported once");
        free(json);
        ok(hutch_box_state(plain, &json, &tap_err) < 0 && tap_err.code == HUTCH_E_USAGE,
           "a box that is no session has none: %s", tap_err.message);
        hutch_box_close(plain);
        hutch_box_close(box);
}

int main(void) {
        hutch_context *context = new_context();

        texts(context);
        refusals(context);
        inputs(context);
        parts_of_a_run(context);
        plain_builtins(context);
        streaming(context);
        nobody_reads(context);
        background(context);
        server(context);
        state(context);
        hutch_context_free(context);
        return done_testing();
}
