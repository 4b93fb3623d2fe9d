/* Threads that share a session, and sessions side by side: calls are queued, and every run gets its own output. */
#include "scene.h"

#include <pthread.h>

enum { THREADS = 8, RUNS = 12 };

struct worker {
        pthread_t thread;
        hutch_context *context;
        hutch_box *shared;
        int id, good, own_good;
};

static bool echo(hutch_box *box, int id, int i) {
        unsigned token = (unsigned) rand();
        char text[160], want[64], in[32], errors[64];
        hutch_request request = {.struct_size = sizeof(request), .command = text, .stdin_data = in};
        hutch_result *r = NULL;
        bool good;

        snprintf(in, sizeof(in), "in-%d-%d", id, i);
        request.stdin_len = strlen(in);
        snprintf(text, sizeof(text), "read -r l; echo $l-%08x; echo e%08x >&2; C=$((C + 1)); (exit %u)", token, token,
                 token % 100);
        snprintf(want, sizeof(want), "%s-%08x\n", in, token);
        snprintf(errors, sizeof(errors), "e%08x\n", token);
        good = hutch_box_run(box, &request, &r, &tap_err) == 0 && !strcmp(r->output[1], want) &&
               !strcmp(r->output[2], errors) && r->exit_code == (int) (token % 100);
        if (!good && r)
                printf("#   want '%s' %u, got '%s' '%s' %d %s\n", want, token % 100, r->output[1], r->output[2],
                       r->exit_code, tap_err.message);
        hutch_result_free(r);
        return good;
}

static void *work(void *data) {
        struct worker *w = data;
        hutch_box *own = open_session(w->context, NULL);

        for (int i = 0; i < RUNS; i++) {
                w->good += echo(w->shared, w->id, i);
                w->own_good += echo(own, w->id, i);
        }
        hutch_box_close(own);
        return NULL;
}

int main(void) {
        hutch_context *context = new_context();
        hutch_box *shared = open_session(context, NULL);
        struct worker workers[THREADS];
        char want[16];
        int good = 0, own = 0;

        srand((unsigned) getpid());
        hutch_result_free(run_text(shared, "C=0"));
        for (int i = 0; i < THREADS; i++) {
                workers[i] = (struct worker){.context = context, .shared = shared, .id = i};
                pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(workers[i].thread, NULL);
                good += workers[i].good;
                own += workers[i].own_good;
        }
        ok(good == THREADS * RUNS, "%d threads on one session: %d of %d runs got their own", THREADS, good,
           THREADS * RUNS);
        ok(own == THREADS * RUNS, "and %d of %d in sessions of their own meanwhile", own, THREADS * RUNS);
        snprintf(want, sizeof(want), "%d\n", THREADS * RUNS);
        says(shared, "echo $C", want, "one after the other: none of them was lost");
        ok(in_step(shared), "in step");
        hutch_box_close(shared);
        hutch_context_free(context);
        return done_testing();
}
