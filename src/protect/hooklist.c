/* Lists of hooks; see hooklist.h.
 *
 * YAML is read as far as is needed: a line is a key with its value, and lines that are indented deeper belong to it. A
 * key that is not known keeps its value, which then may hold back a file by mistake. */
#include "hooklist.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "../base/macro.h"

const char *hooklist_name(size_t i) {
        static const char *const names[] = {
                ".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml",
                ".overcommit.yml",         "lefthook.yml",           "lefthook.yaml",
                "lefthook.toml",           "lefthook.json",          ".lefthook.yml",
                ".lefthook.yaml",          ".lefthook.toml",         ".lefthook.json",
                "lefthook-local.yml",      "lefthook-local.yaml",    ".lefthook-local.yml",
                ".lefthook-local.yaml",    ".config/lefthook.yml",   ".config/lefthook.yaml",
                "captainhook.json",        ".lintstagedrc",          ".lintstagedrc.json",
                ".lintstagedrc.yaml",      ".lintstagedrc.yml",
        };

        return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

/* Values that run nothing. */
static bool is_of_files(const char *key, size_t len) {
        static const char *const keys[] = {"files", "exclude", "glob", "repo", "rev",    "id",   "name",
                                           "root",  "url",     "ref",  "tags", "stages", "types"};

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strlen(keys[i]) == len && strncmp(key, keys[i], len) == 0)
                        return true;
        return false;
}

/* How far a line is indented; the signs of a list count. */
static size_t indented(const char *line) {
        return strspn(line, " \t-");
}

/* The key that a line begins with; its length, 0 for none, and the length of all before the value. */
static size_t find_key(const char *line, const char **ret, size_t *ret_before) {
        const char *key = line + indented(line), *end;
        size_t len;

        key += *key == '"';
        len = strspn(key, "abcdefghijklmnopqrstuvwxyz_");
        end = key + len;
        end += *end == '"';
        end += strspn(end, " ");
        if (len == 0 || (*end != ':' && *end != '=') || !(isspace((unsigned char) end[1]) || !end[1]))
                return 0;
        *ret = key;
        *ret_before = (size_t) (end + 1 - line);
        return len;
}

void hooklist_clear(const char *name, char *text) {
        bool is_command = strstr(name, "lefthook"); /* its `files` is one */
        size_t left_out = SIZE_MAX;                 /* what is indented deeper goes as well */

        for (char *line = text, *next; *line; line = next) {
                size_t len = strcspn(line, "\n"), before = 0, named;
                const char *key = NULL;

                next = line + len + (line[len] == '\n');
                if (line[strspn(line, " \t\r")] == '\n')
                        continue;
                if (left_out != SIZE_MAX && indented(line) > left_out) {
                        memset(line, ' ', len);
                        continue;
                }
                left_out = SIZE_MAX;
                named = find_key(line, &key, &before);
                if (named == 0)
                        continue;
                if (is_of_files(key, named) && !(is_command && startswith(key, "files"))) {
                        left_out = indented(line);
                        before = len;
                }
                memset(line, ' ', before);
        }
}
