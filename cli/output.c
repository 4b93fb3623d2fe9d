/* See output.h.
 *
 * The box controls a file in a writable workspace until the box has ended: it may write into it, replace it, or put
 * something else in the place of a directory above it. So a regular file is checked when the box is gone: if the name
 * still refers to the file that was opened, it is truncated and written; if not, the present entry is removed and the
 * file is created again, with a warning; and if the directory is not the one that was opened, that is an error. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READER_WAIT_MS 2000 /* a reader that is started together with hutch may open its FIFO later */

static int write_text(int fd, const char *text) {
        void (*before)(int) = signal(SIGPIPE, SIG_IGN);
        size_t len = strlen(text);
        int r = 0;

        while (len > 0 && r == 0) {
                ssize_t n = write(fd, text, len);

                if (n < 0 && errno != EINTR)
                        r = -errno;
                else if (n > 0) {
                        text += n;
                        len -= (size_t) n;
                }
        }
        signal(SIGPIPE, before);
        return r;
}

static int fail(const char *name, const char *reason) {
        cli_complain("--result %s: %s", name, reason);
        return -1;
}

/* fd:N, and the names under which the system itself gives descriptors. */
static bool names_fd(const char *name, int *ret) {
        static const char *const prefixes[] = {"fd:", "/dev/fd/", "/proc/self/fd/"};

        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
                const char *number = name + strlen(prefixes[i]);
                char *end;
                long value;

                if (strncmp(name, prefixes[i], strlen(prefixes[i])) != 0)
                        continue;
                errno = 0;
                value = strtol(number, &end, 10);
                *ret = *number && !*end && errno == 0 && value >= 0 && value < 1 << 20 ? (int) value : -1;
                return true;
        }
        return false;
}

static int open_fd(struct destination *d, int number) {
        int flags = number < 0 ? -1 : fcntl(number, F_GETFL);

        if (number < 0)
                return fail(d->name, "not a descriptor: fd:3, for example");
        if (flags < 0)
                return fail(d->name, "this descriptor is not open");
        if ((flags & O_ACCMODE) == O_RDONLY)
                return fail(d->name, "this descriptor is open for reading only");
        d->fd = fcntl(number, F_DUPFD_CLOEXEC, 3);
        return d->fd < 0 ? fail(d->name, hutch_errno_text(errno)) : 0;
}

