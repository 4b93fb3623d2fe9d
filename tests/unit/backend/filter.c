/* The system call filter in simulation: which calls are refused, how, and that all others pass.
 *
 * The table names calls by number and arguments; a second table, of every number of the native ABI, makes sure that
 * nothing is refused that the first does not name: an over-broad filter breaks programs as surely as a lax one lets
 * them out. */
#include "backend/filter.h"

#include <asm/ioctls.h>
#include <linux/audit.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "bpf.h"
#include "unit.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

#define X32 0x40000000u
#define HIGH (1ull << 32)
#define NEWTIME 0x80ull

/* Numbers that older headers lack. From 424 on they are the same everywhere. */
#define NR_fsopen 430
#define NR_clone3 435
#define NR_open_tree_attr 467
#define LAST_KNOWN 469

#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define P ERRNO(EPERM)
#define S ERRNO(ENOSYS)
#define F ERRNO(EAFNOSUPPORT)
#define N ERRNO(EPROTONOSUPPORT)
#define O ERRNO(ENOPROTOOPT)
#define OK ALLOW

static uint32_t ask(bool nested, uint32_t arch, uint32_t nr, const uint64_t *args) {
        const struct filter *f = filter_for(nested);
        struct seccomp_data data = {.nr = (int) nr, .arch = arch, .instruction_pointer = 0x1234567812345678ull};

        memcpy(data.args, args, sizeof(data.args));
        return bpf_run(f->code, f->n, &data);
}

