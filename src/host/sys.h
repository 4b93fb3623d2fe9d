/* System calls that Debian 12's C library does not wrap, and constants that its headers may lack. Each returns what the
 * kernel returns, with errno set. */
#pragma once

#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define HUTCH_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define HUTCH_LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#define HUTCH_LANDLOCK_NET_TCP 3ULL /* bind and connect */
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467
#endif

/* struct landlock_ruleset_attr as of ABI 6; older kernels are given its first part. */
struct sys_landlock_ruleset_attr {
        __u64 handled_access_fs, handled_access_net, scoped;
};

static inline int sys_open_tree(int dir, const char *path, unsigned flags) {
        return (int) syscall(SYS_open_tree, dir, path, flags);
}

static inline int sys_move_mount(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
        return (int) syscall(SYS_move_mount, from_dir, from, to_dir, to, flags);
}

static inline int sys_mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr) {
        return (int) syscall(SYS_mount_setattr, dir, path, flags, attr, sizeof(*attr));
}

static inline int sys_fsopen(const char *type) {
        return (int) syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig(int fd, unsigned command, const char *key, const char *value) {
        return (int) syscall(SYS_fsconfig, fd, command, key, value, 0);
}

static inline int sys_fsmount(int fd, unsigned attributes) {
        return (int) syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, attributes);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old) {
        return (int) syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_openat2(int dir, const char *path, unsigned flags, unsigned resolve) {
        struct open_how how = {.flags = flags, .resolve = resolve};

        return (int) syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static inline int sys_pidfd_open(pid_t pid) {
        return (int) syscall(SYS_pidfd_open, pid, 0);
}

static inline int sys_pidfd_send_signal(int pidfd, int sig) {
        return (int) syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* signal(sig, SIG_DFL), also for the two that the C library keeps to itself: a caller may ignore those too, and would
 * pass that on. Zeros are the kernel's struct for it. */
static inline int sys_signal_default(int sig) {
        static const unsigned long action[4];

        return (int) syscall(SYS_rt_sigaction, sig, action, NULL, 8);
}

static inline int sys_landlock_create_ruleset(const struct sys_landlock_ruleset_attr *attr, size_t size,
                                              unsigned flags) {
        return (int) syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

static inline int sys_landlock_add_path(int ruleset, const struct landlock_path_beneath_attr *attr) {
        return (int) syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, attr, 0);
}

static inline int sys_landlock_restrict_self(int ruleset) {
        return (int) syscall(SYS_landlock_restrict_self, ruleset, 0);
}

/* fork() in new namespaces: the child goes on where the parent is, on a copy of its memory. The second also puts it
 * into a control group of version 2, if one is given. */
static inline pid_t sys_clone_fork(unsigned long flags) {
        return (pid_t) syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
}

static inline pid_t sys_clone_fork_into(unsigned long flags, int cgroup) {
        struct clone_args args = {.flags = flags | CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (__u64) cgroup};

        return cgroup < 0 ? sys_clone_fork(flags) : (pid_t) syscall(SYS_clone3, &args, sizeof(args));
}
