/* Getting capabilities: what the process has, what it can raise (capset, ambient), what an exec as uid 0 gives, securebits, uids.
 *
 * It must fail because every set is empty, the bounding set too, and securebits and no_new_privs are locked.
 *
 * control: userns
 * landlock: an ordinary user keeps the bounding set, which no_new_privs makes void
 * also: /--allow-nested --workspace rw --as root */
#include "attack.h"
#include <linux/capability.h>
#include <linux/securebits.h>

static uint64_t effective(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {0};

        syscall(SYS_capget, &header, data);
        return data[0].effective | data[0].permitted | data[0].inheritable | data[1].effective | data[1].permitted |
               data[1].inheritable;
}

int main(int argc, char **argv) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {0x1ff, 0x1ff, 0x1ff}};
        int got = 0, status = 0;
        pid_t pid;

        if (argc > 1 && strcmp(argv[1], "again") == 0)
                return effective() ? ESCAPED : STOPPED;
        if (effective()) {
                note("has capabilities");
                got++;
        }
        for (unsigned long cap = 0; cap < 41; cap++)
                if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) > 0) {
                        note("capability %lu is in the bounding set", cap);
                        got++;
                        break;
                }
        if (syscall(SYS_capset, &header, all) == 0) {
                note("capset raises");
                got++;
        }
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) == 0 ||
            prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) == 0) {
                note("the ambient set or securebits can be changed");
                got++;
        }
        if (!getenv("HUTCH_CONTROL") &&
            (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)) {
                note("no_new_privs is not set");
                got++;
        }
        /* an id that is not one's own */
        if (!getenv("HUTCH_CONTROL") && (setresuid(1, 1, 1) == 0 || setresgid(1, 1, 1) == 0)) {
                note("another id can be taken on");
                got++;
        }
        pid = fork();
        if (pid == 0) {
                if (setuid(0) < 0)
                        note("setuid(0): %s", strerror(errno));
                execl("/proc/self/exe", "again", "again", NULL);
                _exit(3);
        }
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED) {
                note("exec gives capabilities");
                got++;
        }
        return got ? ESCAPED : STOPPED;
}
