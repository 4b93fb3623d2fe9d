/* The filter as tables, compiled by libseccomp when hutch is built: this program writes filter_program.h. A start of a
 * box should not pay a third of a millisecond for a program that is always the same.
 *
 * Everything is allowed except what is listed here: isolation comes from namespaces, mounts and Landlock, and the
 * filter removes kernel surface that ordinary programs do not need. Two catch-alls cover the future and the past:
 * numbers above the last one that was reviewed are ENOSYS, and so is every call by a foreign ABI (i386, x32). Calls
 * that programs probe for and fall back from give ENOSYS, the rest EPERM. */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* file_setattr: the newest call of Linux 6.18. Numbers from 424 on are the same on every architecture. */
#define LAST_KNOWN_CALL 469

static const int refused[] = {
        /* keys are not namespaced */
        SCMP_SYS(keyctl),
        SCMP_SYS(add_key),
        SCMP_SYS(request_key),
        /* kernel surface */
        SCMP_SYS(bpf),
        SCMP_SYS(perf_event_open),
        SCMP_SYS(userfaultfd),
        SCMP_SYS(kexec_load),
        SCMP_SYS(kexec_file_load),
        SCMP_SYS(init_module),
        SCMP_SYS(finit_module),
        SCMP_SYS(delete_module),
        SCMP_SYS(create_module),
        SCMP_SYS(query_module),
        SCMP_SYS(get_kernel_syms),
        SCMP_SYS(syslog),
        SCMP_SYS(acct),
        SCMP_SYS(quotactl),
        SCMP_SYS(quotactl_fd),
        SCMP_SYS(swapon),
        SCMP_SYS(swapoff),
        SCMP_SYS(reboot),
        SCMP_SYS(nfsservctl),
        SCMP_SYS(vhangup),
        SCMP_SYS(uselib),
        SCMP_SYS(_sysctl),
        SCMP_SYS(sysfs),
        SCMP_SYS(ustat),
        SCMP_SYS(lookup_dcookie),
        SCMP_SYS(iopl),
        SCMP_SYS(ioperm),
        SCMP_SYS(modify_ldt),
        /* clocks and names of the host */
        SCMP_SYS(settimeofday),
        SCMP_SYS(stime),
        SCMP_SYS(clock_settime),
        SCMP_SYS(clock_adjtime),
        SCMP_SYS(adjtimex),
        SCMP_SYS(sethostname),
        SCMP_SYS(setdomainname),
        /* files by handle go around every path */
        SCMP_SYS(open_by_handle_at),
        SCMP_SYS(fanotify_init),
};

/* What only a nested box needs. */
static const int refused_unless_nested[] = {
        SCMP_SYS(mount),     SCMP_SYS(umount),     SCMP_SYS(umount2),       SCMP_SYS(pivot_root),     SCMP_SYS(chroot),
        SCMP_SYS(setns),     SCMP_SYS(fsopen),     SCMP_SYS(fsconfig),      SCMP_SYS(fsmount),        SCMP_SYS(fspick),
        SCMP_SYS(open_tree), SCMP_SYS(move_mount), SCMP_SYS(mount_setattr), 467 /* open_tree_attr */,
};

/* Probed for by programs that work without them. The arguments of clone3 and openat2 are in memory, where no filter
 * sees them. */
static const int missing[] = {
        SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
        SCMP_SYS(clone3),         SCMP_SYS(openat2),
};

static const uint64_t namespace_flags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                           CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

/* Terminal calls that type for the person in front of it, and the one that loads a line discipline's module. The kernel
 * looks at the lower 32 bits of the request only. */
static const uint64_t terminal_calls[] = {TIOCSTI, TIOCLINUX, TIOCSETD};

/* Leases: opening a file or changing a directory under another process's lease blocks for up to 45 seconds; in a shared
 * directory that can hit a program on the host, or hutch itself. */
#ifndef F_SETDELEG
#define F_SETDELEG 1040
#endif
static const uint64_t leases[] = {F_SETLEASE, F_SETDELEG};

enum kind { CLOSED, NESTED, LANDLOCK, LANDLOCK_OPEN, LANDLOCK_RULES };

