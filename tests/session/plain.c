/* Plain words are a line of their own to the shell and all else is a file: one must end as the other, whatever was
 * defined before; and nobody notices the difference when runs are cancelled at any moment. */
#include "scene.h"

#include <pthread.h>
#include <unistd.h>

static const struct row {
        const char *name, *before, *words;
} rows[] = {
        {"a program", "true", "./fds"},
        {"a program that looks like an assignment", "cp fds a=b", "./a=b"},
        {"a builtin that is none any more", "enable -n echo; cp fds echo; PATH=$PWD:$PATH", "echo"},
        {"a name that no variable can have", "command_not_found_handle() { ./fds; }", "a-b=c"},
        {"a variable that cannot be set", "readonly x", "x=1"},
        {"a locale that is not there", "true", "LC_ALL=xx_YY"},
        {"folders as commands", "shopt -s autocd", "src"},
        {"folders with other names", "shopt -s cdspell", "cd scr"},
        {"an alias like an option", "alias -- -='cd /usr'", "-"},
        {"a function that cannot be changed", "ls() { x=5; echo f; }; readonly -f ls", "ls"},
        {"a trap of a signal", "trap 'echo u; x=9' USR1", "./usr1"},
        {"a trap of children", "trap 'echo c' CHLD", "ls src"},
        {"a trap of returns", "trap 'echo r' RETURN", "echo a"},
        {"more variables than a FIFO holds", "for i in 1 2 3 4 5; do export B$i=$(printf %020000d 0); done",
         "export -p"},
        {"a folder with a long name", "n=$(printf %0200d 0); for i in {1..100}; do mkdir $n && cd $n; done 2>/dev/null",
         "pwd"},
        {"a job", "sleep 0.1 &", "%1"},
        {"stdin of programs, taken", "exec 195<src/../fds", "./fds"},
        {"stdout of programs, closed", "exec 196>&-", "./fds"},
        {"stderr of programs, taken", "exec 197>taken", "./nothing"},
        {"stderr of builtins, closed", "exec 197>&-", "cd nowhere"},
        {"the numbers that streams are kept under, taken", "exec 10>ten 11>&10 12>&10 13>&10", "./fds"},
        {"a prompt that prints", "true", "PROMPT_COMMAND=pwd"},
        {"a prompt that prints, exported", "true", "export x=7 PROMPT_COMMAND=pwd"},
};

static const char scenery[] =
        "mkdir src; printf '#!/bin/sh\\nls -l /proc/self/fd | grep -c \"19[0-9] ->\"; head -c1 | wc -c\\n' "
        ">fds; printf '#!/bin/sh\\nkill -USR1 $PPID\\n' >usr1; chmod +x fds usr1";

/* What comes before the message is the shell's: where it read the text. */
static const char *message(const char *err) {
        static const char *const where[] = {"/dev/hutch/run: line 1: ", "/bin/bash: line 1: ", "/bin/bash: ", "bash: "};

        for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
                if (!strncmp(err, where[i], strlen(where[i])))
                        return err + strlen(where[i]);
        return err;
}

static void compare(hutch_context *context, const struct row *row) {
        hutch_result *ends[2], *kept[2];
        char text[64];

        for (int i = 0; i < 2; i++) {
                hutch_box *box = open_session(context, "/bin/bash");

                hutch_result_free(run_for(box, "mkdir /tmp/w; cd /tmp/w", 5000));
                hutch_result_free(run_for(box, scenery, 5000));
                hutch_result_free(run_for(box, row->before, 5000));
                usleep(30000); /* the shell tells its state */
                snprintf(text, sizeof(text), "%s%s", row->words, i ? " #" : "");
                ends[i] = run_for(box, text, 5000);
                hutch_result_free(run_for(box, "kill -9 $$", 5000));
                kept[i] = run_for(box, "builtin pwd; builtin echo $x", 5000);
                hutch_box_close(box);
        }
        ok(ends[0]->exit_code == ends[1]->exit_code && ends[0]->killed == ends[1]->killed, "%s: status %d, %d",
           row->name, ends[0]->exit_code, ends[1]->exit_code);
        ok(!strcmp(ends[0]->output[1], ends[1]->output[1]), "%s: stdout, %zu bytes", row->name, ends[1]->output_len[1]);
        is(message(ends[0]->output[2]), message(ends[1]->output[2]), "stderr");
        is(kept[0]->output[1], kept[1]->output[1], "what is kept");
        for (int i = 0; i < 2; i++) {
                hutch_result_free(ends[i]);
                hutch_result_free(kept[i]);
        }
}

