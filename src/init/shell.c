/* Ending what a session's shell runs, and not the shell.
 *
 * The job in the foreground is the one that the shell made last: it waits for that one, so it can have made nothing
 * since. Jobs in the background are older, and are let be. A pipeline is several children in one process group; a
 * command substitution is one child in the shell's own group. What the job's processes started dies with them. */
#include "init.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "../base/io.h"

#define MOST_VICTIMS 4096

struct victims {
        pid_t pids[MOST_VICTIMS];
        size_t n;
};

/* A child belongs to the thread that made it. */
static void add_children_of(pid_t parent, const char *tid, struct victims *v) {
        _cleanup_(freep) char *list = NULL;
        char path[96], *next;

        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", parent, tid);
        if (read_whole_file(AT_FDCWD, path, 1 << 20, &list, NULL) < 0)
                return;
        next = list;
        for (char *word; (word = strsep(&next, " \n"));)
                if (word[0] && v->n < MOST_VICTIMS)
                        v->pids[v->n++] = atoi(word);
}

static void add_children(pid_t parent, struct victims *v) {
        struct dirent *entry;
        char path[64];
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/task", parent);
        d = opendir(path);
        while (d && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        add_children_of(parent, entry->d_name, v);
        if (d)
                closedir(d);
}

/* What /proc reports about a process: its state, and when it began. */
static bool look_at(pid_t pid, char *ret_state, uint64_t *ret_began) {
        _cleanup_(freep) char *text = NULL;
        unsigned long long began;
        const char *rest;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        if (read_whole_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
                return false;
        rest = strrchr(text, ')'); /* the name before it may hold anything */
        if (!rest || sscanf(rest, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                            ret_state, &began) != 2)
                return false;
        *ret_began = began;
        return true;
}

/* A busy shell waits for no job: its latest child is in the background. */
static bool is_asleep(pid_t pid) {
        uint64_t began;
        char state;

        return look_at(pid, &state, &began) && (state == 'S' || state == 'D');
}

/* The shell may have got over its job since the order was given: then the last of its children is an older one. */
static bool is_since(pid_t pid, uint64_t since) {
        uint64_t began;
        char state;

        return since == 0 || (look_at(pid, &state, &began) && began >= since);
}

/* The children of the job, then theirs: a process that forks meanwhile is caught by the next order. */
static void find_job(pid_t shell, uint64_t since, struct victims *v) {
        struct victims *children = calloc(1, sizeof(*children));
        pid_t last, group;

        if (!children)
                return;
        add_children(shell, children);
        if (children->n > 0 && is_asleep(shell) && is_since(children->pids[children->n - 1], since)) {
                last = children->pids[children->n - 1];
                group = getpgid(last);
                for (size_t i = 0; i < children->n; i++)
                        if (children->pids[i] == last || (group != shell && getpgid(children->pids[i]) == group))
                                v->pids[v->n++] = children->pids[i];
                for (size_t i = 0; i < v->n; i++)
                        add_children(v->pids[i], v);
        }
        free(children);
}

void shell_interrupt(pid_t shell, enum interrupt how, uint64_t since) {
        static const int signals[] = {[INTERRUPT_JOB] = SIGINT,
                                      [INTERRUPT_TERM] = SIGTERM,
                                      [INTERRUPT_KILL] = SIGKILL,
                                      [INTERRUPT_END] = SIGKILL};
        struct victims *v = how < INTERRUPT_JOB || how == INTERRUPT_LAST ? NULL : calloc(1, sizeof(*v));

        if (v) /* before the interrupt wakes the shell */
                find_job(shell, since, v);
        /* The shell first: it notes the interrupt and acts on it when its job has ended. */
        kill(shell, how >= INTERRUPT_END ? SIGKILL : SIGINT);
        for (size_t i = 0; v && i < v->n; i++)
                kill(v->pids[i], signals[how]);
        free(v);
}

void shell_signal_others(pid_t shell, int sig) {
        struct victims *v = calloc(1, sizeof(*v));

        if (!v)
                return;
        add_children(getpid(), v);
        for (size_t i = 0; i < v->n; i++)
                add_children(v->pids[i], v);
        for (size_t i = 0; i < v->n; i++)
                if (v->pids[i] != shell)
                        kill(v->pids[i], sig);
        free(v);
}
