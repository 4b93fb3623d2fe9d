/* See commands.h. */
#include "commands.h"

#include <errno.h>
#include <fnmatch.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "default_commands.h"

/* Where a program that is allowed by its name is looked for. */
static const char *const program_dirs[] = {"/usr/bin",   "/bin",           "/usr/sbin",      "/sbin",
                                           "/usr/games", "/usr/local/bin", "/usr/local/sbin"};

int check_command(const char *entry, struct hutch_error *err) {
        const char *slash = strchr(entry, '/');

        if (!entry[0] || entry[strcspn(entry, " \t\n")])
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s' is not the name of a command", entry);
        if (slash && entry[0] != '/')
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "'%s' is neither a name nor an absolute path: write '%s', or the whole path", entry,
                                 path_basename(entry)[0] ? path_basename(entry) : "NAME");
        if (slash && strpbrk(entry, "*?["))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s': patterns work in names, not in paths",
                                 entry);
        return 0;
}

bool policy_has_commands(const struct hutch_policy *p) {
        return policy_is_set(p, KEY_COMMANDS_ALLOW) || policy_is_set(p, KEY_COMMANDS_DENY);
}

static int add_default(char ***list) {
        for (const char *line = default_commands; *line;) {
                size_t n = strcspn(line, "\n");
                _cleanup_(freep) char *name = strndup(line, n);

                if (!name)
                        return -ENOMEM;
                if (name[0] && name[0] != '#' && strv_push(list, name) < 0)
                        return -ENOMEM;
                line += n + (line[n] == '\n');
        }
        return 0;
}

int policy_allowed_commands(const struct hutch_policy *p, char ***ret) {
        _cleanup_(strv_freep) char **list = NULL;

        for (char **entry = policy_list(p, KEY_COMMANDS_ALLOW); entry && *entry; entry++)
                if ((streq(*entry, "default") ? add_default(&list) : strv_push(&list, *entry)) < 0)
                        return -ENOMEM;
        *ret = take_ptr(list);
        return 0;
}

static bool is_in_program_dir(const char *path) {
        size_t n = (size_t) (path_basename(path) - path);

        for (size_t i = 0; i < ARRAY_SIZE(program_dirs); i++)
                if (strlen(program_dirs[i]) == n - 1 && memcmp(program_dirs[i], path, n - 1) == 0)
                        return true;
        return false;
}

bool command_matches(const char *entry, const char *command) {
        size_t n = strlen(entry);

        if (n > 0 && entry[n - 1] == '/')
                return strncmp(entry, command, n) == 0 && command[n];
        if (strchr(entry, '/'))
                return streq(entry, command);
        return fnmatch(entry, path_basename(command), FNM_PERIOD) == 0;
}

bool policy_allows_command(const struct hutch_policy *p, const char *command, const char **ret_rule) {
        _cleanup_(strv_freep) char **allowed = NULL;

        if (ret_rule)
                *ret_rule = NULL;
        for (char **entry = policy_list(p, KEY_COMMANDS_DENY); entry && *entry; entry++)
                if (command_matches(*entry, command)) {
                        if (ret_rule)
                                *ret_rule = *entry;
                        return false;
                }
        if (!policy_is_set(p, KEY_COMMANDS_ALLOW))
                return true;
        if (policy_allowed_commands(p, &allowed) < 0)
                return false;
        for (char **entry = allowed; entry && *entry; entry++)
                if (command_matches(*entry, command) &&
                    (strchr(*entry, '/') || !strchr(command, '/') || is_in_program_dir(command)))
                        return true;
        return false;
}
