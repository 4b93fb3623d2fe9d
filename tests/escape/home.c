/* Secrets of the caller's home, by the name it has outside, by $HOME, and by what the user database says.
 *
 * It must fail because the box's home is an empty folder of its own.
 *
 * args: "$HOME" */
#include "attack.h"

int main(int argc, char **argv) {
        const char *home = getenv("HOME");
        char path[4096];

        if (argc < 2)
                return UNTRIED;
        snprintf(path, sizeof(path), "%s/.ssh/id_rsa", argv[1]);
        if (has_secret(path))
                return ESCAPED;
        snprintf(path, sizeof(path), "%s/.ssh/id_rsa", home ? home : "/root");
        if (has_secret(path))
                return ESCAPED;
        return access("/home/../root/.bashrc", F_OK) == 0 || access("/root/.bashrc", F_OK) == 0 ? ESCAPED : STOPPED;
}