static int add_refused(scmp_filter_ctx ctx, const int *calls, size_t n, int errnum) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t) errnum), calls[i], 0);
        return r;
}

static int add_masked(scmp_filter_ctx ctx, int call, unsigned arg, uint64_t mask, uint64_t value) {
        return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), call, 1, SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, mask, value));
}

static int add_namespace_rules(scmp_filter_ctx ctx) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(namespace_flags); i++) {
                r = add_masked(ctx, SCMP_SYS(clone), 0, namespace_flags[i], namespace_flags[i]);
                if (r >= 0)
                        r = add_masked(ctx, SCMP_SYS(unshare), 0, namespace_flags[i], namespace_flags[i]);
        }
        /* In clone() the time namespace's bit belongs to the exit signal; only unshare() takes it. */
        return r < 0 ? r : add_masked(ctx, SCMP_SYS(unshare), 0, 0x80, 0x80);
}

/* Sockets: UNIX, INET, INET6 and route NETLINK. The kernel reads the family as a 32-bit number. */
static int add_socket_rules(scmp_filter_ctx ctx, int call) {
        static const uint32_t internet[] = {AF_INET, AF_INET6};
        const uint32_t no = SCMP_ACT_ERRNO(EAFNOSUPPORT);
        int r = 0;

        for (uint32_t family = 0; r >= 0 && family < AF_NETLINK; family++)
                if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
                        r = seccomp_rule_add(ctx, no, call, 1, SCMP_CMP32(0, SCMP_CMP_EQ, family));
        if (r < 0)
                return r;
        r = seccomp_rule_add(ctx, no, call, 1, SCMP_CMP32(0, SCMP_CMP_GT, AF_NETLINK));
        if (r < 0)
                return r;
        r = seccomp_rule_add(ctx, no, call, 2, SCMP_CMP32(0, SCMP_CMP_EQ, AF_NETLINK),
                             SCMP_CMP32(2, SCMP_CMP_NE, NETLINK_ROUTE));
        /* Beyond TCP, UDP and ICMP lie protocols (DCCP, SCTP, UDP-Lite, MPTCP, SMC) that programs fall back from. */
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(internet); i++) {
                r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), call, 2,
                                     SCMP_CMP32(0, SCMP_CMP_EQ, internet[i]), SCMP_CMP32(2, SCMP_CMP_EQ, IPPROTO_DCCP));
                if (r >= 0)
                        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), call, 2,
                                             SCMP_CMP32(0, SCMP_CMP_EQ, internet[i]),
                                             SCMP_CMP32(2, SCMP_CMP_GT, IPPROTO_ICMPV6));
        }
        return r;
}

/* A file with these bits in a writable workspace would give its owner's rights (root's, if root started the box) to
 * anyone who executes it on the host. For calls that create files the mode counts only with O_CREAT or O_TMPFILE.
 * openat2 has its mode in memory. */
static const struct {
        int call;
        int flags_arg; /* -1: the mode always counts */
        unsigned mode_arg;
} mode_calls[] = {
        {SCMP_SYS(chmod), -1, 1},     {SCMP_SYS(fchmod), -1, 1}, {SCMP_SYS(fchmodat), -1, 2},
        {452 /* fchmodat2 */, -1, 2}, {SCMP_SYS(creat), -1, 1},  {SCMP_SYS(mknod), -1, 1},
        {SCMP_SYS(mknodat), -1, 2},   {SCMP_SYS(open), 1, 2},    {SCMP_SYS(openat), 2, 3},
};

static bool is_notified(int call);

static int add_mode_rules(scmp_filter_ctx ctx, bool landlock) {
        static const uint64_t bits[] = {S_ISUID, S_ISGID}, makes[] = {O_CREAT, O_TMPFILE & ~O_DIRECTORY};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(mode_calls); i++) {
                if (landlock && is_notified(mode_calls[i].call))
                        continue;
                for (size_t b = 0; r >= 0 && b < ARRAY_SIZE(bits); b++) {
                        struct scmp_arg_cmp mode =
                                SCMP_CMP64(mode_calls[i].mode_arg, SCMP_CMP_MASKED_EQ, bits[b], bits[b]);

                        if (mode_calls[i].flags_arg < 0)
                                r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), mode_calls[i].call, 1, &mode);
                        for (size_t m = 0; r >= 0 && mode_calls[i].flags_arg >= 0 && m < ARRAY_SIZE(makes); m++) {
                                struct scmp_arg_cmp both[] = {SCMP_CMP64((unsigned) mode_calls[i].flags_arg,
                                                                         SCMP_CMP_MASKED_EQ, makes[m], makes[m]),
                                                              mode};

                                r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), mode_calls[i].call, 2, both);
                        }
                }
        }
        return r;
}

