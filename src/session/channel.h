/* The directory through which a session's shell gets texts and streams. The box can read it and not change it: it is in
 * a separate file system that is read-only in the box, or, in a box without a separate root, in a directory where a
 * Landlock rule lets the box open files but not create or remove any; what it may read has no mode bit for writing.
 * Output goes through FIFOs, one pair per run as long as a process holds it: a background job keeps the pair of the run
 * that started it, so that its later output is never attributed to another run. */
#pragma once

#include <limits.h>

#include "../plan/plan.h"

struct channel {
        int dir;
        char path[128]; /* as the box sees it */
        bool foreign;   /* the box's ids are not this process's: files are made under them */
        uid_t uid;
        gid_t gid;
        unsigned made;    /* FIFOs so far */
        unsigned free[8]; /* pairs that no process holds any more */
        size_t n_free;
};

/* Takes the descriptor. 0 or -errno. */
int channel_init(struct channel *c, int dir, const struct plan *plan);
void channel_done(struct channel *c);

/* A file of that name with this content. */
int channel_put(struct channel *c, const char *name, const void *data, size_t len);
void channel_remove(struct channel *c, const char *name);

#define CHANNEL_NO_PAIR UINT_MAX /* of FIFOs that have no number; returning it has no effect */

/* A pair of FIFOs, and their reading ends: stdout and stderr of the pair's number. The ends are always new: an end that
 * had a writer once reports hang-up from then on, until the next writer opens it. */
int channel_open_pair(struct channel *c, unsigned *ret, int fds[2]);
void channel_return_pair(struct channel *c, unsigned pair); /* no process holds it */
void channel_remove_pair(struct channel *c, unsigned pair); /* a process does */

/* The FIFO through which a new shell answers: also by name, for a shell that ends while its own end is put away. */
int channel_open_answers(struct channel *c, int *ret_read, int *ret_write);

/* The FIFO from which a new plain sh reads its lines. busybox opens it by name: it treats any signal during a read of
 * stdin as end of file, and shares what it has read ahead with the programs that it starts. */
int channel_open_lines(struct channel *c, int *ret_read, int *ret_write);

/* A FIFO for stdin, never used twice; the fd is open for both directions, so that opening it never blocks. */
int channel_open_stdin(struct channel *c, unsigned *ret, int *ret_fd);
void channel_visit_stdin(struct channel *c, unsigned number); /* unblocks readers that wait for a writer there */
void channel_remove_stdin(struct channel *c, unsigned number);
