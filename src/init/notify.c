/* See notify.h. */
#include "notify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../host/sys.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define XATTR_MOST 65536
#define CONTINUE 1 /* the kernel performs it */

struct call {
        int listener;
        const struct plan *plan;
        struct seccomp_notif request;
        int memory; /* /proc/PID/mem of the caller */
};

enum operation { OP_MODE, OP_OWNER, OP_UTIME, OP_UTIMES, OP_TIMES, OP_SET_XATTR, OP_REMOVE_XATTR };

/* Where a call names its file, and what follows. Arguments by number; -1: none. */
static const struct row {
        int call;
        int dir, path; /* path -1: dir is the file itself */
        int first;     /* of what the operation needs */
        int flags;     /* AT_* */
        bool nofollow;
        enum operation op;
} rows[] = {
#ifdef SYS_chmod
        {SYS_chmod, -1, 0, 1, -1, false, OP_MODE},
        {SYS_chown, -1, 0, 1, -1, false, OP_OWNER},
        {SYS_lchown, -1, 0, 1, -1, true, OP_OWNER},
        {SYS_utime, -1, 0, 1, -1, false, OP_UTIME},
        {SYS_utimes, -1, 0, 1, -1, false, OP_UTIMES},
        {SYS_futimesat, 0, 1, 2, -1, false, OP_UTIMES},
#endif
        {SYS_fchmod, 0, -1, 1, -1, false, OP_MODE},
        {SYS_fchmodat, 0, 1, 2, -1, false, OP_MODE},
        {SYS_fchmodat2, 0, 1, 2, 3, false, OP_MODE},
        {SYS_fchown, 0, -1, 1, -1, false, OP_OWNER},
        {SYS_fchownat, 0, 1, 2, 4, false, OP_OWNER},
        {SYS_utimensat, 0, 1, 2, 3, false, OP_TIMES},
        {SYS_setxattr, -1, 0, 1, -1, false, OP_SET_XATTR},
        {SYS_lsetxattr, -1, 0, 1, -1, true, OP_SET_XATTR},
        {SYS_fsetxattr, 0, -1, 1, -1, false, OP_SET_XATTR},
        {SYS_removexattr, -1, 0, 1, -1, false, OP_REMOVE_XATTR},
        {SYS_lremovexattr, -1, 0, 1, -1, true, OP_REMOVE_XATTR},
        {SYS_fremovexattr, 0, -1, 1, -1, false, OP_REMOVE_XATTR},
};

/* ---- the caller's memory ---- */

static int read_bytes(const struct call *c, uint64_t at, void *ret, size_t n) {
        ssize_t got = at > INT64_MAX ? -1 : pread(c->memory, ret, n, (off_t) at);

        return got == (ssize_t) n ? 0 : -EFAULT;
}

/* Page by page: what follows the text may not be mapped. */
static int read_text(const struct call *c, uint64_t at, char *ret, size_t room) {
        for (size_t used = 0; used < room;) {
                size_t n = 4096 - ((at + used) & 4095);
                ssize_t got;

                if (n > room - used)
                        n = room - used;
                got = at > INT64_MAX - room ? -1 : pread(c->memory, ret + used, n, (off_t) (at + used));
                if (got <= 0)
                        return -EFAULT;
                if (memchr(ret + used, 0, (size_t) got))
                        return 0;
                used += (size_t) got;
        }
        return -ENAMETOOLONG;
}

/* ---- the file ---- */

static int open_of_caller(const struct call *c, int dir) {
        char path[64];
        int fd;

        if (dir == AT_FDCWD)
                snprintf(path, sizeof(path), "/proc/%d/cwd", (int) c->request.pid);
        else
                snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) c->request.pid, dir);
        fd = open(path, O_PATH | O_CLOEXEC);
        return fd >= 0 ? fd : errno == ENOENT ? -EBADF : -errno;
}

/* The C library changes the mode of what it holds by these names. Seen from init they would be init's own. */
static bool names_descriptor(const char *path, int *ret) {
        static const char *const prefixes[] = {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"};
        char end;

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(path, prefixes[i]) && sscanf(path + strlen(prefixes[i]), "%d%c", ret, &end) == 1)
                        return true;
        return false;
}

static int open_file(const struct call *c, const struct row *row) {
        const uint64_t *args = (const uint64_t *) c->request.data.args;
        int dir = row->dir < 0 ? AT_FDCWD : (int) args[row->dir], flags = row->flags < 0 ? 0 : (int) args[row->flags];
        bool nofollow = row->nofollow || flags & AT_SYMLINK_NOFOLLOW;
        _cleanup_(closep) int base = -1;
        char path[PATH_MAX];
        int fd, number, r;

        if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
                return -EINVAL;
        if (row->path < 0 || (row->op == OP_TIMES && args[row->path] == 0))
                return dir == AT_FDCWD ? -EBADF : open_of_caller(c, dir);
        r = read_text(c, args[row->path], path, sizeof(path));
        if (r < 0)
                return r;
        if (!path[0])
                return flags & AT_EMPTY_PATH ? open_of_caller(c, dir) : -ENOENT;
        if (!nofollow && names_descriptor(path, &number))
                return open_of_caller(c, number);
        base = open_of_caller(c, path[0] == '/' ? AT_FDCWD : dir);
        if (base < 0)
                return base;
        fd = sys_openat2(base, path, O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0), RESOLVE_NO_MAGICLINKS);
        return fd < 0 ? -errno : fd;
}

