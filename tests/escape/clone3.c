/* clone3 keeps its flags in memory, where a filter cannot see them: a new user namespace by the back door.
 *
 * It must fail because clone3 does not exist in the box; programs then take clone. */
#include "attack.h"
#include <linux/sched.h>

int main(void) {
        struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
        pid_t pid = (pid_t) syscall(SYS_clone3, &args, sizeof(args));

        if (pid == 0)
                _exit(0);
        note("clone3: %s", pid < 0 ? strerror(errno) : "done");
        if (pid > 0) {
                waitpid(pid, NULL, 0);
                return ESCAPED;
        }
        return gets_through(SYS_clone3, "clone3") ? ESCAPED : STOPPED;
}