/* The kernel reads these as 32-bit numbers. SCMP_CMP32 only narrows the number that is compared with: the comparison
 * itself is of all 64 bits, and one bit above them would lead around the rule. So the lower half is masked out.
 *
 * init has the target's user, so the kernel would let it be starved or crippled: its limits, priority and processors
 * are not the box's to change. It is process 1, group 1, and one of "the user's". */
static const struct {
        int call;
        unsigned arg;
        uint32_t value;
} init_calls[] = {
        {SCMP_SYS(prlimit64), 0, 1},
        {SCMP_SYS(sched_setscheduler), 0, 1},
        {SCMP_SYS(sched_setparam), 0, 1},
        {SCMP_SYS(sched_setattr), 0, 1},
        {SCMP_SYS(sched_setaffinity), 0, 1},
        {SCMP_SYS(setpriority), 1, 1},
        {SCMP_SYS(setpriority), 0, PRIO_USER},
        {SCMP_SYS(ioprio_set), 1, 1},
        {SCMP_SYS(ioprio_set), 0, 3 /* IOPRIO_WHO_USER */},
};

static int add_init_rules(scmp_filter_ctx ctx) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(init_calls); i++)
                r = add_masked(ctx, init_calls[i].call, init_calls[i].arg, UINT32_MAX, init_calls[i].value);
        return r;
}

/* ---- the landlock backend ---- */

/* Calls that change attributes of a file, which Landlock does not cover: init performs them (init/notify.c). */
static const int notified[] = {
        SCMP_SYS(chmod),       SCMP_SYS(fchmod),       SCMP_SYS(fchmodat),     452 /* fchmodat2 */, SCMP_SYS(chown),
        SCMP_SYS(lchown),      SCMP_SYS(fchown),       SCMP_SYS(fchownat),     SCMP_SYS(utime),     SCMP_SYS(utimes),
        SCMP_SYS(futimesat),   SCMP_SYS(utimensat),    SCMP_SYS(setxattr),     SCMP_SYS(lsetxattr), SCMP_SYS(fsetxattr),
        SCMP_SYS(removexattr), SCMP_SYS(lremovexattr), SCMP_SYS(fremovexattr),
};

/* And signals, where Landlock does not scope them (below ABI 6). */
static const int notified_signals[] = {SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(tgkill)};
static const int refused_signals[] = {SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo)};

/* IPC without paths, and newer variants of the notified calls. */
static const int refused_by_landlock[] = {
        SCMP_SYS(shmget), SCMP_SYS(shmat),   SCMP_SYS(shmctl),    SCMP_SYS(shmdt),      SCMP_SYS(msgget),
        SCMP_SYS(msgsnd), SCMP_SYS(msgrcv),  SCMP_SYS(msgctl),    SCMP_SYS(semget),     SCMP_SYS(semop),
        SCMP_SYS(semctl), SCMP_SYS(mq_open), SCMP_SYS(mq_unlink), SCMP_SYS(semtimedop), SCMP_SYS(name_to_handle_at),
};
/* And watches: with read permission on a directory a process could follow what happens in it. Programs poll instead. */
static const int missing_in_landlock[] = {463 /* setxattrat */,   466 /* removexattrat */, 469 /* file_setattr */,
                                          SCMP_SYS(inotify_init), SCMP_SYS(inotify_init1), SCMP_SYS(inotify_add_watch)};

/* What an ioctl on a file or directory opened for reading changes: flags, project, version, verity, encryption, label;
 * and btrfs' subvolumes, which are made and removed in a directory by its mode bits alone. */
