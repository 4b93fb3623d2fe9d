/* A name of the workspace that changes between a directory and a link leading out while it is looked up.
 *
 * Whoever checks a path first and opens it afterwards can be raced. It must fail because nothing is checked: the link's target is
 * not in the box at all.
 *
 * args: "$in" "$host" */
#include "attack.h"

int main(int argc, char **argv) {
        bool found = false;
        pid_t pid;

        if (argc < 3 || chdir(argv[1]) < 0 || mkdir("real", 0755) < 0 || symlink(argv[2], "link") < 0 ||
            mkdir("d", 0755) < 0)
                return UNTRIED;
        pid = fork();
        if (pid == 0)
                for (;;)
                        if (syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "link", 2 /* RENAME_EXCHANGE */) < 0)
                                _exit(1);
        for (int i = 0; i < (getenv("HUTCH_CONTROL") ? 1000000 : 3000) && !found; i++)
                found = has_secret("d/secret") || has_secret("d/../d/secret");
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return found ? ESCAPED : STOPPED;
}
