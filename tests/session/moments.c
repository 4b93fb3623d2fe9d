/* Runs that end at any moment: cancelled, or because their shell is ended or was idle for too long. The next run is in
 * step, and nothing of one is taken for another's. */
#include "scene.h"

#include <pthread.h>
#include <unistd.h>

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

        cancelled(context);
        ended(context);
        tails(context);
        idle(context);
        hutch_context_free(context);
        return done_testing();
}