static const uint64_t file_calls[] = {0x40086602,
                                      0x40046602,
                                      0x401c5820,
                                      0x40087602,
                                      0x40047602,
                                      0x40806685,
                                      0x800c6613,
                                      0x41009432,
                                      0x50009401 /* SNAP_CREATE */,
                                      0x5000940e /* SUBVOL_CREATE */,
                                      0x5000940f /* SNAP_DESTROY */,
                                      0x50009417 /* SNAP_CREATE_V2 */,
                                      0x50009418 /* SUBVOL_CREATE_V2 */,
                                      0x4008941a /* SUBVOL_SETFLAGS */,
                                      0x5000943f /* SNAP_DESTROY_V2 */,
                                      0xc0c89425 /* SET_RECEIVED_SUBVOL */};

/* Of other processes: only oneself, which is 0. */
static const struct {
        int call;
        unsigned arg;
} self_calls[] = {
        {SCMP_SYS(prlimit64), 0},     {SCMP_SYS(sched_setscheduler), 0}, {SCMP_SYS(sched_setparam), 0},
        {SCMP_SYS(sched_setattr), 0}, {SCMP_SYS(sched_setaffinity), 0},  {SCMP_SYS(setpriority), 1},
        {SCMP_SYS(ioprio_set), 1},    {SCMP_SYS(migrate_pages), 0},      {SCMP_SYS(move_pages), 0},
};

static bool is_notified(int call) {
        for (size_t i = 0; i < ARRAY_SIZE(notified); i++)
                if (notified[i] == call)
                        return true;
        return false;
}

static int add_notified(scmp_filter_ctx ctx, const int *calls, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int r = seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, calls[i], 0);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* With rules for the network init makes every socket, and a relay judges whom it connects to (init/sockets.c,
 * net/share.c). Every other way to name a peer, or to lead a judged connection another way, is closed. */
static const struct {
        uint32_t level, option;
} ways_around[] = {
        {IPPROTO_TCP, TCP_FASTOPEN},         {IPPROTO_TCP, TCP_FASTOPEN_CONNECT},
        {IPPROTO_TCP, TCP_REPAIR},           {IPPROTO_IP, IP_OPTIONS /* source routes */},
        {IPPROTO_IP, IP_TRANSPARENT},        {IPPROTO_IP, IP_UNICAST_IF},
        {IPPROTO_IPV6, IPV6_2292PKTOPTIONS}, {IPPROTO_IPV6, IPV6_2292RTHDR},
        {IPPROTO_IPV6, IPV6_PKTINFO},        {IPPROTO_IPV6, IPV6_HOPOPTS},
        {IPPROTO_IPV6, IPV6_RTHDRDSTOPTS},   {IPPROTO_IPV6, IPV6_RTHDR},
        {IPPROTO_IPV6, IPV6_DSTOPTS},        {IPPROTO_IPV6, IPV6_TRANSPARENT},
        {IPPROTO_IPV6, IPV6_UNICAST_IF},     {SOL_SOCKET, SO_BINDTODEVICE},
        {SOL_SOCKET, SO_BINDTOIFINDEX},      {SOL_SOCKET, SO_MARK},
};

static int add_judged_sockets(scmp_filter_ctx ctx) {
        static const int notify[] = {SCMP_SYS(socket), SCMP_SYS(connect)}, no[] = {SCMP_SYS(bind), SCMP_SYS(listen)};
        static const struct {
                int call;
                unsigned flags;
        } sends[] = {{SCMP_SYS(sendto), 3}, {SCMP_SYS(sendmsg), 2}, {SCMP_SYS(sendmmsg), 3}};
        int r = add_notified(ctx, notify, ARRAY_SIZE(notify));

        if (r >= 0)
                r = add_refused(ctx, no, ARRAY_SIZE(no), EACCES);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sends); i++) /* MSG_FASTOPEN connects */
                r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), sends[i].call, 1,
                                     SCMP_CMP64(sends[i].flags, SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, MSG_FASTOPEN));
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(ways_around); i++)
                r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(setsockopt), 2,
                                     SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, ways_around[i].level),
                                     SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, UINT32_MAX, ways_around[i].option));
        return r;
}

