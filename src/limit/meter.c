/* See meter.h.
 *
 * The layers share a file system with the host, and only root can set a quota there. So they are counted repeatedly,
 * from the outside. A separate process does it: a box can make a tree that takes seconds to walk, and the warden has
 * streams, deadlines and other boxes to look after. It has a separate user namespace, where it may read directories
 * that the box has closed to their owner (and overlayfs closes its own). It has nothing open but the directory and a
 * socket, writes nothing, and follows no link.
 *
 * It cannot see a file that is open but has no name any more: only a tmpfs is a hard limit, this is a watch. */
#include "meter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "../base/io.h"
#include "../host/children.h"

#define LEAST_PAUSE_MS 100
#define PAUSE_FACTOR 4   /* of its time: at most a fifth of a processor, however large the tree */
#define INODE_BYTES 512  /* what a file costs that holds nothing */
#define MOST_DEPTH 16384 /* bounded by the number of descriptors long before that */

struct meter {
        pid_t pid;
        int fd;
};

struct report {
        int error;
        uint64_t bytes;
};

/* ---- the process ---- */

/* A file with several names is counted in parts: all of its names are in the layers. */
static uint64_t size_of(const struct stat *st) {
        uint64_t bytes = (uint64_t) st->st_blocks * 512 + INODE_BYTES;

        return S_ISDIR(st->st_mode) || st->st_nlink < 2 ? bytes : bytes / st->st_nlink;
}

static bool is_gone(int errnum) {
        return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == ESTALE;
}

/* The box changes the tree meanwhile. What is already gone is not counted; what cannot be followed is an error, because
 * a place that is not counted could be used to hide data. */
static int count(int directory, DIR **stack, uint64_t *ret) {
        uint64_t bytes = 0;
        size_t depth = 0;
        int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

        stack[0] = fd < 0 ? NULL : fdopendir(fd);
        if (!stack[0])
                return -errno;
        for (depth = 1; depth > 0 && r >= 0;) {
                DIR *dir = stack[depth - 1];
                struct dirent *entry;
                struct stat st;

                errno = 0;
                entry = readdir(dir);
                if (!entry) {
                        if (errno && !is_gone(errno))
                                r = -errno;
                        closedir(dir);
                        depth--;
                        continue;
                }
                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        r = is_gone(errno) ? 0 : -errno;
                        continue;
                }
                bytes += size_of(&st);
                if (!S_ISDIR(st.st_mode))
                        continue;
                fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || depth == MOST_DEPTH)
                        r = fd >= 0 ? -ELOOP : is_gone(errno) ? 0 : -errno;
                else if (!(stack[depth] = fdopendir(fd)))
                        r = -errno;
                else
                        depth++;
        }
        while (depth > 0)
                closedir(stack[--depth]);
        *ret = bytes;
        return r;
}

static int write_map(const char *path, const char *text) {
        _cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd < 0 ? -errno : write_all(fd, text, strlen(text));
}

static int take_namespace(void) {
        uid_t uid = geteuid();
        gid_t gid = getegid();
        char line[64];
        int r;

        if (unshare(CLONE_NEWUSER) < 0)
                return -errno;
        r = write_map("/proc/self/setgroups", "deny");
        snprintf(line, sizeof(line), "%u %u 1", uid, uid);
        if (r < 0)
                return r;
        r = write_map("/proc/self/uid_map", line);
        if (r < 0)
                return r;
        snprintf(line, sizeof(line), "%u %u 1", gid, gid);
        return write_map("/proc/self/gid_map", line);
}

static uint64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static void close_others(int first) {
        if (syscall(SYS_close_range, (unsigned) first, ~0u, 0) == 0)
                return;
        for (int fd = first; fd < 65536; fd++)
                close(fd);
}

static void _noreturn_ work(int directory, int sock, pid_t maker, bool privileged) {
        DIR **stack = calloc(MOST_DEPTH, sizeof(DIR *));
        struct rlimit files;
        int r = stack ? 0 : -ENOMEM;

        /* A second string: the socket's end is the first. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != maker)
                _exit(0);
        prctl(PR_SET_NAME, "hutch-meter");
        directory = fcntl(directory, F_DUPFD, 3);
        sock = fcntl(sock, F_DUPFD, 3);
        if (directory < 0 || sock < 0 || dup2(directory, 0) < 0 || dup2(sock, 1) < 0)
                _exit(1);
        close_others(2);
        directory = 0;
        sock = 1;
        if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* one a level */
                files.rlim_cur = files.rlim_max;
                setrlimit(RLIMIT_NOFILE, &files);
        }
        if (r >= 0 && !privileged)
                r = take_namespace();
        for (;;) {
                struct pollfd end = {.fd = sock, .events = POLLIN};
                struct report report = {.error = r};
                uint64_t began = now_ms(), took;

                if (r >= 0) {
                        r = count(directory, stack, &report.bytes);
                        report.error = r;
                }
                if (send(sock, &report, sizeof(report), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
                        _exit(0);
                if (r < 0)
                        _exit(1);
                took = (now_ms() - began) * PAUSE_FACTOR;
                if (poll(&end, 1, took > LEAST_PAUSE_MS ? (int) took : LEAST_PAUSE_MS) > 0)
                        _exit(0);
        }
}

/* ---- and its maker ---- */

int meter_new(const char *directory, bool privileged, struct meter **ret, struct hutch_error *err) {
        _cleanup_(closep) int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), theirs = -1;
        struct meter *m = calloc(1, sizeof(*m));
        pid_t maker = getpid();
        int ends[2] = {-1, -1}, r;

        if (!m)
                return error_oom(err);
        m->fd = m->pid = -1;
        r = dir < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0 ? -errno : 0;
        if (r >= 0) {
                m->fd = ends[0];
                theirs = ends[1];
                m->pid = fork();
                r = m->pid < 0 ? -errno : 0;
        }
        children_note(m->pid);
        if (m->pid == 0)
                work(dir, theirs, maker, privileged);
        if (r < 0) {
                meter_free(m);
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot watch the size of the layers: %s",
                                 errno_text(-r));
        }
        *ret = m;
        return 0;
}

int meter_fd(const struct meter *m) {
        return m->fd;
}

int meter_read(struct meter *m, uint64_t *ret) {
        struct report report;
        ssize_t n;

        n = recv(m->fd, &report, sizeof(report), MSG_DONTWAIT);
        if (n < 0) /* for the moment: the next one comes, or the end */
                return -EAGAIN;
        if (n != sizeof(report))
                return -EPIPE;
        *ret = report.bytes;
        return report.error;
}

void meter_free(struct meter *m) {
        if (!m)
                return;
        closep(&m->fd);
        if (m->pid > 0) {
                kill(m->pid, SIGKILL);
                while (waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                children_forget(m->pid);
        }
        free(m);
}