static const char *answer_name(uint32_t answer, char *room, size_t n) {
        if (answer == ALLOW)
                return "allowed";
        if ((answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
                snprintf(room, n, "%s", strerrorname_np((int) (answer & SECCOMP_RET_DATA)));
        else
                snprintf(room, n, "%#x", answer);
        return room;
}

static void same_answer(const char *who, uint32_t got, uint32_t want) {
        char a[32], b[32];

        unit_check(got == want, "%s: %s, should be %s", who, answer_name(got, a, sizeof(a)),
                   answer_name(want, b, sizeof(b)));
}

struct call_row {
        const char *name;
        uint32_t nr;
        uint64_t args[6];
        uint32_t closed, nested;
};

static const struct call_row refused_rows[] = {
        {"keyctl", SYS_keyctl, {0}, P, P},
        {"add_key", SYS_add_key, {0}, P, P},
        {"request_key", SYS_request_key, {0}, P, P},
        {"bpf", SYS_bpf, {0}, P, P},
        {"bpf with high bits", SYS_bpf, {HIGH | 5}, P, P},
        {"perf_event_open", SYS_perf_event_open, {0}, P, P},
        {"userfaultfd", SYS_userfaultfd, {0}, P, P},
        {"userfaultfd, user mode only", SYS_userfaultfd, {1}, P, P},
        {"kexec_load", SYS_kexec_load, {0}, P, P},
        {"kexec_file_load", SYS_kexec_file_load, {0}, P, P},
        {"init_module", SYS_init_module, {0}, P, P},
        {"finit_module", SYS_finit_module, {0}, P, P},
        {"delete_module", SYS_delete_module, {0}, P, P},
        {"syslog", SYS_syslog, {0}, P, P},
        {"acct", SYS_acct, {0}, P, P},
        {"quotactl", SYS_quotactl, {0}, P, P},
        {"quotactl_fd", 443, {0}, P, P},
        {"swapon", SYS_swapon, {0}, P, P},
        {"swapoff", SYS_swapoff, {0}, P, P},
        {"reboot", SYS_reboot, {0}, P, P},
        {"settimeofday", SYS_settimeofday, {0}, P, P},
        {"clock_settime", SYS_clock_settime, {0}, P, P},
        {"clock_adjtime", SYS_clock_adjtime, {0}, P, P},
        {"adjtimex", SYS_adjtimex, {0}, P, P},
        {"sethostname", SYS_sethostname, {0}, P, P},
        {"setdomainname", SYS_setdomainname, {0}, P, P},
        {"vhangup", SYS_vhangup, {0}, P, P},
        {"open_by_handle_at", SYS_open_by_handle_at, {0}, P, P},
#if defined(__x86_64__)
        {"create_module", SYS_create_module, {0}, P, P},
        {"query_module", SYS_query_module, {0}, P, P},
        {"get_kernel_syms", SYS_get_kernel_syms, {0}, P, P},
        {"uselib", SYS_uselib, {0}, P, P},
        {"_sysctl", SYS__sysctl, {0}, P, P},
        {"sysfs", SYS_sysfs, {0}, P, P},
        {"ustat", SYS_ustat, {0}, P, P},
        {"iopl", SYS_iopl, {0}, P, P},
        {"ioperm", SYS_ioperm, {0}, P, P},
        {"modify_ldt", SYS_modify_ldt, {0}, P, P},
#endif
        {"nfsservctl", SYS_nfsservctl, {0}, P, P},
        {"lookup_dcookie", SYS_lookup_dcookie, {0}, P, P},

        {"io_uring_setup", 425, {0}, S, S},
        {"io_uring_enter", 426, {0}, S, S},
        {"io_uring_register", 427, {0}, S, S},
        {"fanotify_init", SYS_fanotify_init, {0}, P, P},
        {"openat2", 437, {0}, S, S},
        {"clone3", NR_clone3, {0}, S, S},
        {"clone3 with a size", NR_clone3, {0x7fff0000, 88}, S, S},

        {"mount", SYS_mount, {0}, P, OK},
        {"umount2", SYS_umount2, {0}, P, OK},
        {"pivot_root", SYS_pivot_root, {0}, P, OK},
        {"chroot", SYS_chroot, {0}, P, OK},
        {"setns", SYS_setns, {0}, P, OK},
        {"setns with a flag", SYS_setns, {3, CLONE_NEWUSER}, P, OK},
        {"open_tree", 428, {0}, P, OK},
        {"move_mount", 429, {0}, P, OK},
        {"fsopen", NR_fsopen, {0}, P, OK},
        {"fsconfig", 431, {0}, P, OK},
        {"fsmount", 432, {0}, P, OK},
        {"fspick", 433, {0}, P, OK},
        {"mount_setattr", 442, {0}, P, OK},
        {"open_tree_attr", NR_open_tree_attr, {0}, P, OK},
};

#define NS_ROWS(call, flag, high)                                                                                      \
        {call ": " #flag, 0, {flag}, P, OK},                                                                           \
                {call ": " #flag " among others", 0, {flag | CLONE_FS | CLONE_FILES}, P, OK}, {                        \
                call ": " #flag " with high bits", 0, {(flag) | (high)}, P, OK                                         \
        }

/* The number is put in where they are added: the same rows serve unshare and clone. */
static const struct call_row unshare_rows[] = {
        NS_ROWS("unshare", CLONE_NEWNS, HIGH),
        NS_ROWS("unshare", CLONE_NEWCGROUP, HIGH),
        NS_ROWS("unshare", CLONE_NEWUTS, HIGH),
        NS_ROWS("unshare", CLONE_NEWIPC, HIGH),
        NS_ROWS("unshare", CLONE_NEWUSER, HIGH),
        NS_ROWS("unshare", CLONE_NEWPID, HIGH),
        NS_ROWS("unshare", CLONE_NEWNET, HIGH),
        NS_ROWS("unshare", NEWTIME, HIGH),
        {"unshare: all namespaces", 0, {0x7e020080}, P, OK},
        {"unshare: nothing", 0, {0}, OK, OK},
        {"unshare: files", 0, {CLONE_FILES}, OK, OK},
        {"unshare: fs, sysvsem", 0, {CLONE_FS | CLONE_SYSVSEM}, OK, OK},
};

static const struct call_row clone_rows[] = {
        NS_ROWS("clone", CLONE_NEWNS, HIGH),
        NS_ROWS("clone", CLONE_NEWCGROUP, HIGH),
        NS_ROWS("clone", CLONE_NEWUTS, HIGH),
        NS_ROWS("clone", CLONE_NEWIPC, HIGH),
        NS_ROWS("clone", CLONE_NEWUSER, HIGH),
        NS_ROWS("clone", CLONE_NEWPID, HIGH),
        NS_ROWS("clone", CLONE_NEWNET, HIGH),
        {"clone: all namespaces and SIGCHLD", 0, {0x7e020000 | 17}, P, OK},
        {"clone: fork", 0, {17}, OK, OK},
        {"clone: fork of glibc", 0, {CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | 17}, OK, OK},
        {"clone: vfork", 0, {CLONE_VM | CLONE_VFORK | 17}, OK, OK},
        {"clone: a thread of glibc", 0, {0x3d0f00}, OK, OK},
        {"clone: a thread of Go",
         0,
         {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD},
         OK,
         OK},
        {"clone: a pidfd", 0, {CLONE_PIDFD | 17}, OK, OK},
        {"clone: the signal's bit is not the time namespace's", 0, {NEWTIME}, OK, OK},
        {"clone: flags in another argument",
         0,
         {17, CLONE_NEWUSER, CLONE_NEWUSER, CLONE_NEWUSER, CLONE_NEWUSER},
         OK,
         OK},
};

static const struct call_row ioctl_rows[] = {
        {"ioctl TIOCSTI", SYS_ioctl, {0, TIOCSTI}, P, P},
        {"ioctl TIOCSTI with a high bit", SYS_ioctl, {0, TIOCSTI | HIGH}, P, P},
        {"ioctl TIOCSTI with all high bits", SYS_ioctl, {0, TIOCSTI | 0xffffffff00000000ull}, P, P},
        {"ioctl TIOCSTI with the highest bit", SYS_ioctl, {0, TIOCSTI | 1ull << 63}, P, P},
        {"W5n: ioctl TIOCSETD", SYS_ioctl, {0, TIOCSETD}, P, P},
        {"W5n: ioctl TIOCSETD with a high bit", SYS_ioctl, {0, TIOCSETD | HIGH}, P, P},
        {"ioctl TIOCLINUX", SYS_ioctl, {0, TIOCLINUX}, P, P},
        {"ioctl TIOCLINUX with a high bit", SYS_ioctl, {0, TIOCLINUX | HIGH}, P, P},
        {"ioctl TIOCLINUX with all high bits", SYS_ioctl, {0, TIOCLINUX | 0xffffffff00000000ull}, P, P},
        {"ioctl TCGETS", SYS_ioctl, {0, TCGETS}, OK, OK},
        {"ioctl TIOCGWINSZ", SYS_ioctl, {0, TIOCGWINSZ}, OK, OK},
        {"ioctl TIOCSCTTY", SYS_ioctl, {0, TIOCSCTTY}, OK, OK},
        {"ioctl FIONREAD", SYS_ioctl, {0, FIONREAD}, OK, OK},
        {"ioctl beside TIOCSTI", SYS_ioctl, {0, TIOCSTI + 1}, OK, OK},
        {"ioctl beside TIOCLINUX", SYS_ioctl, {0, TIOCLINUX - 1}, OK, OK},
        {"fcntl F_SETLEASE", SYS_fcntl, {3, F_SETLEASE, F_WRLCK}, P, P},
        {"fcntl F_SETLEASE with a high bit", SYS_fcntl, {3, F_SETLEASE | HIGH, F_WRLCK}, P, P},
        {"fcntl F_SETDELEG", SYS_fcntl, {3, 1040}, P, P},
        {"fcntl F_GETLEASE", SYS_fcntl, {3, F_GETLEASE}, OK, OK},
        {"fcntl F_SETLK", SYS_fcntl, {3, F_SETLK}, OK, OK},
        {"fcntl F_DUPFD_CLOEXEC", SYS_fcntl, {3, F_DUPFD_CLOEXEC}, OK, OK},
        {"ioctl on an fd of that number", SYS_ioctl, {TIOCSTI, TCGETS, TIOCSTI}, OK, OK},
};

static const struct call_row socket_rows[] = {
        {"socket UNIX", SYS_socket, {AF_UNIX, SOCK_STREAM}, OK, OK},
        {"socket INET", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 6}, OK, OK},
        {"socket INET, udp", SYS_socket, {AF_INET, SOCK_DGRAM, 17}, OK, OK},
        {"socket INET6", SYS_socket, {AF_INET6, SOCK_STREAM}, OK, OK},
        {"socket NETLINK route", SYS_socket, {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE}, OK, OK},
        {"socket NETLINK audit", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT}, F, F},
        {"socket NETLINK netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}, F, F},
        {"socket NETLINK kobject", SYS_socket, {AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT}, F, F},
        {"socket NETLINK sock_diag", SYS_socket, {AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG}, F, F},
        {"socket NETLINK generic", SYS_socket, {AF_NETLINK, SOCK_DGRAM, NETLINK_GENERIC}, F, F},
        {"socket NETLINK xfrm", SYS_socket, {AF_NETLINK, SOCK_DGRAM, NETLINK_XFRM}, F, F},
        {"socket INET, icmp", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}, OK, OK},
        {"socket INET6, icmp", SYS_socket, {AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6}, OK, OK},
        {"socket INET, dccp", SYS_socket, {AF_INET, 6, IPPROTO_DCCP}, N, N},
        {"socket INET, sctp", SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_SCTP}, N, N},
        {"socket INET6, udp-lite", SYS_socket, {AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE}, N, N},
        {"socket INET, mptcp", SYS_socket, {AF_INET, SOCK_STREAM, 262}, N, N},
        {"socket INET6, smc", SYS_socket, {AF_INET6, SOCK_STREAM, 256}, N, N},
        {"socket INET, raw", SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_RAW}, N, N},
        {"socket INET, dccp with high bits", SYS_socket, {AF_INET, 6, IPPROTO_DCCP | HIGH}, N, N},
        {"socket PACKET", SYS_socket, {AF_PACKET, SOCK_RAW}, F, F},
        {"socket ALG", SYS_socket, {AF_ALG, SOCK_SEQPACKET}, F, F},
        {"socket VSOCK", SYS_socket, {AF_VSOCK, SOCK_STREAM}, F, F},
        {"socket BLUETOOTH", SYS_socket, {AF_BLUETOOTH, SOCK_RAW}, F, F},
        {"socket CAN", SYS_socket, {29, SOCK_RAW}, F, F},
        {"socket TIPC", SYS_socket, {30, SOCK_STREAM}, F, F},
        {"socket XDP", SYS_socket, {44, SOCK_RAW}, F, F},
        {"socket KEY", SYS_socket, {AF_KEY, SOCK_RAW}, F, F},
        {"socket AX25", SYS_socket, {3, SOCK_STREAM}, F, F},
        {"socket UNSPEC", SYS_socket, {AF_UNSPEC}, F, F},
        {"socket of a negative family", SYS_socket, {0xffffffff}, F, F},
        {"socketpair UNIX", SYS_socketpair, {AF_UNIX, SOCK_STREAM}, OK, OK},
        {"socketpair UNIX seqpacket", SYS_socketpair, {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC}, OK, OK},
        {"socketpair TIPC", SYS_socketpair, {30, SOCK_STREAM}, F, F},
        {"socketpair UNSPEC", SYS_socketpair, {0}, F, F},
};

