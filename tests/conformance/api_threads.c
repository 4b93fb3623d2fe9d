/* Many boxes and threads on one context: every run gets its own output and nobody else's. */
#include "tap.h"

#include <pthread.h>

enum { THREADS = 8, RUNS = 20 };

struct worker {
        pthread_t thread;
        int id;
        hutch_context *context;
        hutch_box *shared;
        int good;
        char heard[64];
};

static void hear(void *user, int stream, const void *data, size_t len) {
        struct worker *w = user;
        size_t at = strlen(w->heard);

        if (stream == HUTCH_STDOUT && at + len < sizeof(w->heard)) {
                memcpy(w->heard + at, data, len);
                w->heard[at + len] = 0;
        }
}

static bool echo(struct worker *w, hutch_box *box, unsigned token) {
        char text[128], want[64];
        hutch_request request = {.struct_size = sizeof(request), .command = text, .on_output = hear, .user = w};
        hutch_result *r = NULL;
        bool good;

        snprintf(text, sizeof(text), "read line; echo $line-%08x; exit %u", token, token % 100);
        snprintf(want, sizeof(want), "%d-%08x\n", w->id, token);
        request.stdin_data = want;
        request.stdin_len = strcspn(want, "-");
        w->heard[0] = 0;
        hutch_box_run(box, &request, &r, &tap_err);
        good = r && r->exit_code == (int) (token % 100) && !strcmp(r->output[1], want) && !strcmp(w->heard, want);
        if (!good)
                printf("# thread %d: got '%s' and heard '%s', exit %d, want '%s': %s\n", w->id, r ? r->output[1] : "", w->heard,
                       r ? r->exit_code : -1, want, tap_err.message);
        hutch_result_free(r);
        return good;
}

static void *own_boxes(void *data) {
        struct worker *w = data;
        unsigned seed = (unsigned) (w->id * 7919 + getpid());

        for (int i = 0; i < RUNS; i++) {
                hutch_box *box = new_box(w->context);

                w->good += echo(w, box, (unsigned) rand_r(&seed));
                hutch_box_close(box);
        }
        return NULL;
}

static void *one_box(void *data) {
        struct worker *w = data;
        unsigned seed = (unsigned) (w->id * 104729 + getpid());

        for (int i = 0; i < RUNS / 4; i++)
                w->good += echo(w, w->shared, (unsigned) rand_r(&seed));
        return NULL;
}

static void *own_contexts(void *data) {
        struct worker *w = data;

        for (int i = 0; i < 3; i++) {
                hutch_box *box = new_box(NULL);

                w->good += echo(w, box, (unsigned) (w->id * 100 + i));
                hutch_box_close(box);
        }
        return NULL;
}

static int crowd(hutch_context *context, hutch_box *shared, void *(*work)(void *)) {
        struct worker workers[THREADS] = {0};
        int good = 0;

        for (int i = 0; i < THREADS; i++) {
                workers[i] = (struct worker){.id = i, .context = context, .shared = shared};
                pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(workers[i].thread, NULL);
                good += workers[i].good;
        }
        return good;
}

int main(void) {
        hutch_context *context = new_context();
        hutch_box *shared;
        int fds, good;

        fds = count_fds();
        good = crowd(context, NULL, own_boxes);
        ok(good == THREADS * RUNS, "%d threads, each with %d boxes on one context: %d of %d runs are right", THREADS, RUNS, good, THREADS * RUNS);
        shared = new_box(context);
        good = crowd(context, shared, one_box);
        ok(good == THREADS * (RUNS / 4), "%d threads on one box are queued: %d of %d runs are right", THREADS, good, THREADS * (RUNS / 4));
        hutch_box_close(shared);
        good = crowd(NULL, NULL, own_contexts);
        ok(good == THREADS * 3, "%d threads, each box with a warden of its own: %d of %d runs are right", THREADS, good, THREADS * 3);
        ok(count_fds() == fds, "no fd is left open: %d before, %d after", fds, count_fds());
        hutch_context_free(context);
        ok(count_fds() == fds - 1, "the context had one");
        return done_testing();
}