/* Does not wait forever for a FIFO that no process reads: an earlier box may have left it there. */
static int open_fifo(struct destination *d) {
        for (int waited = 0; d->fd < 0 && errno == ENXIO && waited < READER_WAIT_MS; waited += 10) {
                nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
                d->fd = openat(d->dir, d->base, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        }
        if (d->fd < 0)
                return fail(d->name, errno == ENXIO ? "no process reads this FIFO: start the reader first"
                                                    : hutch_errno_text(errno));
        fcntl(d->fd, F_SETFL, O_WRONLY);
        close(d->dir);
        d->dir = -1;
        return 0;
}

static int open_dir(struct destination *d) {
        const char *slash = strrchr(d->name, '/');

        d->base = slash ? slash + 1 : d->name;
        d->dir_path = !slash ? strdup(".") : slash == d->name ? strdup("/") : strndup(d->name, slash - d->name);
        if (!d->dir_path)
                return fail(d->name, hutch_errno_text(ENOMEM));
        if (!d->base[0])
                return fail(d->name, "is a directory");
        d->dir = open(d->dir_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return d->dir < 0 ? fail(d->name, hutch_errno_text(errno)) : 0;
}

static int open_path(struct destination *d) {
        struct stat st;

        if (open_dir(d) < 0)
                return -1;
        d->fd = openat(d->dir, d->base, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
        if (d->fd < 0 && errno == ENXIO && fstatat(d->dir, d->base, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISFIFO(st.st_mode)) {
                errno = ENXIO;
                return open_fifo(d);
        }
        if (d->fd < 0)
                return fail(d->name,
                            errno == ELOOP ? "is a symbolic link: name the file itself" : hutch_errno_text(errno));
        if (fstat(d->fd, &st) < 0)
                return fail(d->name, hutch_errno_text(errno));
        if (S_ISFIFO(st.st_mode))
                return open_fifo(d);
        if (!S_ISREG(st.st_mode))
                return fail(d->name, "neither a regular file nor a FIFO");
        return ftruncate(d->fd, 0) < 0 ? fail(d->name, hutch_errno_text(errno)) : 0;
}

int destination_open(const char *name, struct destination *ret) {
        int number;

        *ret = DESTINATION_NONE;
        ret->name = name;
        if (!name)
                return 0;
        if ((names_fd(name, &number) ? open_fd(ret, number) : open_path(ret)) < 0) {
                destination_close(ret);
                return -1;
        }
        return 0;
}

static bool same_file(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The file is where it was, or is made there again. */
static int reclaim(struct destination *d) {
        struct stat opened, now, dir, dir_now;
        int fresh;

        if (fstat(d->dir, &dir) < 0 || stat(d->dir_path, &dir_now) < 0 || !same_file(&dir, &dir_now))
                return fail(d->name, "its directory was replaced while the command ran: the result is not written");
        if (fstat(d->fd, &opened) == 0 && fstatat(d->dir, d->base, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
            same_file(&opened, &now))
                return ftruncate(d->fd, 0) < 0 || lseek(d->fd, 0, SEEK_SET) < 0 ? fail(d->name, hutch_errno_text(errno))
                                                                                : 0;
        cli_complain("warning: --result %s: the file was replaced while the command ran; it was written again",
                     d->name);
        if (unlinkat(d->dir, d->base, 0) < 0 && errno != ENOENT)
                return fail(d->name, hutch_errno_text(errno));
        fresh = openat(d->dir, d->base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fresh < 0)
                return fail(d->name, hutch_errno_text(errno));
        close(d->fd);
        d->fd = fresh;
        return 0;
}

/* The result as a line; with a type, that is its first member. In place, since the output in it can be large. */
static int to_line(const hutch_result *result, const char *type, char **ret) {
        char head[64] = "{";
        hutch_error err = {0};
        char *text, *grown;
        size_t len, n;

        if (hutch_result_to_json(result, &text, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        if (type)
                snprintf(head, sizeof(head), "{\"type\":\"%s\",", type);
        len = strlen(text);
        n = strlen(head);
        grown = realloc(text, len + n + 1);
        if (!grown) {
                free(text);
                cli_complain("%s", hutch_errno_text(ENOMEM));
                return -1;
        }
        memmove(grown + n, grown + 1, len - 1);
        memcpy(grown, head, n);
        memcpy(grown + n + len - 1, "\n", 2);
        *ret = grown;
        return 0;
}

int destination_write(struct destination *d, const hutch_result *result) {
        char *text = NULL;
        int r;

        if (d->fd < 0)
                return 0;
        if ((d->dir >= 0 && reclaim(d) < 0) || to_line(result, NULL, &text) < 0)
                return -1;
        r = write_text(d->fd, text);
        free(text);
        return r < 0 ? fail(d->name, hutch_errno_text(-r)) : 0;
}

void destination_close(struct destination *d) {
        if (d->fd >= 0)
                close(d->fd);
        if (d->dir >= 0)
                close(d->dir);
        free(d->dir_path);
        *d = DESTINATION_NONE;
}

static int write_stdout(const char *text) {
        if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
                return 0;
        cli_complain("cannot write the result: %s", hutch_errno_text(errno));
        return -1;
}

int output_write_result(const hutch_result *result) {
        char *text = NULL;
        int r = to_line(result, NULL, &text) < 0 ? -1 : write_stdout(text);

        free(text);
        return r;
}

/* ---- --json-lines ---- */

static void put_line(struct lines *lines, char *text, int r) {
        if (r >= 0 && !lines->failed && (puts(text) < 0 || fflush(stdout) != 0))
                r = -1;
        lines->failed = lines->failed || r < 0;
        free(text);
}

static void put_output(struct lines *lines, int stream, const void *data, size_t len) {
        char *text = NULL;
        int r = hutch_output_to_json(stream, data, len, &text, NULL);

        put_line(lines, text, r);
}

void lines_on_output(void *user, int stream, const void *data, size_t len) {
        struct lines *lines = user;
        unsigned char *rest = lines->rest[stream], *whole = malloc(len + sizeof(lines->rest[0]));
        size_t n = lines->n_rest[stream], cut;

        if (!whole) {
                lines->failed = true;
                return;
        }
        memcpy(whole, rest, n);
        memcpy(whole + n, data, len);
        n += len;
        cut = hutch_incomplete_tail(whole, n);
        memcpy(rest, whole + n - cut, cut);
        lines->n_rest[stream] = cut;
        if (n > cut)
                put_output(lines, stream, whole, n - cut);
        free(whole);
}

void lines_on_event(void *user, const hutch_event *event) {
        char *text = NULL;
        int r = hutch_event_to_json(event, &text, NULL);

        put_line(user, text, r);
}

int lines_end(struct lines *lines, const hutch_result *result) {
        char *text = NULL;
        int r;

        for (int stream = 1; stream < 3; stream++)
                if (lines->n_rest[stream] > 0)
                        put_output(lines, stream, lines->rest[stream], lines->n_rest[stream]);
        r = to_line(result, "result", &text) < 0 ? -1 : write_stdout(text);
        free(text);
        return lines->failed ? -1 : r;
}