/* Beneath a path that the box may write. The box can move nothing into such a path that was not in one before, so the
 * name that the kernel gives the open file is enough. */
static bool is_writable(const struct plan *plan, int fd) {
        char link[64], path[PATH_MAX];
        struct stat st;
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n <= 0 || path[0] != '/' || fstat(fd, &st) < 0)
                return false;
        path[n] = 0;
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].flags & STEP_WRITABLE && !(plan->steps[i].flags & STEP_DEVICES) &&
                    path_is_beneath(path, plan->steps[i].dest))
                        return true;
        return false;
}

/* ---- what is done to it ---- */

static int set_times(const struct call *c, const struct row *row, int fd) {
        uint64_t at = c->request.data.args[row->first];
        struct timespec times[2];
        struct timeval old[2];
        struct utimbuf oldest;
        int r = 0;

        if (at && row->op == OP_TIMES)
                r = read_bytes(c, at, times, sizeof(times));
        else if (at && row->op == OP_UTIMES) {
                r = read_bytes(c, at, old, sizeof(old));
                for (int i = 0; r >= 0 && i < 2; i++) {
                        if (old[i].tv_usec < 0 || old[i].tv_usec >= 1000000)
                                return -EINVAL;
                        times[i] = (struct timespec){old[i].tv_sec, old[i].tv_usec * 1000};
                }
        } else if (at) {
                r = read_bytes(c, at, &oldest, sizeof(oldest));
                if (r >= 0) {
                        times[0] = (struct timespec){.tv_sec = oldest.actime};
                        times[1] = (struct timespec){.tv_sec = oldest.modtime};
                }
        }
        if (r < 0)
                return r;
        return syscall(SYS_utimensat, fd, "", at ? times : NULL, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int set_attribute(const struct call *c, const struct row *row, const char *link) {
        const uint64_t *args = (const uint64_t *) c->request.data.args + row->first;
        _cleanup_(freep) char *value = NULL;
        char name[XATTR_NAME_MAX + 2];
        int r;

        r = read_text(c, args[0], name, sizeof(name));
        if (r < 0)
                return r == -ENAMETOOLONG ? -ERANGE : r;
        if (!startswith(name, "user.") && !startswith(name, "system.posix_acl_"))
                return -EPERM;
        if (row->op == OP_REMOVE_XATTR)
                return removexattr(link, name) < 0 ? -errno : 0;
        if (args[2] > XATTR_MOST)
                return -E2BIG;
        value = malloc(args[2] + 1);
        if (!value)
                return -ENOMEM;
        r = args[2] ? read_bytes(c, args[1], value, args[2]) : 0;
        if (r < 0)
                return r;
        return setxattr(link, name, value, args[2], (int) args[3]) < 0 ? -errno : 0;
}

static int perform(const struct call *c, const struct row *row, int fd) {
        const uint64_t *args = (const uint64_t *) c->request.data.args + row->first;
        char link[64];
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        switch (row->op) {
        case OP_MODE:
                if (S_ISLNK(st.st_mode))
                        return -EOPNOTSUPP;
                /* Such a file would give its owner's rights to anyone who executes it on the host. */
                if (args[0] & (S_ISUID | S_ISGID))
                        return -EPERM;
                return chmod(link, (mode_t) args[0] & 07777) < 0 ? -errno : 0;
        case OP_OWNER:
                return fchownat(fd, "", (uid_t) args[0], (gid_t) args[1], AT_EMPTY_PATH) < 0 ? -errno : 0;
        case OP_UTIME:
        case OP_UTIMES:
        case OP_TIMES:
                return set_times(c, row, fd);
        default:
                return S_ISLNK(st.st_mode) ? -EPERM : set_attribute(c, row, link);
        }
}

static bool is_valid(const struct call *c) {
        return ioctl(c->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->request.id) == 0;
}

static int change_file(struct call *c, const struct row *row) {
        _cleanup_(closep) int fd = -1;
        char path[64];
        int r;

        snprintf(path, sizeof(path), "/proc/%d/mem", (int) c->request.pid);
        c->memory = open(path, O_RDONLY | O_CLOEXEC);
        if (c->memory < 0)
                return -EPERM;
        fd = open_file(c, row);
        if (fd < 0)
                return fd;
        /* The thread may have died, and its number be another's: then nothing that was read is the caller's. */
        if (!is_valid(c))
                return -ESRCH;
        if (!is_writable(c->plan, fd))
                return -EPERM;
        r = perform(c, row, fd);
        return r;
}

/* ---- signals ---- */

/* From /proc/PID/stat: the parent and the process group. */
static bool look_at(pid_t pid, pid_t *ret_parent, pid_t *ret_group) {
        _cleanup_(freep) char *text = NULL;
        const char *rest;
        char path[64], state;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        if (read_whole_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
                return false;
        rest = strrchr(text, ')'); /* the name before it may hold anything */
        return rest && sscanf(rest, ") %c %d %d", &state, ret_parent, ret_group) == 3;
}

/* Every orphan of the box comes to init, so the chain of parents is never broken. */
bool notify_is_ours(pid_t pid) {
        pid_t self = getpid();

        for (int depth = 0; pid > 1 && depth < 4096; depth++) {
                pid_t group;

                if (pid == self)
                        return depth > 0;
                if (!look_at(pid, &pid, &group))
                        return false;
        }
        return false;
}

/* Every member must be the box's. */
static int signal_group(pid_t group, int sig, bool perform) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        int found = 0;
        bool foreign = false;

        while (proc && !foreign && (entry = readdir(proc))) {
                pid_t pid = atoi(entry->d_name), parent, of;

                if (pid <= 0 || !look_at(pid, &parent, &of) || of != group)
                        continue;
                foreign = !notify_is_ours(pid);
                found++;
        }
        if (proc)
                closedir(proc);
        if (!proc || foreign || group == getpgrp() || group <= 1)
                return -EPERM;
        if (!found)
                return -ESRCH;
        return !perform ? CONTINUE : kill(-group, sig) < 0 ? -errno : 0;
}

static pid_t group_leader(pid_t thread) {
        _cleanup_(freep) char *text = NULL;
        const char *line;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/status", thread);
        if (read_whole_file(AT_FDCWD, path, 8192, &text, NULL) < 0)
                return -1;
        line = strstr(text, "\nTgid:");
        return line ? atoi(line + 6) : -1;
}

/* A signal that the caller itself receives would interrupt its wait for the answer, so the kernel performs the call
 * then. Its arguments are numbers, and neither the process nor its group can be reused while the caller is in it. */
static bool reaches_caller(const struct call *c, pid_t pid) {
        pid_t caller = (pid_t) c->request.pid;

        if (c->request.data.nr == SYS_tkill)
                return group_leader(pid) == group_leader(caller);
        if (pid > 0)
                return pid == group_leader(caller);
        return pid == 0 || getpgid(caller) == -pid;
}

static int send_signal(const struct call *c) {
        const uint64_t *args = (const uint64_t *) c->request.data.args;
        bool tg = c->request.data.nr == SYS_tgkill;
        pid_t pid = (pid_t) args[0];
        int sig = (int) args[tg ? 2 : 1];

        if (c->request.data.nr == SYS_kill && pid <= 0) {
                pid_t group = pid == 0 ? getpgid((pid_t) c->request.pid) : -pid;

                return pid == -1 ? -EPERM : group < 0 ? -ESRCH : signal_group(group, sig, !reaches_caller(c, pid));
        }
        if (!notify_is_ours(tg ? pid : c->request.data.nr == SYS_kill ? pid : (pid_t) args[0]))
                return kill(pid, 0) < 0 && errno == ESRCH ? -ESRCH : -EPERM;
        if (!is_valid(c))
                return -ESRCH;
        if (reaches_caller(c, pid))
                return CONTINUE;
        if (c->request.data.nr == SYS_kill)
                return kill(pid, sig) < 0 ? -errno : 0;
        if (tg)
                return syscall(SYS_tgkill, pid, (pid_t) args[1], sig) < 0 ? -errno : 0;
        return syscall(SYS_tkill, pid, sig) < 0 ? -errno : 0;
}

static int decide(struct call *c) {
        int nr = c->request.data.nr;

        if (nr == SYS_kill || nr == SYS_tkill || nr == SYS_tgkill)
                return send_signal(c);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (rows[i].call == nr)
                        return change_file(c, &rows[i]);
        return -ENOSYS;
}

void notify_answer(int listener, const struct plan *plan, struct sockets *sockets) {
        struct call c = {.listener = listener, .plan = plan, .memory = -1};
        struct seccomp_notif_resp answer = {0};
        int r;

        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &c.request) < 0)
                return;
        if (sockets_is_ours(&c.request)) {
                sockets_take(sockets, listener, &c.request);
                return;
        }
        answer.id = c.request.id;
        r = decide(&c);
        answer.error = r == CONTINUE ? 0 : r;
        answer.flags = r == CONTINUE ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
        closep(&c.memory);
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