/* A mode that lends rights is refused wherever a mode is given; O_CREAT decides whether open() has one. */
static const struct call_row mode_rows[] = {
        {"fchmod u+s", SYS_fchmod, {3, 04755}, P, P},
        {"fchmod g+s", SYS_fchmod, {3, 02755}, P, P},
        {"fchmod u+s alone", SYS_fchmod, {3, 04000}, P, P},
        {"fchmod u+s with high bits", SYS_fchmod, {3, 04755 | HIGH}, P, P},
        {"fchmod +t", SYS_fchmod, {3, 01777}, OK, OK},
        {"fchmod", SYS_fchmod, {3, 0777}, OK, OK},
        {"fchmod on an fd of that number", SYS_fchmod, {04755, 0755}, OK, OK},
        {"fchmodat u+s", SYS_fchmodat, {3, 0, 04755}, P, P},
        {"fchmodat g+s", SYS_fchmodat, {3, 0, 02755}, P, P},
        {"fchmodat", SYS_fchmodat, {3, 04755, 0755}, OK, OK},
        {"fchmodat2 u+s", 452, {3, 0, 04755}, P, P},
        {"fchmodat2 g+s", 452, {3, 0, 02000 | HIGH}, P, P},
        {"fchmodat2", 452, {3, 0, 0755, 04755}, OK, OK},
        {"mknodat u+s", SYS_mknodat, {3, 0, S_IFREG | 04755}, P, P},
        {"mknodat g+s", SYS_mknodat, {3, 0, 02755}, P, P},
        {"mknodat of a fifo", SYS_mknodat, {3, 0, S_IFIFO | 0644}, OK, OK},
        {"openat O_CREAT u+s", SYS_openat, {3, 0, O_WRONLY | O_CREAT, 04755}, P, P},
        {"openat O_CREAT g+s", SYS_openat, {3, 0, O_WRONLY | O_CREAT | O_EXCL, 02755}, P, P},
        {"openat O_CREAT u+s with high bits", SYS_openat, {3, 0, O_CREAT | HIGH, 04755 | HIGH}, P, P},
        {"openat O_TMPFILE u+s", SYS_openat, {3, 0, O_WRONLY | O_TMPFILE, 04755}, P, P},
        {"openat O_TMPFILE g+s", SYS_openat, {3, 0, O_WRONLY | O_TMPFILE, 02755}, P, P},
        {"openat O_CREAT", SYS_openat, {3, 0, O_WRONLY | O_CREAT | O_TRUNC, 0666}, OK, OK},
        {"openat O_TMPFILE", SYS_openat, {3, 0, O_RDWR | O_TMPFILE, 0600}, OK, OK},
        {"openat, with rubbish for a mode", SYS_openat, {3, 0, O_RDONLY | O_CLOEXEC, 06755}, OK, OK},
        {"openat of a directory, with rubbish for a mode", SYS_openat, {3, 0, O_RDONLY | O_DIRECTORY, 06755}, OK, OK},
        {"mkdirat: the kernel drops the bits itself", SYS_mkdirat, {3, 0, 06755}, OK, OK},
#if defined(__x86_64__)
        {"chmod u+s", SYS_chmod, {0, 04755}, P, P},
        {"chmod g+s", SYS_chmod, {0, 02755}, P, P},
        {"chmod", SYS_chmod, {0, 01777}, OK, OK},
        {"creat u+s", SYS_creat, {0, 04755}, P, P},
        {"creat", SYS_creat, {0, 0644}, OK, OK},
        {"mknod u+s", SYS_mknod, {0, S_IFREG | 04755}, P, P},
        {"mknod", SYS_mknod, {0, S_IFREG | 0644}, OK, OK},
        {"open O_CREAT u+s", SYS_open, {0, O_RDWR | O_CREAT, 04755}, P, P},
        {"open O_TMPFILE g+s", SYS_open, {0, O_RDWR | O_TMPFILE, 02755}, P, P},
        {"open O_CREAT", SYS_open, {0, O_RDWR | O_CREAT, 0644}, OK, OK},
        {"open, with rubbish for a mode", SYS_open, {0, O_RDONLY, 06755}, OK, OK},
#endif
};

