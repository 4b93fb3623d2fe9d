/* A setuid root program and one with file capabilities, which root left in the workspace.
 *
 * It must fail because the workspace is nosuid in the box and no_new_privs is set: executed inside they gain nothing.
 *
 * setup: cp "$program" "$ws/suid"; chmod 4755 "$ws/suid"; cp "$program" "$ws/caps"; setcap cap_sys_admin,cap_dac_override+ep "$ws/caps"
 * args: "$in"
 * only: root
 * control: user */
#include "attack.h"
#include <linux/capability.h>

static bool has_capabilities(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {0};

        syscall(SYS_capget, &header, data);
        return data[0].effective || data[0].permitted;
}

static int run(const char *program) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
                execl(program, program, "report", NULL);
                _exit(3);
        }
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

int main(int argc, char **argv) {
        int suid, caps;

        if (argc < 2)
                return UNTRIED;
        if (strcmp(argv[1], "report") == 0)
                return has_capabilities() || geteuid() != getuid() ? ESCAPED : STOPPED;
        if (chdir(argv[1]) < 0)
                return UNTRIED;
        suid = run("./suid");
        caps = run("./caps");
        note("setuid: %d, capabilities: %d (0: gained)", suid, caps);
        if (getenv("HUTCH_CONTROL"))
                return suid == 0 && caps == 0 ? ESCAPED : STOPPED;
        return suid == 0 || caps == 0 ? ESCAPED : STOPPED;
}
