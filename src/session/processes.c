/* The processes of a session's box, as seen from the warden: which ones exist, and what they use. */
#include "internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/io.h"
#include "../base/macro.h"

#define DEPTH_MOST 64
#define SAMPLE_MS 20 /* at first; a long run is looked at less often */
#define SAMPLE_MOST_MS 500

struct process {
        pid_t pid;
        char stat[1024];  /* of /proc/PID/stat */
        const char *rest; /* of it, from the state on: the name before it may hold anything */
};

static bool read_stat(pid_t pid, struct process *ret) {
        _cleanup_(freep) char *text = NULL;
        char path[64], *end;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        if (pid <= 0 || read_whole_file(AT_FDCWD, path, sizeof(ret->stat) - 1, &text, NULL) < 0)
                return false;
        snprintf(ret->stat, sizeof(ret->stat), "%s", text);
        end = strrchr(ret->stat, ')');
        if (!end || end[1] != ' ')
                return false;
        ret->pid = pid;
        ret->rest = end + 2;
        return true;
}

typedef void (*see_fn)(void *user, const struct process *process);

static void walk(pid_t parent, unsigned depth, see_fn see, void *user);

/* The children of one thread. */
static void walk_thread(pid_t parent, const char *tid, unsigned depth, see_fn see, void *user) {
        _cleanup_(freep) char *list = NULL;
        char path[96], *next;

        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", parent, tid);
        if (read_whole_file(AT_FDCWD, path, 1 << 20, &list, NULL) < 0)
                return;
        next = list;
        for (char *word; (word = strsep(&next, " \n"));) {
                struct process p;

                if (!read_stat(atoi(word), &p))
                        continue;
                see(user, &p);
                walk(p.pid, depth + 1, see, user);
        }
}

/* Everything below a process: init is the ancestor of the whole box. A child belongs to the thread that made it. */
static void walk(pid_t parent, unsigned depth, see_fn see, void *user) {
        struct dirent *entry;
        char path[64];
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/task", parent);
        d = depth > DEPTH_MOST ? NULL : opendir(path);
        while (d && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        walk_thread(parent, entry->d_name, depth, see, user);
        if (d)
                closedir(d);
}

struct others {
        const struct session *s;
        struct buf *ret;
        size_t n;
};

static void see_other(void *user, const struct process *p) {
        struct others *o = user;

        if (p->pid == o->s->shell.pid || p->rest[0] == 'Z') /* the shell may have children that it has yet to reap */
                return;
        buf_printf(o->ret, "%.*s\n", (int) (p->rest - p->stat) - 1, p->stat);
        o->n++;
}

size_t session_list_others(const struct session *s, struct buf *ret) {
        struct others o = {.s = s, .ret = ret};

        if (s->box)
                walk(run_init(s->box), 0, see_other, &o);
        return o.n;
}

void session_signal_others(struct session *s, int sig) {
        if (s->box)
                run_order(s->box, ORDER_OTHERS, sig, NULL, 0);
}

/* ---- what a command uses ----
 *
 * No control group is certain to exist. So the memory is the largest sum that was seen of all processes of the box, in
 * looks that begin close together; the processor time is the kernel's for the shell and the children that it waited
 * for. */

static void see_memory(void *user, const struct process *p) {
        unsigned long long *sum = user;
        long long pages = 0;

        /* state, then the 21 fields up to rss */
        if (sscanf(p->rest, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u %lld",
                   &pages) == 1 &&
            pages > 0)
                *sum += (unsigned long long) pages * (unsigned long long) sysconf(_SC_PAGESIZE);
}

static void sample(struct session *s) {
        unsigned long long sum = 0;

        walk(run_init(s->box), 0, see_memory, &sum);
        if (sum > s->usage.peak_memory)
                s->usage.peak_memory = sum;
}

static void on_sample(void *data) {
        struct session *s = data;
        unsigned wait = SAMPLE_MS * (1 + s->usage.samples++ / 10);

        sample(s);
        timer_set(s->loop, &s->usage.sample, wait < SAMPLE_MOST_MS ? wait : SAMPLE_MOST_MS);
}

/* The shell's own time in nanoseconds; for the children that it waited for, the kernel reports ticks. Its memory is
 * read as well. Both files stay open: this is read before and after each run. */
static double cpu_ms(const struct session *s, uint64_t *ret_memory) {
        char stat[1024], schedstat[128];
        unsigned long long own_ns = 0, pages = 0;
        long user = 0, system = 0;
        const char *rest;
        ssize_t n = pread(s->shell.stat, stat, sizeof(stat) - 1, 0),
                m = pread(s->shell.schedstat, schedstat, sizeof(schedstat) - 1, 0);

        if (n <= 0 || m <= 0)
                return 0;
        stat[n] = schedstat[m] = 0;
        rest = strrchr(stat, ')');
        if (!rest || sscanf(schedstat, "%llu", &own_ns) != 1 ||
            sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld %*d %*d %*d %*d %*u %*u %llu",
                   &user, &system, &pages) != 3)
                return 0;
        *ret_memory = pages * (unsigned long long) sysconf(_SC_PAGESIZE);
        return (double) own_ns / 1e6 + (double) (user + system) * 1000 / (double) sysconf(_SC_CLK_TCK);
}

void usage_init(struct session *s) {
        s->usage.sample = (struct timer){.fire = on_sample, .data = s};
}

void usage_begin(struct session *s) {
        s->usage.peak_memory = 0;
        s->usage.cpu_ms = cpu_ms(s, &s->usage.peak_memory);
        s->usage.samples = 0;
        timer_set(s->loop, &s->usage.sample, SAMPLE_MS / 4);
}

void usage_stop(struct session *s) {
        timer_clear(s->loop, &s->usage.sample);
}

void usage_end(struct session *s, struct outcome *o) {
        uint64_t memory = 0;
        double now = cpu_ms(s, &memory);

        usage_stop(s);
        if (memory > s->usage.peak_memory)
                s->usage.peak_memory = memory;
        if (o->cpu_ms == 0 && now > s->usage.cpu_ms)
                o->cpu_ms = now - s->usage.cpu_ms;
        if (s->usage.peak_memory > o->peak_memory_bytes)
                o->peak_memory_bytes = s->usage.peak_memory;
}