/* Process 1 is init. The kernel takes process ids, levels and options as 32-bit numbers: the upper half must not
 * matter. */
static const struct call_row init_rows[] = {
        {"prlimit64 of init", SYS_prlimit64, {1, RLIMIT_NOFILE}, P, P},
        {"prlimit64 of init with high bits", SYS_prlimit64, {1 | HIGH, RLIMIT_NOFILE}, P, P},
        {"prlimit64 of itself", SYS_prlimit64, {0, RLIMIT_NOFILE}, OK, OK},
        {"prlimit64 of another", SYS_prlimit64, {2, 1}, OK, OK},
        {"sched_setscheduler of init", SYS_sched_setscheduler, {1}, P, P},
        {"sched_setscheduler of init with high bits", SYS_sched_setscheduler, {1 | HIGH}, P, P},
        {"sched_setparam of init", SYS_sched_setparam, {1}, P, P},
        {"sched_setparam of init with high bits", SYS_sched_setparam, {1 | HIGH}, P, P},
        {"sched_setattr of init", SYS_sched_setattr, {1}, P, P},
        {"sched_setattr of init with high bits", SYS_sched_setattr, {1 | HIGH}, P, P},
        {"sched_setaffinity of init", SYS_sched_setaffinity, {1}, P, P},
        {"sched_setaffinity of init with high bits", SYS_sched_setaffinity, {1 | 0xffffffff00000000ull}, P, P},
        {"sched_setaffinity of itself", SYS_sched_setaffinity, {0, 128}, OK, OK},
        {"sched_getaffinity of init", SYS_sched_getaffinity, {1}, OK, OK},
        {"setpriority of init", SYS_setpriority, {PRIO_PROCESS, 1, 19}, P, P},
        {"setpriority of init with high bits", SYS_setpriority, {PRIO_PROCESS, 1 | HIGH, 19}, P, P},
        {"setpriority of init's group", SYS_setpriority, {PRIO_PGRP, 1, 19}, P, P},
        {"setpriority of the user", SYS_setpriority, {PRIO_USER, 0, 19}, P, P},
        {"setpriority of the user with high bits", SYS_setpriority, {PRIO_USER | HIGH, 0, 19}, P, P},
        {"setpriority of itself: nice", SYS_setpriority, {PRIO_PROCESS, 0, 10}, OK, OK},
        {"ioprio_set of init", SYS_ioprio_set, {IOPRIO_WHO_PROCESS, 1}, P, P},
        {"ioprio_set of init with high bits", SYS_ioprio_set, {IOPRIO_WHO_PROCESS, 1 | HIGH}, P, P},
        {"ioprio_set of the user", SYS_ioprio_set, {IOPRIO_WHO_USER, 0}, P, P},
        {"ioprio_set of the user with high bits", SYS_ioprio_set, {IOPRIO_WHO_USER | HIGH, 0}, P, P},
        {"ioprio_set of itself: ionice", SYS_ioprio_set, {IOPRIO_WHO_PROCESS, 0}, OK, OK},
        {"setsockopt TCP_ULP", SYS_setsockopt, {3, IPPROTO_TCP, TCP_ULP}, O, O},
        {"setsockopt TCP_ULP with high bits in the level", SYS_setsockopt, {3, IPPROTO_TCP | HIGH, TCP_ULP}, O, O},
        {"setsockopt TCP_ULP with high bits in the option", SYS_setsockopt, {3, IPPROTO_TCP, TCP_ULP | HIGH}, O, O},
        {"setsockopt TCP_NODELAY", SYS_setsockopt, {3, IPPROTO_TCP, TCP_NODELAY}, OK, OK},
        {"setsockopt of that number elsewhere", SYS_setsockopt, {3, SOL_SOCKET, TCP_ULP}, OK, OK},
};