/* No UNIX socket, so that no service of the host can be reached; with a closed network no socket at all. Pairs of
 * stream sockets lead to no one else; a datagram socket of a pair takes any address. */
static int add_landlock_sockets(scmp_filter_ctx ctx, enum kind kind) {
        const uint32_t no = SCMP_ACT_ERRNO(EACCES);
        static const uint32_t kinds[] = {SOCK_DGRAM, SOCK_RAW};
        int r;

        if (kind == LANDLOCK)
                r = seccomp_rule_add(ctx, no, SCMP_SYS(socket), 0);
        else if (kind == LANDLOCK_RULES)
                r = add_judged_sockets(ctx);
        else {
                r = add_socket_rules(ctx, SCMP_SYS(socket));
                if (r >= 0)
                        r = seccomp_rule_add(ctx, no, SCMP_SYS(socket), 1,
                                             SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_UNIX));
        }
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(kinds); i++)
                r = seccomp_rule_add(ctx, no, SCMP_SYS(socketpair), 1,
                                     SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, 0xf, kinds[i]));
        return r;
}

/* Opening a file for reading with O_TRUNC cuts it, and access mode 3 asks for neither right. Below ABI 3 Landlock has
 * no right for that. Above it refuses, but too late on overlayfs, where containers live: the file is copied up, without
 * its content, before Landlock is asked. */
static int add_truncate_rules(scmp_filter_ctx ctx, int abi) {
        static const struct {
                int call;
                unsigned flags_arg;
        } opens[] = {{SCMP_SYS(open), 1}, {SCMP_SYS(openat), 2}};
        static const uint64_t modes[] = {O_RDONLY, O_ACCMODE};
        int r = abi < 3 ? seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(truncate), 0) : 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(opens); i++)
                for (size_t m = 0; r >= 0 && m < ARRAY_SIZE(modes); m++)
                        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), opens[i].call, 1,
                                             SCMP_CMP64(opens[i].flags_arg, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_TRUNC,
                                                        O_TRUNC | modes[m]));
        return r;
}

/* Below ABI 6 nothing scopes signals: kill() is notified, other ways are closed. */
static int add_signal_rules(scmp_filter_ctx ctx) {
        static const uint64_t owners[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};
        static const uint64_t requests[] = {FIOSETOWN, SIOCSPGRP};
        int r = add_notified(ctx, notified_signals, ARRAY_SIZE(notified_signals));

        if (r >= 0)
                r = add_refused(ctx, refused_signals, ARRAY_SIZE(refused_signals), EPERM);
        if (r >= 0) /* programs fall back to kill() */
                r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(pidfd_send_signal), 0);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(owners); i++)
                r = add_masked(ctx, SCMP_SYS(fcntl), 1, UINT32_MAX, owners[i]);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(requests); i++)
                r = add_masked(ctx, SCMP_SYS(ioctl), 1, UINT32_MAX, requests[i]);
        return r;
}

static int add_landlock_rules(scmp_filter_ctx ctx, int abi) {
        int r = add_notified(ctx, notified, ARRAY_SIZE(notified));

        if (r >= 0)
                r = add_refused(ctx, refused_by_landlock, ARRAY_SIZE(refused_by_landlock), EPERM);
        if (r >= 0)
                r = add_refused(ctx, missing_in_landlock, ARRAY_SIZE(missing_in_landlock), ENOSYS);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(file_calls); i++)
                r = add_masked(ctx, SCMP_SYS(ioctl), 1, UINT32_MAX, file_calls[i]);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(self_calls); i++)
                for (unsigned bit = 0; r >= 0 && bit < 32; bit++)
                        r = add_masked(ctx, self_calls[i].call, self_calls[i].arg, 1ull << bit, 1ull << bit);
        if (r >= 0) /* every process of the user */
                r = add_masked(ctx, SCMP_SYS(setpriority), 0, UINT32_MAX, PRIO_USER);
        if (r < 0)
                return r;
        r = add_masked(ctx, SCMP_SYS(ioprio_set), 0, UINT32_MAX, 3 /* IOPRIO_WHO_USER */);
        if (r < 0)
                return r;
        r = add_truncate_rules(ctx, abi);
        if (r < 0)
                return r;
        if (abi < 6)
                r = add_signal_rules(ctx);
        return r;
}