/* A folder whose name is longer than the cap, at either end of what is sent at once. */
static void capped(hutch_context *context) {
        static const char deep[] = "n=$(printf %0200d 0); for i in {1..100}; do mkdir $n && cd $n; done 2>/dev/null";
        static const unsigned caps[] = {16384, 17000, 20000, 30000};

        for (int truncate = 0; truncate < 2; truncate++) {
                hutch_policy *policy = NULL;
                hutch_box *box;

                MUST(hutch_policy_new(&policy));
                MUST(hutch_policy_set_option(policy, "output-overflow", truncate ? "truncate" : "kill", &tap_err));
                box = open_session_with(context, policy, "/bin/bash");
                hutch_result_free(run_for(box, deep, 5000));
                usleep(100000);
                for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
                        hutch_request request = {.struct_size = sizeof(request), .output_cap = caps[i]};
                        hutch_result *line, *text;

                        request.command = "pwd";
                        line = run_request(box, &request);
                        request.command = "pwd #";
                        text = run_request(box, &request);
                        ok(line->exit_code == text->exit_code && line->killed == text->killed &&
                                   line->killed == (!truncate && caps[i] < 20100) &&
                                   line->output_len[1] == text->output_len[1] &&
                                   !memcmp(line->output[1], text->output[1], line->output_len[1]),
                           "capped at %u, %d: status %d, %zu bytes", caps[i], truncate, line->exit_code,
                           line->output_len[1]);
                        hutch_result_free(line);
                        hutch_result_free(text);
                }
                hutch_box_close(box);
                hutch_policy_free(policy);
        }
}

/* ---- runs that are cancelled at any moment ---- */

static hutch_box *box;
static volatile bool over;

static void *cancel(void *data) {
        unsigned seed = 3;
        hutch_error err;

        while (!over) {
                usleep((useconds_t) rand_r(&seed) % 3000);
                hutch_box_cancel(box, &err);
        }
        return data;
}

static void cancelled(hutch_context *context) {
        static const struct {
                const char *before, *behind;
        } forms[] = {{"echo", ""}, {"/bin/echo", ""}, {"echo", "; :"}, {"builtin echo", ""}};
        unsigned wrong = 0, whole = 0, seed = 4, form;
        double end = now_ms() + (is_long() ? 60000 : 6000);
        pthread_t thread;

        box = open_session(context, "/bin/bash");
        pthread_create(&thread, NULL, cancel, NULL);
        for (unsigned i = 0; now_ms() < end; i++) {
                char text[64], want[16];
                hutch_result *r;

                form = (unsigned) rand_r(&seed) % 4;
                snprintf(text, sizeof(text), "%s %05u%s", forms[form].before, i, forms[form].behind);
                snprintf(want, sizeof(want), "%05u\n", i);
                r = run_for(box, text, 10000);
                whole += !r->killed;
                /* echo may be met between a word and the newline, and no line of words behind its first byte */
                if ((strcmp(r->output[1], want) && (!r->killed || strncmp(r->output[1], want, r->output_len[1]))) ||
                    (form < 2 && strstr(r->output[2], "cho"))) {
                        printf("#   '%s': '%s', stderr '%s', status %d, killed %d\n", text, r->output[1], r->output[2],
                               r->exit_code, r->killed);
                        wrong++;
                }
                hutch_result_free(r);
        }
        over = true;
        pthread_join(thread, NULL);
        ok(whole > 0 && wrong == 0, "cancelled at any moment: %u whole runs, %u with output of another or none", whole,
           wrong);
        ok(in_step(box), "cancelled at any moment: in step");
        hutch_box_close(box);
}

/* A job ends the shell again and again: nothing is lost but what the shell was about, and who loses it hears of that.
 */
static void ended(hutch_context *context) {
        static const char killer[] =
                "setsid perl -e 'sub pids { grep { -e $_ && `cat $_ 2>&1` eq qq(bash\\n) } glob q(/proc/[0-9]*/comm) } "
                "while (1) { select undef, undef, undef, rand 0.03; m,(\\d+), and kill HUP => $1 for pids }' "
                "</dev/null >/dev/null 2>&1 &";
        unsigned wrong = 0, whole = 0, lost = 0, seed = 5;
        double end = now_ms() + (is_long() ? 60000 : 6000);

        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, killer, 5000));
        for (unsigned i = 0; now_ms() < end; i++) {
                static const char *const before[] = {"echo", "/bin/echo", ":; echo"};
                char text[64], want[16];
                hutch_result *r;

                usleep((useconds_t) rand_r(&seed) % 8000);
                snprintf(text, sizeof(text), "%s %05u", before[rand_r(&seed) % 3], i);
                snprintf(want, sizeof(want), "%05u\n", i);
                r = run_for(box, text, 10000);
                whole += r->exit_code == 0;
                lost += r->exit_code != 0;
                if (strcmp(r->output[1], want) &&
                    (r->exit_code == 0 || strncmp(r->output[1], want, r->output_len[1]))) {
                        printf("#   '%s': '%.200s', stderr '%.200s', status %d\n", text, r->output[1], r->output[2],
                               r->exit_code);
                        wrong++;
                }
                hutch_result_free(r);
        }
        ok(whole > 0 && wrong == 0, "ended at any moment: %u whole runs, %u others, %u with output of another or none",
           whole, lost, wrong);
        hutch_box_close(box);
}