/* Calls that somebody's sandbox once refused, to the grief of asyncio, tokio, Go, Node, git, gcc, apt or
 * multiprocessing. */
static const struct call_row passing_rows[] = {
        {"read", SYS_read, {0}, OK, OK},
        {"write", SYS_write, {1}, OK, OK},
        {"openat", SYS_openat, {(uint64_t) -100}, OK, OK},
        {"execve", SYS_execve, {0}, OK, OK},
        {"execveat", SYS_execveat, {0}, OK, OK},
        {"exit_group", SYS_exit_group, {0}, OK, OK},
        {"mmap", SYS_mmap, {0}, OK, OK},
        {"mprotect", SYS_mprotect, {0, 4096, 7}, OK, OK},
        {"futex", SYS_futex, {0}, OK, OK},
        {"futex_waitv", 449, {0}, OK, OK},
        {"sendto", SYS_sendto, {0}, OK, OK},
        {"sendmsg", SYS_sendmsg, {0}, OK, OK},
        {"recvmsg", SYS_recvmsg, {0}, OK, OK},
        {"connect", SYS_connect, {0}, OK, OK},
        {"bind", SYS_bind, {0}, OK, OK},
        {"listen", SYS_listen, {0}, OK, OK},
        {"accept4", SYS_accept4, {0}, OK, OK},
        {"epoll_create1", SYS_epoll_create1, {0}, OK, OK},
        {"epoll_ctl", SYS_epoll_ctl, {0}, OK, OK},
        {"epoll_pwait", SYS_epoll_pwait, {0}, OK, OK},
        {"epoll_pwait2", 441, {0}, OK, OK},
        {"eventfd2", SYS_eventfd2, {0}, OK, OK},
        {"signalfd4", SYS_signalfd4, {0}, OK, OK},
        {"timerfd_create", SYS_timerfd_create, {0}, OK, OK},
        {"inotify_init1", SYS_inotify_init1, {0}, OK, OK},
        {"pidfd_open", 434, {0}, OK, OK},
        {"pidfd_send_signal", 424, {0}, OK, OK},
        {"close_range", 436, {0}, OK, OK},
        {"ptrace", SYS_ptrace, {0}, OK, OK},
        {"seccomp", SYS_seccomp, {1}, OK, OK},
        {"prctl", SYS_prctl, {38, 1}, OK, OK},
        {"landlock_create_ruleset", 444, {0}, OK, OK},
        {"landlock_add_rule", 445, {0}, OK, OK},
        {"landlock_restrict_self", 446, {0}, OK, OK},
        {"rseq", SYS_rseq, {0}, OK, OK},
        {"membarrier", SYS_membarrier, {0}, OK, OK},
        {"getrandom", SYS_getrandom, {0}, OK, OK},
        {"memfd_create", SYS_memfd_create, {0}, OK, OK},
        {"statx", SYS_statx, {0}, OK, OK},
        {"renameat2", SYS_renameat2, {0}, OK, OK},
        {"copy_file_range", SYS_copy_file_range, {0}, OK, OK},
        {"fchownat", SYS_fchownat, {0}, OK, OK},
        {"setuid", SYS_setuid, {0}, OK, OK},
        {"setgroups", SYS_setgroups, {0}, OK, OK},
        {"setsid", SYS_setsid, {0}, OK, OK},
        {"kill", SYS_kill, {0}, OK, OK},
        {"sched_setaffinity", SYS_sched_setaffinity, {0}, OK, OK},
        {"shmget", SYS_shmget, {0}, OK, OK},
        {"mq_open", SYS_mq_open, {0}, OK, OK},
        {"flock", SYS_flock, {0}, OK, OK},
        {"name_to_handle_at", SYS_name_to_handle_at, {0}, OK, OK},
        {"personality", SYS_personality, {0}, OK, OK},
        {"clock_gettime", SYS_clock_gettime, {0}, OK, OK},
        {"clock_nanosleep", SYS_clock_nanosleep, {0}, OK, OK},
        {"cachestat", 451, {0}, OK, OK},
        {"the newest call that is known", LAST_KNOWN, {0}, OK, OK},
#if defined(__x86_64__)
        {"open", SYS_open, {0}, OK, OK},
        {"fork", SYS_fork, {0}, OK, OK},
        {"vfork", SYS_vfork, {0}, OK, OK},
        {"epoll_wait", SYS_epoll_wait, {0}, OK, OK},
        {"arch_prctl", SYS_arch_prctl, {0}, OK, OK},
        {"poll", SYS_poll, {0}, OK, OK},
#endif
};