static int add_rules(scmp_filter_ctx ctx, enum kind kind, int abi) {
        bool nested = kind == NESTED, landlock = kind >= LANDLOCK;
        int r;

        r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
        if (r < 0)
                return r;
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
        if (r < 0)
                return r;
        r = add_refused(ctx, refused, ARRAY_SIZE(refused), EPERM);
        if (r < 0)
                return r;
        r = add_refused(ctx, missing, ARRAY_SIZE(missing), ENOSYS);
        if (r < 0)
                return r;
        if (!nested) {
                r = add_refused(ctx, refused_unless_nested, ARRAY_SIZE(refused_unless_nested), EPERM);
                if (r >= 0)
                        r = add_namespace_rules(ctx);
        }
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(terminal_calls); i++)
                r = add_masked(ctx, SCMP_SYS(ioctl), 1, UINT32_MAX, terminal_calls[i]);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(leases); i++)
                r = add_masked(ctx, SCMP_SYS(fcntl), 1, UINT32_MAX, leases[i]);
        if (r < 0)
                return r;
        r = landlock ? add_landlock_sockets(ctx, kind) : add_socket_rules(ctx, SCMP_SYS(socket));
        if (r < 0)
                return r;
        r = add_socket_rules(ctx, SCMP_SYS(socketpair));
        if (r < 0)
                return r;
        r = add_mode_rules(ctx, landlock);
        if (r < 0)
                return r;
        r = landlock ? add_landlock_rules(ctx, abi) : add_init_rules(ctx);
        if (r < 0)
                return r;
        /* A socket's upper protocols (tls, smc, espintcp) are modules that load themselves. */
        return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(setsockopt), 2,
                                SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, IPPROTO_TCP),
                                SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, UINT32_MAX, TCP_ULP));
}

static void put(const struct sock_filter *code, size_t n) {
        for (size_t i = 0; i < n; i++)
                printf("        {0x%02x, %u, %u, 0x%08x},\n", code[i].code, code[i].jt, code[i].jf, code[i].k);
}

/* The check for unknown numbers, then what libseccomp made. */
static int put_program(const char *name, enum kind kind, int abi) {
        const struct sock_filter prologue[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* seccomp_data.nr */),
                BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN_CALL, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SCMP_ACT_ERRNO(ENOSYS)),
        };
        struct sock_filter code[BPF_MAXINSNS];
        scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
        int fd = memfd_create("filter", MFD_CLOEXEC);
        ssize_t n;

        if (!ctx || fd < 0 || add_rules(ctx, kind, abi) < 0 || seccomp_export_bpf(ctx, fd) < 0)
                return -1;
        n = pread(fd, code, sizeof(code), 0);
        if (n <= 0 || n % (ssize_t) sizeof(code[0]) != 0)
                return -1;
        printf("static const struct sock_filter %s[] = {\n", name);
        put(prologue, ARRAY_SIZE(prologue));
        put(code, (size_t) n / sizeof(code[0]));
        puts("};");
        seccomp_release(ctx);
        close(fd);
        return 0;
}

int main(void) {
        seccomp_api_set(5); /* notifications, whatever the kernel that this is built on */
        if (put_program("program_closed", CLOSED, 0) < 0 || put_program("program_nested", NESTED, 0) < 0 ||
            put_program("program_landlock_1", LANDLOCK, 1) < 0 || put_program("program_landlock_3", LANDLOCK, 3) < 0 ||
            put_program("program_landlock_6", LANDLOCK, 6) < 0 || put_program("program_open_1", LANDLOCK_OPEN, 1) < 0 ||
            put_program("program_open_3", LANDLOCK_OPEN, 3) < 0 ||
            put_program("program_open_6", LANDLOCK_OPEN, 6) < 0 ||
            put_program("program_rules_1", LANDLOCK_RULES, 1) < 0 ||
            put_program("program_rules_3", LANDLOCK_RULES, 3) < 0 ||
            put_program("program_rules_6", LANDLOCK_RULES, 6) < 0) {
                fputs("filter-gen: libseccomp could not compile the table\n", stderr);
                return 1;
        }
        return 0;
}
