/* Programs of the system that are setuid root (su, passwd, mount): started, they would run as root of the host.
 *
 * It must fail because every mount is nosuid, no_new_privs is set and host root has no id in the box.
 *
 * control: user */
#include "attack.h"

static bool runs_as_root(const char *program) {
        const char *name = strrchr(program, '/') + 1;
        unsigned real = 0, effective = ~0u;
        int started = 0; /* seen under its name twice: then its ids are those of the program */
        int ends[2];
        pid_t pid;

        if (access(program, X_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
                return false;
        if (pid == 0) { /* it waits for a password that never comes */
                dup2(ends[0], 0);
                close(1);
                close(2);
                execl(program, program, NULL);
                _exit(127);
        }
        for (int i = 0; i < 1000 && started < 2; i++) {
                char path[64], line[256];
                FILE *status;

                snprintf(path, sizeof(path), "/proc/%d/status", pid);
                status = fopen(path, "re");
                while (status && fgets(line, sizeof(line), status))
                        if (strncmp(line, "Name:\t", 6) == 0)
                                started += strncmp(line + 6, name, strlen(name)) == 0;
                        else if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
                                break;
                if (status)
                        fclose(status);
                usleep(2000);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        note("%s: real uid %u, effective uid %u, our own %u", program, real, effective, getuid());
        return effective == 0 && getuid() != 0;
}

/* As uid 0 of the box "effective uid 0" says nothing; there a capability is what would tell. */
static bool gains_capabilities(void) {
        FILE *out = popen("/usr/bin/newgrp </dev/null >/dev/null 2>&1; grep CapEff: /proc/self/status", "r");
        char line[128];
        unsigned long long caps = 0;

        while (out && fgets(line, sizeof(line), out))
                sscanf(line, "CapEff: %llx", &caps);
        if (out)
                pclose(out);
        return caps != 0;
}

int main(void) {
        static const char *const programs[] = {"/usr/bin/su", "/usr/bin/passwd"};

        for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
                if (runs_as_root(programs[i]))
                        return ESCAPED;
        return !getenv("HUTCH_CONTROL") && gains_capabilities() ? ESCAPED : STOPPED;
}