static const struct call_row unknown_rows[] = {
        {"a number after the last known", LAST_KNOWN + 1, {0}, S, S},
        {"a number far after", 1000, {0}, S, S},
        {"number -1", (uint32_t) -1, {0}, S, S},
        {"the most negative number", 0x80000000u, {0}, S, S},
#if defined(__x86_64__)
        {"x32: read", X32 | SYS_read, {0}, S, S},
        {"x32: execve", X32 | 520, {0}, S, S},
        {"x32: ioctl", X32 | 514, {0, TIOCSTI}, S, S},
        {"x32: keyctl by its common number", X32 | SYS_keyctl, {0}, S, S},
        {"x32: mount by its common number", X32 | SYS_mount, {0}, S, S},
        {"x32: the bare bit", X32, {0}, S, S},
        {"x32 numbers without the bit", 520, {0}, S, S},
#endif
};

static void test_call(void **state) {
        const struct call_row *row = *state;

        same_answer("closed", ask(false, NATIVE, row->nr, row->args), row->closed);
        same_answer("nested", ask(true, NATIVE, row->nr, row->args), row->nested);
}

static void test_unshare(void **state) {
        struct call_row row = *(const struct call_row *) *state, *at = &row;

        row.nr = SYS_unshare;
        test_call((void **) &at);
}

