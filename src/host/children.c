/* See children.h. */
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/macro.h"

static struct {
        pid_t *pids;
        size_t n, room;
        bool overflow; /* one could not be recorded: then no child counts as a stranger */
} known;

void children_note(pid_t pid) {
        if (pid <= 0)
                return;
        if (known.n == known.room) {
                size_t room = known.room ? 2 * known.room : 16;
                pid_t *grown = reallocarray(known.pids, room, sizeof(*grown));

                if (!grown) {
                        known.overflow = true;
                        return;
                }
                known.pids = grown;
                known.room = room;
        }
        known.pids[known.n++] = pid;
}

static bool is_known(pid_t pid) {
        for (size_t i = 0; i < known.n; i++)
                if (known.pids[i] == pid)
                        return true;
        return known.overflow;
}

void children_forget(pid_t pid) {
        for (size_t i = 0; i < known.n; i++)
                if (known.pids[i] == pid) {
                        known.pids[i] = known.pids[--known.n];
                        return;
                }
}

int children_adopt(void) {
        return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

/* Returns how many there were. */
static size_t end_some(void) {
        _cleanup_(freep) char *list = NULL;
        char path[64], *next;
        size_t n = 0;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        if (read_whole_file(AT_FDCWD, path, 1 << 22, &list, NULL) < 0)
                return 0;
        next = list;
        for (char *word; (word = strsep(&next, " \n"));) {
                pid_t pid = atoi(word);

                if (pid <= 0 || is_known(pid))
                        continue;
                kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                n++;
        }
        return n;
}

void children_end_strangers(void) {
        while (end_some() > 0)
                ;
}
