/* Runs a program as if it were root, in a box that has one user without any rights.
 *
 * Package managers and the scripts of packages check their user, give files to other users and change to other users
 * themselves. A box has no other user to give a file to. A system call filter, set up here and inherited by everything
 * that the program starts, answers these calls with success and does nothing. It takes rights away and grants none: the
 * kernel treats every call that is not in the table below as for any other program.
 *
 * What is not pretended: reading a file of another user, mounting, devices, capabilities. getresuid() and getresgid()
 * return through memory that a filter cannot write, so they report the truth. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__)
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH AUDIT_ARCH_S390X
#else
#error "this architecture's number for system call filters is not known here"
#endif

/* Success, whatever the arguments. */
static const unsigned always[] = {
        SYS_getuid,   SYS_geteuid,   SYS_getgid,    SYS_getegid,   SYS_setuid, SYS_setgid,   SYS_setreuid,
        SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_fchown, SYS_fchownat,
#ifdef SYS_chown
        SYS_chown,    SYS_lchown,
#endif
};

/* Success if the mode has one of these bits: a program in the box cannot create one that runs as its owner. */
static const struct {
        unsigned call, arg;
} modes[] = {
        {SYS_fchmod, 1},
        {SYS_fchmodat, 2},
        {452 /* fchmodat2 */, 2},
#ifdef SYS_chmod
        {SYS_chmod, 1},
#endif
};

/* Success if the mode is that of a device. A fifo is created. */
static const struct {
        unsigned call, arg;
} nodes[] = {
        {SYS_mknodat, 2},
#ifdef SYS_mknod
        {SYS_mknod, 1},
#endif
};

struct program {
        struct sock_filter code[256];
        unsigned short n;
};

static void put(struct program *p, unsigned short code, unsigned char jt, unsigned char jf, unsigned k) {
        p->code[p->n++] = (struct sock_filter){code, jt, jf, k};
}

static void load(struct program *p, size_t offset) {
        put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned) offset);
}

/* The lower half of an argument: the kernel reads these as 32 bits, and every architecture here is little endian but
 * one.
 */
static size_t argument(unsigned n) {
        size_t offset = offsetof(struct seccomp_data, args) + 8 * n;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        offset += 4;
#endif
        return offset;
}

static void make(struct program *p) {
        const unsigned success = SECCOMP_RET_ERRNO | 0, number = offsetof(struct seccomp_data, nr);

        load(p, offsetof(struct seccomp_data, arch));
        put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
        put(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
        load(p, number);
        for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
                put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, always[i]);
                put(p, BPF_RET | BPF_K, 0, 0, success);
        }
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, modes[i].call);
                load(p, argument(modes[i].arg));
                put(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, S_ISUID | S_ISGID);
                put(p, BPF_RET | BPF_K, 0, 0, success);
                put(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
        }
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
                put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 6, nodes[i].call);
                load(p, argument(nodes[i].arg));
                put(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, S_IFMT);
                put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, S_IFCHR);
                put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, S_IFBLK);
                put(p, BPF_RET | BPF_K, 0, 0, success);
                put(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
        }
        put(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

int main(int argc, char *argv[]) {
        struct program p = {.n = 0};
        struct sock_fprog filter = {.filter = p.code};

        if (argc < 2) {
                fputs("usage: pretend COMMAND [ARG…] | pretend --own <LIST\n", stderr);
                return 2;
        }
        if (strcmp(argv[1], "--own") == 0)
                return own_listed(stdin) < 0 ? 1 : 0;
        make(&p);
        filter.len = p.n;
        /* Twice does no harm, but nothing either. */
        if ((getuid() != 0 || geteuid() != 0) && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                                                  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)) {
                fprintf(stderr, "pretend: cannot set up a system call filter: %s\n", strerror(errno));
                return 126;
        }
        execvp(argv[1], argv + 1);
        fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
        return errno == ENOENT ? 127 : 126;
}
