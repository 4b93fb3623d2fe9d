/* See restrict.h.
 *
 * Review walks trees that a box wrote, compares them, and parses what is in them. The wall is for the case that one of
 * these has a flaw: what then runs could write where the review writes anyway, and nowhere else, and could send nothing
 * away. Reading cannot be narrowed: git's configuration, and what it includes, may lie anywhere. git and a pager are
 * started inside the same walls. Landlock does not cover modes, owners, times and attributes; nothing needs them
 * elsewhere, but a filter cannot tell paths apart. */
#include "restrict.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../base/sanitizer.h"
#include "../host/sys.h"

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#define X32 0x40000000u

static const int refused[] = {
        /* other machines and other processes */
        SYS_socket,
        SYS_connect,
        SYS_bind,
        SYS_listen,
        SYS_accept,
        SYS_accept4,
        SYS_shmget,
        SYS_shmat,
        SYS_shmctl,
        SYS_msgget,
        SYS_msgsnd,
        SYS_msgrcv,
        SYS_semget,
        SYS_semop,
        SYS_semtimedop,
        SYS_mq_open,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_pidfd_getfd,
#if !SANITIZED
        SYS_ptrace, /* the leak sanitizer looks at its own process with it */
#endif
        /* mounts and namespaces */
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_open_tree,
        SYS_move_mount,
        SYS_fsopen,
        SYS_fsconfig,
        SYS_fsmount,
        SYS_fspick,
        SYS_mount_setattr,
        SYS_setns,
        SYS_unshare,
        SYS_open_by_handle_at,
        /* the kernel */
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_kexec_load,
        SYS_quotactl,
        SYS_acct,
        SYS_swapon,
        SYS_swapoff,
        SYS_reboot,
        SYS_syslog,
};

struct program {
        struct sock_filter code[2 * ARRAY_SIZE(refused) + 64];
        size_t n;
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

static void put(struct program *p, const struct sock_filter *code, size_t n) {
        memcpy(p->code + p->n, code, n * sizeof(*code));
        p->n += n;
}

static void refuse(struct program *p, int call, int error) {
        const struct sock_filter code[] = {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) call, 0, 1), REFUSE(error)};

        put(p, code, ARRAY_SIZE(code));
}

/* `how` compares the lower half of an argument, which is all that the kernel looks at here. */
static void refuse_if(struct program *p, int call, unsigned arg, unsigned how, unsigned value) {
        const struct sock_filter code[] = {
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) call, 0, 4),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned) offsetof(struct seccomp_data, args) + 8 * arg),
                BPF_JUMP(BPF_JMP | how | BPF_K, value, 0, 1),
                REFUSE(EPERM),
                LOAD(nr),
        };

        put(p, code, ARRAY_SIZE(code));
}

static int install_filter(void) {
        static const struct sock_filter begin[] = {
                LOAD(arch),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                LOAD(nr),
                BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
                REFUSE(EPERM),
        };
        static const struct sock_filter end[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct program p = {0};
        struct sock_fprog prog = {.filter = p.code};

        put(&p, begin, ARRAY_SIZE(begin));
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
                refuse(&p, refused[i], EPERM);
        refuse(&p, SYS_clone3, ENOSYS); /* its flags cannot be seen */
        refuse_if(&p, SYS_clone, 0, BPF_JSET,
                  CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                          CLONE_NEWCGROUP);
        /* A pair of datagram sockets could send to any name. */
        refuse_if(&p, SYS_socketpair, 1, BPF_JSET, SOCK_DGRAM);
        /* What would be typed for the person. */
        refuse_if(&p, SYS_ioctl, 1, BPF_JEQ, TIOCSTI);
        refuse_if(&p, SYS_ioctl, 1, BPF_JEQ, TIOCLINUX);
        put(&p, end, ARRAY_SIZE(end));
        prog.len = (unsigned short) p.n;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0 ? -errno : 0;
}

#define FILES                                                                                                          \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |              \
         LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |                    \
         LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                 \
         LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

/* A path that does not exist is no error: nothing can be written there. */
static int allow_writing(int ruleset, const char *path, uint64_t files) {
        struct landlock_path_beneath_attr attr;
        _cleanup_(closep) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return errno == ENOENT || errno == ENOTDIR || errno == ENXIO || errno == EACCES ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode))
                return 0;
        if (!S_ISDIR(st.st_mode))
                files &= LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
        attr = (struct landlock_path_beneath_attr){.allowed_access = files, .parent_fd = fd};
        return sys_landlock_add_path(ruleset, &attr) < 0 ? -errno : 0;
}

/* Without Landlock, or in its first version, which lets no file move to another directory, the filter stands alone. */
static int install_landlock(char *const *writable) {
        int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        struct sys_landlock_ruleset_attr attr = {.handled_access_fs = FILES};
        _cleanup_(closep) int ruleset = -1;
        size_t size = sizeof(attr.handled_access_fs);
        int r;

        if (abi < 2)
                return 0;
        if (abi >= 3)
                attr.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
        if (abi >= 4) {
                attr.handled_access_net = HUTCH_LANDLOCK_NET_TCP;
                size += sizeof(attr.handled_access_net);
        }
        if (abi >= 6) {
                attr.scoped = HUTCH_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | HUTCH_LANDLOCK_SCOPE_SIGNAL;
                size += sizeof(attr.scoped);
        }
        ruleset = sys_landlock_create_ruleset(&attr, size, 0);
        if (ruleset < 0)
                return -errno;
        for (char *const *path = writable; path && *path; path++) {
                r = allow_writing(ruleset, *path, attr.handled_access_fs);
                if (r < 0)
                        return r;
        }
        r = allow_writing(ruleset, "/dev/null", attr.handled_access_fs);
        if (r >= 0)
                r = allow_writing(ruleset, "/dev/tty", attr.handled_access_fs);
        if (r < 0)
                return r;
        return sys_landlock_restrict_self(ruleset) < 0 ? -errno : 0;
}

int review_restrict(char *const *writable, struct hutch_error *err) {
        const struct rlimit none = {0, 0};
        int r = 0;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
                r = -errno;
        if (r >= 0)
                r = install_landlock(writable);
        if (r >= 0)
                r = install_filter();
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot confine the review: %s", errno_text(-r));
        return 0;
}