static void test_clone(void **state) {
        struct call_row row = *(const struct call_row *) *state, *at = &row;

        row.nr = SYS_clone;
        test_call((void **) &at);
}

/* The verifier's rules, and that our own reading of them can fail. */
static void test_program(void **state) {
        const bool nested = *(const bool *) *state;
        const struct filter *f = filter_for(nested);
        const struct sock_filter no_return[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
        const struct sock_filter far_jump[] = {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
                                               BPF_STMT(BPF_RET | BPF_K, 0)};
        const struct sock_filter far_load[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data)),
                                               BPF_STMT(BPF_RET | BPF_K, 0)};

        unit_same("the program", bpf_check(f->code, f->n), NULL);
        assert_non_null(bpf_check(no_return, 1));
        assert_non_null(bpf_check(far_jump, 2));
        assert_non_null(bpf_check(far_load, 2));
        assert_non_null(bpf_check(NULL, 0));
}

/* Of all known numbers, asked with zeroes, exactly those are refused that the tables name. */
static void test_nothing_else(void **state) {
        const bool nested = *(const bool *) *state;
        const uint64_t zeroes[6] = {0};

        for (uint32_t nr = 0; nr <= LAST_KNOWN; nr++) {
                uint32_t want = nr == SYS_socket || nr == SYS_socketpair ? F : ALLOW;
                char name[16];

#if defined(__x86_64__)
                /* 335 to 423 are not numbers of this ABI, 512 and up only those of x32. */
                if (nr >= 335 && nr < 424)
                        continue;
#endif
                for (size_t i = 0; i < ARRAY_SIZE(refused_rows); i++)
                        if (refused_rows[i].nr == nr)
                                want = nested ? refused_rows[i].nested : refused_rows[i].closed;
                snprintf(name, sizeof(name), "number %u", nr);
                same_answer(name, ask(nested, NATIVE, nr, zeroes), want);
        }
}

/* A foreign ABI gets nothing, whatever the number means there or here. */
static void test_foreign(void **state) {
        const bool nested = *(const bool *) *state;
        static const uint32_t foreign[] = {FOREIGN, AUDIT_ARCH_MIPS, AUDIT_ARCH_RISCV64, 0, (uint32_t) -1, NATIVE ^ 1};
        const uint64_t zeroes[6] = {0}, ones[6] = {AF_UNIX, 1, 1, 1, 1, 1};

        for (size_t a = 0; a < ARRAY_SIZE(foreign); a++)
                for (uint32_t nr = 0; nr <= LAST_KNOWN + 50; nr++) {
                        char name[48];

                        snprintf(name, sizeof(name), "architecture %#x, number %u", foreign[a], nr);
                        same_answer(name, ask(nested, foreign[a], nr, zeroes), S);
                        same_answer(name, ask(nested, foreign[a], nr, ones), S);
                }
}

/* All unknown and x32 numbers, by samples of the whole range. */
static void test_unknown(void **state) {
        const bool nested = *(const bool *) *state;
        const uint64_t zeroes[6] = {0};
        uint32_t seed = 11;

        for (int i = 0; i < 200000; i++) {
                uint32_t nr = unit_random(&seed);
                char name[48];

                nr = i < 2000 ? LAST_KNOWN + 1 + (uint32_t) i : i < 4000 ? X32 | (uint32_t) (i - 2000) : nr;
                if (nr <= LAST_KNOWN)
                        continue;
                snprintf(name, sizeof(name), "number %#x", nr);
                same_answer(name, ask(nested, NATIVE, nr, zeroes), S);
        }
}

/* The kernel takes the family and the protocol as 32-bit numbers: whatever stands above must not open what is closed.
 */