/* A program leaves somebody behind, who holds its streams: nothing of that is for the runs that follow, which are given
 * others until nobody is left. The second one ends the shell as well. */
static void remains(hutch_context *context) {
        static const char scripts[] = "cd /tmp; printf '#!/bin/sh\\n(sleep 0.2; echo late; echo later >&2; sleep 0.3; "
                                      "echo last) &\\necho now\\n' >leave; "
                                      "printf '#!/bin/sh\\n(sleep 0.2; echo late; echo later >&2; sleep 0.3; echo "
                                      "last) &\\necho now; kill -9 $PPID\\n' >end; "
                                      "chmod +x leave end";
        static const char *const words[] = {"./leave", "./end"}, *const others[] = {"/bin/echo", "echo", "cd",
                                                                                    "/bin/echo #"};
        static const char where[] = "readlink /proc/self/fd/1", own[] = "/out\n";

        for (size_t i = 0; i < 2; i++) {
                hutch_result *r;
                char *state;

                box = open_session(context, "/bin/bash");
                hutch_result_free(run_for(box, scripts, 5000));
                says(box, where, own, "a program has the shell's own streams");
                says(box, words[i], "now\n", words[i]);
                for (int k = 0; k < 8; k++) {
                        r = run_for(box, others[k % 4], 5000);
                        ok(!strstr(r->output[1], "la") && !r->output[2][0], "%s, then %s: nothing of it", words[i],
                           others[k % 4]);
                        hutch_result_free(r);
                        usleep(30000);
                }
                r = run_for(box, where, 5000);
                ok(strcmp(r->output[1], own) != 0, "%s: meanwhile programs have others", words[i]);
                hutch_result_free(r);
                usleep(600000);
                hutch_result_free(run_for(box, "true #", 5000));
                says(box, where, own, "when nobody is left they have the shell's own");
                MUST(hutch_box_state(box, &state, &tap_err));
                ok(strstr(state, "late\\n") && strstr(state, "later\\n") && strstr(state, "last\\n"),
                   "%s: what was said later is kept apart", words[i]);
                free(state);
                hutch_box_close(box);
        }
}

/* What one program does to its streams is not for the next: they are the same to both. */
static void marred(hutch_context *context) {
        static const char script[] =
                "cd /tmp; printf '#!/usr/bin/perl\\nuse Fcntl; fcntl(STDOUT, F_SETFL, O_NONBLOCK | 040000);"
                "fcntl(STDOUT, 1031, 4096); chmod 0, q(/proc/self/fd/1);\\n' >mar; chmod +x mar";
        hutch_result *r;

        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, script, 5000));
        for (int i = 0; i < 2; i++) {
                r = run_for(box, "./mar", 5000);
                ok(r->exit_code == 0, "a program that mars its stdout: status %d, '%s'", r->exit_code, r->output[2]);
                hutch_result_free(r);
                r = run_for(box, "seq 1 400000", 5000);
                ok(r->exit_code == 0 && r->output_len[1] == 2688895, "the next one: %zu bytes, status %d",
                   r->output_len[1], r->exit_code);
                hutch_result_free(r);
                r = run_for(box, "stat -Lc %a /proc/self/fd/1", 5000);
                is(r->output[1], "600\n", "and its mode");
                hutch_result_free(r);
        }
        hutch_box_close(box);
}

/* The arithmetic of an assignment leaves somebody behind. */
static void computed(hutch_context *context) {
        static const char text[] =
                "declare -i x; declare -a a; y='a[$( (sleep 0.2; echo LATE >&2) >/dev/null & echo 0)]'";

        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, text, 5000));
        usleep(30000);
        hutch_result_free(run_for(box, "x=y", 5000));
        usleep(300000);
        for (int i = 0; i < 3; i++) {
                static const char *const words[] = {"/bin/echo a", "cd /tmp", "/bin/echo b"};
                hutch_result *r = run_for(box, words[i], 5000);

                is(r->output[2], "", "an assignment's job: nothing of it in another run");
                hutch_result_free(r);
        }
        hutch_box_close(box);
}

