/* See confine.h. */
#include "confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "../host/sys.h"

#define NOBODY 65534

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

int confine_keep(enum confine_capabilities which, struct hutch_error *err) {
        const uint32_t keep = which == CONFINE_NET ? 1u << CAP_NET_ADMIN | 1u << CAP_NET_BIND_SERVICE : 0;
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {{.effective = keep, .permitted = keep}};

        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || syscall(SYS_capset, &header, data) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot drop capabilities: %s", errno_text(errno));
        return 0;
}

static const int always[] = {SYS_mmap,           SYS_munmap,        SYS_mremap,         SYS_mprotect, SYS_brk,
                             SYS_madvise,        SYS_exit_group,    SYS_exit,           SYS_futex,    SYS_rt_sigreturn,
                             SYS_rt_sigprocmask, SYS_clock_gettime, SYS_clock_nanosleep};

static int filter(const int *calls, size_t n_calls, enum confine_sockets sockets) {
        struct sock_filter program[128];
        struct sock_fprog prog = {.filter = program};
        size_t n = 0, total = ARRAY_SIZE(always) + n_calls;
        const uint32_t never = ~0u, families[] = {sockets == CONFINE_INTERNET ? AF_INET : never,
                                                  sockets == CONFINE_INTERNET ? AF_INET6 : never};

        if (total + 16 > ARRAY_SIZE(program))
                return -E2BIG;
        program[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
        program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        /* Sockets of the internet at most: one of AF_UNIX would lead to services of the host. */
        program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
        program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, families[0], 2, 0);
        program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, families[1], 1, 0);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        for (size_t i = 0; i < total; i++) {
                int call = i < n_calls ? calls[i] : always[i - n_calls];

                program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) call,
                                                             (unsigned char) (total - i), 0);
        }
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        prog.len = (unsigned short) n;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0 ? -errno : 0;
}

/* A second wall behind the filter: rights on files that are handled and granted nowhere. */
static void forbid_files(void) {
        struct landlock_ruleset_attr attr = {.handled_access_fs = (1ULL << 13) - 1};
        int fd = (int) syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

        if (fd < 0)
                return;
        syscall(SYS_landlock_restrict_self, fd, 0);
        close(fd);
}

int confine_give_up_root(struct hutch_error *err) {
        if (geteuid() != 0)
                return 0;
        if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0) {
                if (errno == EPERM || errno == EINVAL)
                        return 0;
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot give up root: %s", errno_text(errno));
        }
        return 0;
}

int confine(const int *calls, size_t n, enum confine_sockets sockets, struct hutch_error *err) {
        const struct rlimit none = {0, 0};
        int r;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
            setrlimit(RLIMIT_CORE, &none) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot confine the relay: %s", errno_text(errno));
        forbid_files();
        r = filter(calls, n, sockets);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot confine the relay: %s", errno_text(-r));
        return 0;
}
