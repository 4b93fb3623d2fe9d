/* See channel.h. The directory cannot be changed by the box; names are opened as if it could. */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/macro.h"
#include "../init/init.h"

int channel_init(struct channel *c, int dir, const struct plan *plan) {
        char link[64];
        ssize_t n;

        *c = (struct channel){.dir = dir, .foreign = plan->map_by_parent, .uid = plan->host_uid, .gid = plan->host_gid};
        if (plan->traits & TRAIT_OWN_ROOT)
                return (size_t) snprintf(c->path, sizeof(c->path), "%s", plan->channel) < sizeof(c->path)
                               ? 0
                               : -ENAMETOOLONG;
        /* Created by init, under a name that no plan can know. */
        snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
        n = readlink(link, c->path, sizeof(c->path));
        if (n <= 0 || (size_t) n >= sizeof(c->path))
                return n < 0 ? -errno : -ENAMETOOLONG;
        c->path[n] = 0;
        return 0;
}

void channel_done(struct channel *c) {
        closep(&c->dir);
}

/* The file system has only the box's ids: what root creates there must belong to the box. */
static void take_ids(const struct channel *c, bool on) {
        if (!c->foreign)
                return;
        setfsgid(on ? c->gid : getegid());
        setfsuid(on ? c->uid : geteuid());
}

int channel_put(struct channel *c, const char *name, const void *data, size_t len) {
        _cleanup_(closep) int fd = -1;

        /* Always a new file: the box may hold a lease on the old one, which opening it would wait for. */
        if (unlinkat(c->dir, name, 0) < 0 && errno != ENOENT)
                return -errno;
        take_ids(c, true);
        fd = openat(c->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
        take_ids(c, false);
        return fd < 0 ? -errno : write_all(fd, data, len);
}

void channel_remove(struct channel *c, const char *name) {
        unlinkat(c->dir, name, 0);
}

static int make_fifo(struct channel *c, const char *name) {
        int r;

        take_ids(c, true);
        r = mkfifoat(c->dir, name, 0600) < 0 ? -errno : 0;
        take_ids(c, false);
        return r;
}

static int open_fifo(struct channel *c, const char *name, int flags, int *ret) {
        _cleanup_(closep) int fd = openat(c->dir, name, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISFIFO(st.st_mode))
                return -EBADMSG;
        *ret = take_fd(&fd);
        return 0;
}

int channel_open_pair(struct channel *c, unsigned *ret, int fds[2]) {
        bool fresh = c->n_free == 0;
        char name[32];
        int r = 0;

        *ret = fresh ? c->made++ : c->free[--c->n_free];
        for (int i = 0; r >= 0 && i < 2; i++) {
                snprintf(name, sizeof(name), "%u.%d", *ret, i + 1);
                if (fresh)
                        r = make_fifo(c, name);
                if (r >= 0)
                        r = open_fifo(c, name, O_RDONLY, &fds[i]);
        }
        return r;
}

void channel_return_pair(struct channel *c, unsigned pair) {
        if (pair == CHANNEL_NO_PAIR)
                return;
        if (c->n_free < ARRAY_SIZE(c->free))
                c->free[c->n_free++] = pair;
        else
                channel_remove_pair(c, pair);
}

void channel_remove_pair(struct channel *c, unsigned pair) {
        char name[32];

        for (int i = 1; i < 3; i++) {
                snprintf(name, sizeof(name), "%u.%d", pair, i);
                unlinkat(c->dir, name, 0);
        }
}

/* A new FIFO with both ends, even if a process still holds the old one; writers may block. */
static int open_named(struct channel *c, const char *name, int flags, int *ret_read, int *ret_write) {
        _cleanup_(closep) int reader = -1, writer = -1;
        int r;

        if (unlinkat(c->dir, name, 0) < 0 && errno != ENOENT)
                return -errno;
        r = make_fifo(c, name);
        if (r >= 0)
                r = open_fifo(c, name, flags, &reader);
        if (r >= 0)
                r = open_fifo(c, name, O_WRONLY, &writer);
        if (r >= 0 && fcntl(writer, F_SETFL, 0) < 0)
                r = -errno;
        if (r < 0)
                return r;
        *ret_read = take_fd(&reader);
        *ret_write = take_fd(&writer);
        return 0;
}

/* As its reader could write there it never ends, which would have to be looked at again and again: a program that takes
 * the shell's place lets go of it. */
int channel_open_answers(struct channel *c, int *ret_read, int *ret_write) {
        return open_named(c, "answers", O_RDWR, ret_read, ret_write);
}

int channel_open_lines(struct channel *c, int *ret_read, int *ret_write) {
        int r = open_named(c, CHANNEL_LINES, O_RDONLY, ret_read, ret_write);

        return r >= 0 && fcntl(*ret_read, F_SETFL, 0) < 0 ? -errno : r;
}

int channel_open_stdin(struct channel *c, unsigned *ret, int *ret_fd) {
        char name[32];
        int r;

        *ret = c->made++;
        snprintf(name, sizeof(name), "%u.0", *ret);
        r = make_fifo(c, name);
        return r < 0 ? r : open_fifo(c, name, O_RDWR, ret_fd);
}

void channel_visit_stdin(struct channel *c, unsigned number) {
        _cleanup_(closep) int fd = -1;
        char name[32];

        snprintf(name, sizeof(name), "%u.0", number);
        open_fifo(c, name, O_WRONLY, &fd);
}

void channel_remove_stdin(struct channel *c, unsigned number) {
        char name[32];

        snprintf(name, sizeof(name), "%u.0", number);
        unlinkat(c->dir, name, 0);
}