static void test_socket_bits(void **state) {
        const bool nested = *(const bool *) *state;
        static const uint64_t high[] = {0, HIGH, 2 * HIGH, 0x8000000000000000ull, 0xffffffff00000000ull};
        static const uint32_t calls[] = {SYS_socket, SYS_socketpair};

        for (size_t c = 0; c < ARRAY_SIZE(calls); c++)
                for (uint32_t family = 0; family < 300; family++)
                        for (uint32_t protocol = 0; protocol < 64; protocol++)
                                for (size_t h = 0; h < ARRAY_SIZE(high) * ARRAY_SIZE(high); h++) {
                                        const uint64_t above = high[h % ARRAY_SIZE(high)],
                                                       above_protocol = high[h / ARRAY_SIZE(high)];
                                        const uint64_t args[6] = {family | above, SOCK_RAW, protocol | above_protocol};
                                        bool fine = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
                                                    (family == AF_NETLINK && protocol == NETLINK_ROUTE);
                                        bool strange = (family == AF_INET || family == AF_INET6) &&
                                                       (protocol == IPPROTO_DCCP || protocol > IPPROTO_ICMPV6);
                                        uint32_t got = ask(nested, NATIVE, calls[c], args);

                                        /* With rubbish above, a refusal of either kind is as good. */
                                        unit_check(got == (strange ? N
                                                           : fine  ? ALLOW
                                                                   : F) ||
                                                           ((got == F || got == N) && (above || above_protocol)),
                                                   "family %#llx, protocol %#llx: %#x", (unsigned long long) args[0],
                                                   (unsigned long long) args[2], got);
                                }
}

/* Every combination of the bits that clone() and unshare() know, in a sweep and at random. */
static void test_clone_bits(void **state _unused_) {
        const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                    CLONE_NEWPID | CLONE_NEWNET;
        uint32_t seed = 5;

        for (int i = 0; i < 100000; i++) {
                /* Few bits at a time: of 32 random ones some would nearly always be a namespace's. */
                uint64_t flags = i < 64 ? 1ull << i
                                        : (uint64_t) unit_random(&seed) & unit_random(&seed) & unit_random(&seed) &
                                                  unit_random(&seed);
                const uint64_t args[6] = {flags};

                same_answer("clone", ask(false, NATIVE, SYS_clone, args), flags & namespaces ? P : ALLOW);
                same_answer("unshare", ask(false, NATIVE, SYS_unshare, args),
                            flags & (namespaces | NEWTIME) ? P : ALLOW);
                same_answer("clone, nested", ask(true, NATIVE, SYS_clone, args), ALLOW);
                same_answer("unshare, nested", ask(true, NATIVE, SYS_unshare, args), ALLOW);
        }
}

/* TIOCSTI by its lower half, whatever is above; and nothing but those two. */
static void test_ioctl_bits(void **state _unused_) {
        for (uint64_t request = 0; request < 0x10000; request++)
                for (int h = 0; h < 2; h++) {
                        const uint64_t args[6] = {0, request | (h ? 0xabcd000000000000ull : 0), request};

                        same_answer("ioctl", ask(false, NATIVE, SYS_ioctl, args),
                                    request == TIOCSTI || request == TIOCLINUX || request == TIOCSETD ? P : ALLOW);
                }
}

int main(void) {
        static const bool both[] = {false, true};
        static const struct {
                const char *name;
                unit_fn fn;
        } sweeps[] = {
                {"the program is one that the kernel takes", test_program},
                {"nothing else is refused", test_nothing_else},
                {"foreign ABIs get nothing", test_foreign},
                {"unknown numbers", test_unknown},
                {"socket families and protocols with high bits", test_socket_bits},
        };

        unit_add_rows(refused_rows, test_call);
        unit_add_rows(unshare_rows, test_unshare);
        unit_add_rows(clone_rows, test_clone);
        unit_add_rows(ioctl_rows, test_call);
        unit_add_rows(socket_rows, test_call);
        unit_add_rows(mode_rows, test_call);
        unit_add_rows(init_rows, test_call);
        unit_add_rows(passing_rows, test_call);
        unit_add_rows(unknown_rows, test_call);
        for (size_t s = 0; s < ARRAY_SIZE(sweeps); s++)
                for (size_t b = 0; b < 2; b++) {
                        char name[96];

                        snprintf(name, sizeof(name), "%s, %s", sweeps[s].name, both[b] ? "nested" : "closed");
                        unit_add(name, sweeps[s].fn, &both[b]);
                }
        unit_add("clone and unshare, bit by bit", test_clone_bits, NULL);
        unit_add("ioctl, request by request", test_ioctl_bits, NULL);
        return unit_run("backend/filter");
}
