/* Why a command was not found, for the mistakes that people make. */
#include "cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The system's, which only a bare box lacks: a program there needs its loader and libraries too. */
static bool is_of_system(const char *path) {
        return !strncmp(path, "/usr/", 5) && strncmp(path, "/usr/local/", 11) != 0;
}

/* The host has it in a directory that the box does not show. A link may lead to further directories. */
static bool hint_host(const char *command) {
        const char *path = getenv("PATH");
        char *copy = strdup(path ? path : ""), *next = copy;
        bool found = false;

        for (char *dir; copy && !found && !strchr(command, '/') && (dir = strsep(&next, ":"));) {
                char full[PATH_MAX], real[PATH_MAX], *slash;

                if (dir[0] != '/' || (size_t) snprintf(full, sizeof(full), "%s/%s", dir, command) >= sizeof(full) ||
                    access(full, X_OK) < 0 || !realpath(full, real))
                        continue;
                slash = strrchr(real, '/');
                *slash = 0;
                if (is_of_system(real))
                        cli_complain("%s: command not found in the box; the host has it in %s (try: --ro /usr)",
                                     command, real);
                else if (!strcmp(real, dir))
                        cli_complain("%s: command not found in the box; the host has it in %s, which is not attached "
                                     "(try: --ro %s)",
                                     command, dir, dir);
                else
                        cli_complain("%s: command not found in the box; the host has it in %s, a link into %s, which "
                                     "are not attached (try: --ro %s --ro %s)",
                                     command, dir, real, dir, real);
                found = true;
        }
        free(copy);
        return found;
}

bool cli_hint_not_found(const struct invocation *in, const char *command) {
        const char *near;

        if (strpbrk(command, " \t\n") && in->command && !in->command[1]) {
                cli_complain("command not found: '%s'; to run shell text, use -c '%s'", command, command);
                return true;
        }
        if (!strcmp(command, "cd")) {
                cli_complain("cd: not a program but a shell builtin; start in a directory with -C DIR, or use -c 'cd "
                             "… && …'");
                return true;
        }
        if (!strcmp(command, "sudo") || !strcmp(command, "su")) {
                cli_complain("%s: no privileges can be gained in a box; --as root is root inside it, --cow / makes "
                             "the system writable",
                             command);
                return true;
        }
        if (!strchr(command, '/') && access(command, F_OK) == 0) {
                cli_complain("%s: not a command, but a file of this directory (try: ./%s, or sh %s)", command, command,
                             command);
                return true;
        }
        if (hint_host(command))
                return true;
        near = strchr(command, '/') ? NULL : cli_suggest_verb(cli_verbs, command);
        if (!near)
                return false;
        cli_complain("%s: command not found in the box; did you mean 'hutch %s'?", command, near);
        return true;
}
