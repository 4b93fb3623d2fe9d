/* hutch-scan: reads untrusted scripts and reports findings; see exchange.h.
 *
 * It is a separate program so that `hutch run` does not contain PCRE2 and libyaml, and so that the code which reads
 * hostile text is harmless: rules are read and patterns compiled first, then it gives up every system call except those
 * that read, write and allocate, and only then reads a script. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "exchange.h"
#include "scan.h"
#include "scan_rules.h"

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const int allowed[] = {SYS_read,   SYS_write,      SYS_sendto,       SYS_recvfrom, SYS_mmap,
                              SYS_munmap, SYS_mremap,     SYS_brk,          SYS_madvise,  SYS_futex,
                              SYS_exit,   SYS_exit_group, SYS_rt_sigreturn, SYS_close};

static int confine(void) {
        struct sock_filter program[ARRAY_SIZE(allowed) + 8];
        struct sock_fprog prog = {.filter = program};
        const struct rlimit memory = {(rlim_t) 2 << 30, (rlim_t) 2 << 30}, none = {0, 0}, cpu = {60, 60};
        size_t n = 0;

        program[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
        program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
                program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) allowed[i],
                                                             (unsigned char) (ARRAY_SIZE(allowed) - i), 0);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        prog.len = (unsigned short) n;
        if (setrlimit(RLIMIT_AS, &memory) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_CPU, &cpu) < 0)
                return -errno;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
                return -errno;
        return 0;
}

static int send_error(const char *why) {
        _cleanup_(buf_done) struct buf b = {0};

        wire_put_str(&b, why);
        wire_put_u32(&b, 0);
        wire_put_u64(&b, 0);
        wire_put_u32(&b, 0);
        return record_send(SCAN_SOCKET, &b);
}

/* The rules of the user, up to the empty text. Records: name, text. */
static int read_rules(struct rules *rules, struct hutch_error *err) {
        for (;;) {
                _cleanup_(freep) uint8_t *data = NULL;
                _cleanup_(freep) char *name = NULL;
                struct wire_reader r;
                const char *text;
                size_t len, text_len = 0;
                int e = record_receive(SCAN_SOCKET, &data, &len);

                if (e < 0)
                        return error_set(err, HUTCH_E_IO, e, "hutch is gone");
                r = (struct wire_reader){.data = data, .left = len};
                name = wire_get_str(&r);
                text = wire_get_bytes(&r, &text_len);
                if (r.failed || !name)
                        return error_set(err, HUTCH_E_INTERNAL, EBADMSG, "unexpected request");
                if (text_len == 0)
                        return 0;
                e = rules_add_yaml(rules, name, text, text_len, err);
                if (e < 0)
                        return e;
        }
}

static int answer(const struct rules *rules, uint32_t language, const char *name, const char *text, size_t len) {
        _cleanup_(buf_done) struct buf b = {0};
        struct scan s;
        int r;

        scan_init(&s, rules);
        scan_file(&s, name, text, len, language);
        wire_put_str(&b, NULL);
        wire_put_u32(&b, language ? language : scan_detect(name, text, len));
        wire_put_u64(&b, s.n_dropped);
        wire_put_u32(&b, (uint32_t) s.n_findings);
        for (size_t i = 0; i < s.n_findings; i++) {
                const struct finding *f = &s.findings[i];

                wire_put_str(&b, f->rule);
                wire_put_u32(&b, f->severity);
                wire_put_u32(&b, f->line);
                wire_put_u32(&b, f->column);
                wire_put_str(&b, f->excerpt);
                wire_put_str(&b, f->reason);
                wire_put_str(&b, f->fix);
                wire_put_u32(&b, f->suppressed);
                wire_put_str(&b, f->why);
        }
        r = record_send(SCAN_SOCKET, &b);
        scan_done(&s);
        return r;
}

int main(void) {
        struct rules *rules = NULL;
        struct hutch_error err = {0};
        int r = rules_new(false, &rules, &err);

        if (r >= 0)
                r = rules_add_yaml(rules, "scan-rules.yaml", scan_rules, sizeof(scan_rules) - 1, &err);
        if (r >= 0)
                r = read_rules(rules, &err);
        if (r >= 0)
                r = rules_finish(rules, &err);
        if (r < 0)
                return send_error(err.message) < 0;
        r = confine();
        if (r < 0)
                return send_error("cannot confine the scanner") < 0;
        for (;;) {
                _cleanup_(freep) uint8_t *data = NULL;
                _cleanup_(freep) char *name = NULL;
                struct wire_reader in;
                const char *text;
                size_t len, text_len = 0;
                uint32_t language;

                if (record_receive(SCAN_SOCKET, &data, &len) < 0)
                        return 0;
                in = (struct wire_reader){.data = data, .left = len};
                language = wire_get_u32(&in);
                name = wire_get_str(&in);
                text = wire_get_bytes(&in, &text_len);
                if (in.failed || answer(rules, language, name, text_len ? text : "", text_len) < 0)
                        return 1;
        }
}
