/* The processes of a session's box, as the warden sees them. */
#include "internal.h"

#include <fcntl.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/macro.h"

static pid_t pid_of(int pidfd) {
        _cleanup_(freep) char *text = NULL;
        const char *line;
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        if (pidfd < 0 || read_whole_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
                return -1;
        line = strstr(text, "\nPid:");
        return line ? atoi(line + 5) : -1;
}

void processes_found(struct session *s, int pidfd) {
        char path[64];

        s->pid = pid_of(pidfd);
        s->cpu_ms = 0;
        snprintf(path, sizeof(path), "/proc/%d/stat", s->pid);
        s->stat = s->pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1; /* held open: it is read after every run */
        for (int i = 0; i < 2; i++) {
                pid_t pid = i == 0 ? s->pid : run_init(s->box);

                snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
                s->children[i] = open(path, O_RDONLY | O_CLOEXEC);
        }
}

void processes_forget(struct session *s) {
        closep(&s->stat);
        closep(&s->children[0]);
        closep(&s->children[1]);
}

/* Who loses its parent becomes init's child: so the shell's are looked at first. Of a list that names nobody but the
 * shell nothing was skipped because somebody ended meanwhile. */
bool session_is_alone(const struct session *s) {
        char list[32], shell[32];
        ssize_t n;

        if (pread(s->children[0], list, sizeof(list), 0) != 0)
                return false;
        n = pread(s->children[1], list, sizeof(list), 0);
        return n > 0 && n == snprintf(shell, sizeof(shell), "%d ", s->pid) && !memcmp(list, shell, (size_t) n);
}

/* What /proc tells of the shell, from its state on. */
static const char *read_stat(const struct session *s, char text[1024]) {
        ssize_t n = s->stat >= 0 ? pread(s->stat, text, 1023, 0) : -1;
        const char *end;

        text[n < 0 ? 0 : n] = 0;
        end = strrchr(text, ')');
        return end && end[1] == ' ' ? end + 2 : NULL;
}

bool session_shell_is_busy(const struct session *s) {
        char text[1024];
        const char *state = read_stat(s, text);

        return state && (state[0] == 'R' || state[0] == 'D');
}

/* Of the shell and the children that it waited for, in the kernel's clock ticks. */
double session_cpu_since(struct session *s) {
        unsigned long user, system;
        long child_user, child_system;
        double now, before = s->cpu_ms;
        char text[1024];
        const char *rest = read_stat(s, text);

        if (!rest || sscanf(rest, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &user, &system,
                            &child_user, &child_system) != 4)
                return 0;
        now = (double) (user + system + (unsigned long) child_user + (unsigned long) child_system) * 1000 /
              (double) sysconf(_SC_CLK_TCK);
        s->cpu_ms = now;
        return now > before ? now - before : 0;
}

/* Below init in the tree of processes, which is the whole box. The shell may have children that it has yet to reap. */
static size_t list_below(pid_t parent, pid_t shell, unsigned depth, struct buf *ret) {
        _cleanup_(freep) char *list = NULL;
        char path[64], *next;
        size_t n = 0;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
        if (depth > 64 || read_whole_file(AT_FDCWD, path, 1 << 20, &list, NULL) < 0)
                return 0;
        next = list;
        for (char *word; (word = strsep(&next, " \n"));) {
                _cleanup_(freep) char *stat = NULL;
                pid_t pid = atoi(word);
                const char *end;

                snprintf(path, sizeof(path), "/proc/%d/stat", pid);
                if (pid <= 0 || read_whole_file(AT_FDCWD, path, 4096, &stat, NULL) < 0 || !(end = strrchr(stat, ')')))
                        continue;
                if (pid != shell && end[1] == ' ' && end[2] != 'Z') {
                        buf_printf(ret, "%.*s\n", (int) (end - stat) + 1, stat);
                        n++;
                }
                n += list_below(pid, shell, depth + 1, ret);
        }
        return n;
}

size_t session_list_others(const struct session *s, struct buf *ret) {
        return list_below(run_init(s->box), s->pid, 0, ret);
}

void session_signal_others(struct session *s, int sig) {
        run_order(s->box, ORDER_OTHERS, sig, NULL, 0);
}
