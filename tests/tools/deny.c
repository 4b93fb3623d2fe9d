/* deny SYSCALL[=ERRNO]… -- COMMAND [ARG…]: runs COMMAND with the named system calls failing (ENOSYS unless said), as they do on an older
 * kernel or under a container's filter. So each fallback of hutch can be forced on any host. */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int errno_by_name(const char *name) {
        char *end;
        long n = strtol(name, &end, 10);

        if (*name && !*end)
                return (int) n;
        for (int e = 1; e < 256; e++) {
                const char *known = strerrorname_np(e);

                if (known && !strcmp(known, name))
                        return e;
        }
        return -1;
}

static int deny(scmp_filter_ctx ctx, const char *rule) {
        const char *equals = strchr(rule, '=');
        char name[64];
        int e = equals ? errno_by_name(equals + 1) : ENOSYS, nr, r;

        snprintf(name, sizeof(name), "%.*s", equals ? (int) (equals - rule) : (int) strlen(rule), rule);
        nr = seccomp_syscall_resolve_name(name);
        if (nr == __NR_SCMP_ERROR || e <= 0) {
                fprintf(stderr, "deny: %s: no such system call or errno\n", rule);
                return -1;
        }
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((unsigned) e), nr, 0);
        if (r < 0)
                fprintf(stderr, "deny: %s: %s\n", rule, strerror(-r));
        return r;
}

int main(int argc, char **argv) {
        scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
        int i, r;

        if (!ctx)
                return 125;
        for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
                if (deny(ctx, argv[i]) < 0)
                        return 125;
        if (i + 1 >= argc) {
                fputs("usage: deny SYSCALL[=ERRNO]… -- COMMAND [ARG…]\n", stderr);
                return 125;
        }
        r = seccomp_load(ctx);
        if (r < 0) {
                fprintf(stderr, "deny: cannot load the filter: %s\n", strerror(-r));
                return 125;
        }
        seccomp_release(ctx);
        execvp(argv[i + 1], argv + i + 1);
        fprintf(stderr, "deny: %s: %s\n", argv[i + 1], strerror(errno));
        return errno == ENOENT ? 127 : 126;
}
