/* Secrets of the caller's home, by the name it has outside, by $HOME, and by what the user database says.
 *
 * It must fail because the box's home is an empty directory of its own. Under landlock the names of the host's home can be seen, and
 * only what is in the files is kept back.
 *
 * args: "$HOME" "${more[*]-}" */
#include "attack.h"

int main(int argc, char **argv) {
        const char *home = getenv("HOME");
        char path[4096];

        if (argc < 3)
                return UNTRIED;
        snprintf(path, sizeof(path), "%s/.ssh/id_rsa", argv[1]);
        if (has_secret(path))
                return ESCAPED;
        snprintf(path, sizeof(path), "%s/.ssh/id_rsa", home ? home : "/root");
        if (has_secret(path))
                return ESCAPED;
        if (open("/home/../root/.bashrc", O_RDONLY | O_CLOEXEC) >= 0 ||
            open("/root/.bashrc", O_RDONLY | O_CLOEXEC) >= 0)
                return ESCAPED;
        if (strstr(argv[2], "--isolation landlock"))
                return STOPPED;
        return access("/home/../root/.bashrc", F_OK) == 0 || access("/root/.bashrc", F_OK) == 0 ? ESCAPED : STOPPED;
}
