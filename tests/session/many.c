/* Many runs in one session and many sessions at once, each run with a random token: no mix-up, and nothing grows:
 * descriptors of this process and of the warden, processes, the warden's memory. HUTCH_LONG=1: 10,000 runs, 200
 * sessions. */
#include "scene.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>

static int fds_of(int pid) {
        char path[64];
        DIR *d;
        int n = 0;

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        d = opendir(path);
        while (d && readdir(d))
                n++;
        if (d)
                closedir(d);
        return n;
}

static long memory_of(int pid) { /* KiB of its own */
        char path[64], line[256];
        long total = 0, n;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
        f = fopen(path, "r");
        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "Private_Dirty: %ld", &n) == 1)
                        total += n;
        if (f)
                fclose(f);
        return total;
}

static int warden(hutch_box *box) {
        char text[64];
        int pid;

        snprintf(text, sizeof(text), "sleep %s & W=$!", mark_of(0));
        hutch_result_free(run_text(box, text));
        await_processes(mark_of(0), 1);
        pid = warden_of(mark_of(0));
        hutch_result_free(run_text(box, "kill $W; wait $W 2>/dev/null; true"));
        return pid;
}

/* All the kinds of a run in turn; the text of each holds the token. */
static bool run_one(hutch_box *box, unsigned i) {
        static const struct {
                const char *before, *behind;
                int code;
        } kinds[] = {
                {"echo ", "", 0},
                {"/bin/echo ", "", 0},
                {"echo ", "; exit 3", 3},
                {"V=", "; echo $V", 0},
                {"echo ", " | cat", 0},
                {"f() { echo ", "; }; f", 0},
                {"(sleep 0; :) & echo ", "", 0},
                {"echo ", "; nonsense 2>/dev/null", 127},
                {"echo ", "; cat <<X >/dev/null\n$V\nX\n(exit 5)", 5},
        };
        size_t k = i % (sizeof(kinds) / sizeof(kinds[0]));
        char text[160], want[32];
        hutch_result *r;
        bool good;

        snprintf(want, sizeof(want), "%08x%08x\n", (unsigned) rand(), i);
        snprintf(text, sizeof(text), "%s%.16s%s", kinds[k].before, want, kinds[k].behind);
        r = run_for(box, text, 60000);
        good = tap_ret == 0 && !strcmp(r->output[1], want) && r->exit_code == kinds[k].code;
        if (!good)
                printf("#   run %u '%s': got '%s' '%s' %d %s\n", i, text, r->output[1], r->output[2], r->exit_code,
                       r->error.message);
        hutch_result_free(r);
        return good;
}

static void many_runs(hutch_context *context, unsigned n) {
        hutch_box *box = open_session(context, NULL);
        unsigned good = 0, warm = n / 3;
        int pid = warden(box), fds = 0, own = 0;
        long memory = 0, after;

        for (unsigned i = 0; i < n; i++) {
                if (i == warm) {
                        fds = fds_of(pid);
                        own = count_fds();
                        memory = memory_of(pid);
                }
                good += run_one(box, i);
        }
        ok(good == n, "%u of %u runs in one session got their own token and status", good, n);
        nap(200);
        ok(count_fds() == own, "no descriptor of this process leaks (%d, %d before)", count_fds(), own);
        ok(fds_of(pid) <= fds + 2, "nor of the warden (%d, %d before)", fds_of(pid), fds);
        after = memory_of(pid);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed for a while */
        ok(after < memory + 400, "its memory is bounded (%ld KiB, %ld before)", after, memory);
#endif
        says(box, "ls /proc | grep -c '^[0-9]'", "4\n", "nothing is left in the box but init, the shell and who looks");
        says(box, "ls /dev/hutch | wc -l | sed 's/^[0-9]$/few/; s/^[1-4][0-9]$/few/'", "few\n", "nor in its channel");
        hutch_box_close(box);
}

struct worker {
        pthread_t thread;
        hutch_context *context;
        hutch_box **boxes;
        unsigned n, first, good;
};

static void *work(void *data) {
        struct worker *w = data;

        for (unsigned i = 0; i < w->n; i++)
                w->boxes[i] = open_session(w->context, NULL);
        for (unsigned round = 0; round < 3; round++)
                for (unsigned i = 0; i < w->n; i++)
                        w->good += run_one(w->boxes[i], w->first + i * 7 + round);
        return NULL;
}

static void many_sessions(hutch_context *context, unsigned n) {
        enum { THREADS = 4 };
        hutch_box **boxes = calloc(n, sizeof(*boxes)), *first = open_session(context, NULL);
        struct worker workers[THREADS];
        int pid = warden(first), fds = fds_of(pid), own = count_fds();
        unsigned good = 0;
        char text[64];

        for (unsigned i = 0; i < THREADS; i++) {
                workers[i] = (struct worker){
                        .context = context, .boxes = boxes + i * (n / THREADS), .n = n / THREADS, .first = i * 1000};
                pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        }
        for (unsigned i = 0; i < THREADS; i++) {
                pthread_join(workers[i].thread, NULL);
                good += workers[i].good;
        }
        ok(good == n * 3, "%u sessions at once: %u of %u runs got their own token", n, good, n * 3);
        snprintf(text, sizeof(text), "sleep %s &", mark_of(1));
        for (unsigned i = 0; i < n; i++)
                hutch_result_free(run_text(boxes[i], text));
        ok(await_processes(mark_of(1), (int) n), "a job runs in each");
        for (unsigned i = 0; i < n; i++)
                hutch_box_close(boxes[i]);
        ok(await_processes(mark_of(1), 0), "closed, none of them is left");
        ok(in_step(first), "the first session never noticed");
        ok(count_fds() == own && fds_of(pid) <= fds + 2, "no descriptor is left (%d, %d before; warden %d, %d before)",
           count_fds(), own, fds_of(pid), fds);
        hutch_box_close(first);
        free(boxes);
}

int main(void) {
        hutch_context *context = new_context();

        srand((unsigned) getpid());
        many_runs(context, is_long() ? 10000 : 300);
        many_sessions(context, is_long() ? 200 : 20);
        hutch_context_free(context);
        return done_testing();
}