/* A trap that ran between two runs left a job, which prints for ever where builtins do. */
static void left_behind(hutch_context *context) {
        unsigned wrong = 0;

        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, "trap 'while :; do echo late; sleep 0.001; done &' USR1", 5000));
        hutch_result_free(run_for(box, "(sleep 0.1; kill -USR1 $$) &", 5000));
        usleep(300000);
        says(box, "trap - USR1; jobs -r 2>&1 | grep -c late", "1\n", "a trap's job is there");
        usleep(30000);
        for (int i = 0; i < 500; i++) {
                hutch_result *r = run_for(box, "echo a", 5000);

                wrong += strcmp(r->output[1], "a\n") != 0;
                hutch_result_free(r);
        }
        ok(wrong == 0, "a trap's job: its output is in %u runs of others", wrong);
        hutch_box_close(box);
}

/* An interrupt that meets the shell in the middle of a line must not leave the rest of it to be run. */
static volatile unsigned turn;

static void *cancel_early(void *data) {
        unsigned seed = 7, last = 0;
        hutch_error err;

        while (!over) {
                while (turn == last && !over)
                        ;
                last = turn;
                for (volatile int i = rand_r(&seed) % 40000; i > 0; i--)
                        ;
                hutch_box_cancel(box, &err);
        }
        return data;
}

static void tails(hutch_context *context) {
        unsigned killed = 0, wrong = 0;
        char text[900] = "/bin/echo";
        pthread_t thread;

        while (strlen(text) < 850)
                strcat(text, " touch /tmp/tail");
        over = false;
        box = open_session(context, "/bin/bash");
        pthread_create(&thread, NULL, cancel_early, NULL);
        for (int i = 0; i < (is_long() ? 40000 : 3000); i++) {
                hutch_result *r;

                turn++;
                r = run_for(box, text, 10000);
                killed += r->killed;
                wrong += strstr(r->output[2], "not found") != NULL;
                hutch_result_free(r);
        }
        over = true;
        pthread_join(thread, NULL);
        ok(killed > 0 && wrong == 0, "a line that is cancelled while it is read: %u cancelled, of %u a rest was run",
           killed, wrong);
        says(box, "ls /tmp", "", "a line that is cancelled while it is read: nothing was made");
        hutch_box_close(box);
}

/* The shell closes the descriptor that it traced to; and a script without #! is run by a copy of the shell. */
static void own_descriptors(hutch_context *context) {
        hutch_result *r;

        box = open_session(context, "/bin/bash");
        usleep(30000);
        hutch_result_free(run_for(box, "BASH_XTRACEFD=197", 5000));
        hutch_result_free(run_for(box, "BASH_XTRACEFD=", 5000));
        r = run_for(box, "cd /nowhere", 5000);
        ok(r->exit_code == 1 && strstr(r->output[2], "/nowhere"), "a stream that the shell traced to is not lost: '%s'",
           r->output[2]);
        hutch_result_free(r);
        hutch_box_close(box);
        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, "cd /tmp; echo 'echo forged >&198' >script; chmod +x script", 5000));
        usleep(30000);
        r = run_for(box, "./script", 5000);
        ok(r->exit_code == 1 && !r->output[1][0], "a script without #! cannot answer for the shell: status %d",
           r->exit_code);
        hutch_result_free(r);
        ok(in_step(box), "in step");
        hutch_box_close(box);
}

/* A shell that was idle for too long ends, again and again. */
static void idle(hutch_context *context) {
        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, "TMOUT=1; x=kept", 5000));
        usleep(5500000);
        says(box, "echo $x", "kept\n", "a shell that ends when it is idle keeps its state");
        hutch_box_close(box);
        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, "x=kept; set -t", 5000));
        says(box, "/bin/echo a", "a\n", "a shell that ends after one command is followed by one that does not");
        hutch_box_close(box);
        box = open_session(context, "/bin/bash");
        hutch_result_free(run_for(box, "PROMPT_COMMAND='no such command'; x=kept", 5000));
        hutch_result_free(run_for(box, "set -e", 5000));
        says(box, "/bin/echo $x", "kept\n", "a shell that its prompt ended is followed by one that lives");
        says(box, "case $- in *e*) echo e ;; esac", "e\n", "with its state");
        hutch_box_close(box);
}

int main(void) {
        hutch_context *context = new_context();

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                compare(context, &rows[i]);
        capped(context);
        cancelled(context);
        tails(context);
        ended(context);
        remains(context);
        marred(context);
        computed(context);
        left_behind(context);
        own_descriptors(context);
        idle(context);
        hutch_context_free(context);
        return done_testing();
}
