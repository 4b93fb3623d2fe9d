/* See hold.h. init is alone in a pid namespace with the processes that it stops, and sees all of them in the box's
 * /proc. */
#include "hold.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../base/macro.h"

#define TRIES 7
#define LOOKS 20 /* of the first try, each a millisecond after the one before; the next one has twice as many */

/* The letter of /proc/PID/stat, 0 if it is gone. The name before it may contain any character. */
static char state_of(int dir, const char *path) {
        _cleanup_(closep) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
        char text[1024], *end;
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        if (n <= 0)
                return 0;
        text[n] = 0;
        end = strrchr(text, ')');
        return end && end[1] == ' ' ? end[2] : 0;
}

static void mix(uint64_t *sum, const char *text) {
        for (; *text; text++)
                *sum = (*sum ^ (unsigned char) *text) * 0x100000001b3;
}

/* Whether a thread rests. If it could ever go on, how often it did goes into the sum. */
static bool thread_rests(int dir, const char *tid, uint64_t *sum) {
        _cleanup_(closep) int fd = -1;
        char path[64], text[8192], *state, *work;
        ssize_t n;

        snprintf(path, sizeof(path), "%.20s/status", tid);
        fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return errno == ENOENT || errno == ESRCH;
        text[n] = 0;
        state = strstr(text, "\nState:\t"); /* the name, which comes before, has no newlines */
        work = strstr(text, "\nvoluntary_ctxt_switches:");
        if (state && (state[8] == 'Z' || state[8] == 'X'))
                return true;
        if (!state || !work || (state[8] != 'T' && state[8] != 't'))
                return false;
        mix(sum, tid);
        mix(sum, work);
        return true;
}

static bool all_threads_rest(int proc, const char *pid, uint64_t *sum) {
        char path[64];
        bool resting = true;
        DIR *d;
        int fd;

        snprintf(path, sizeof(path), "%.20s/task", pid);
        fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        d = fd < 0 ? NULL : fdopendir(fd);
        if (!d) {
                closep(&fd);
                return errno == ENOENT || errno == ESRCH;
        }
        for (struct dirent *e; resting && (e = readdir(d));)
                resting = e->d_name[0] == '.' || thread_rests(fd, e->d_name, sum);
        closedir(d);
        return resting;
}

/* Calls `see` for every process except init until it returns false. -errno if they cannot be listed. */
static int each_process(bool (*see)(void *user, int proc, const char *pid), void *user) {
        DIR *d = opendir("/proc");
        int r = 1;

        if (!d)
                return -errno;
        for (struct dirent *e; r > 0 && (e = readdir(d));)
                if (isdigit((unsigned char) e->d_name[0]) && !streq(e->d_name, "1"))
                        r = see(user, dirfd(d), e->d_name);
        closedir(d);
        return r;
}

static bool see_thread(void *user, int proc, const char *pid) {
        return all_threads_rest(proc, pid, user);
}

/* 1 if all rest. The sum is of all threads and how often each was at work, and of the last process that was made: two
 * that are the same had nothing run between them. */
static int look(uint64_t *ret) {
        _cleanup_(closep) int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
        char text[128], *last;
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        text[n < 0 ? 0 : n] = 0;
        last = strrchr(text, ' ');
        *ret = 0xcbf29ce484222325;
        mix(ret, last ? last : "");
        return each_process(see_thread, ret);
}

struct list {
        pid_t *pids;
        size_t n;
        bool stopped_only;
};

static bool see_pid(void *user, int proc, const char *pid) {
        struct list *l = user;
        char path[64];
        pid_t *grown;

        snprintf(path, sizeof(path), "%.20s/stat", pid);
        if (l->stopped_only && state_of(proc, path) != 'T')
                return true;
        grown = reallocarray(l->pids, l->n + 1, sizeof(*grown));
        if (!grown)
                return false;
        l->pids = grown;
        l->pids[l->n++] = atoi(pid);
        return true;
}

static bool was_stopped(const struct hold *h, pid_t pid) {
        for (size_t i = 0; i < h->n; i++)
                if (h->stopped[i] == pid)
                        return true;
        return false;
}

/* The youngest first: a parent that goes on finds its children going on, not stopped. */
static void go_on(const struct hold *h) {
        struct list all = {0};

        if (each_process(see_pid, &all) <= 0)
                kill(-1, SIGCONT); /* rather too many than none */
        for (size_t i = all.n; i > 0; i--)
                if (!was_stopped(h, all.pids[i - 1]))
                        kill(all.pids[i - 1], SIGCONT);
        free(all.pids);
}

/* Twice the same: what rested when it was looked at may have been woken by what did not yet. */
static int await_rest(int looks, uint64_t *ret) {
        const struct timespec moment = {.tv_nsec = 1000000};
        uint64_t before = 0;
        int rested = 0;

        for (int i = 0; i < looks; i++) {
                int r = look(ret);

                if (r < 0)
                        return r;
                if (r > 0 && rested > 0 && *ret == before)
                        return 0;
                rested = r;
                before = *ret;
                nanosleep(&moment, NULL);
        }
        return -EAGAIN;
}

int hold_begin(struct hold *h) {
        const struct timespec moment = {.tv_nsec = 5000000};
        struct list before = {.stopped_only = true};
        int r;

        if (h->on)
                return -EBUSY;
        r = each_process(see_pid, &before);
        if (r <= 0) {
                free(before.pids);
                return r < 0 ? r : -ENOMEM;
        }
        *h = (struct hold){.on = true, .stopped = before.pids, .n = before.n};
        for (int i = 0; i < TRIES; i++) {
                if (kill(-1, SIGSTOP) < 0 && errno != ESRCH)
                        r = -errno;
                else
                        r = await_rest(LOOKS << i, &h->sum);
                if (r >= 0)
                        return 0;
                go_on(h);
                nanosleep(&moment, NULL);
        }
        hold_end(h);
        return r;
}

int hold_check(struct hold *h) {
        uint64_t now;
        int r = h->on ? look(&now) : -EPIPE;

        if (r > 0 && now == h->sum)
                return 0;
        hold_end(h);
        return r < 0 ? r : -EAGAIN;
}

void hold_end(struct hold *h) {
        if (h->on)
                go_on(h);
        free(h->stopped);
        *h = (struct hold){0};
}
