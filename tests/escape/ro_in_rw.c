/* A read-only file and directory (--ro) inside the writable workspace, tried by both names that the workspace has in a box.
 *
 * It must fail because the rule is laid wherever the workspace shows the path.
 *
 * setup: mkdir "$ws/directory"; echo old >"$ws/directory/file"; echo old >"$ws/file"
 * options: --ro "$ws/directory" --ro "$ws/file"
 * args: "$in" "$ws" "/workspace/$leaf" /workspace
 * check: [ "$(cat "$ws/directory/file" "$ws/file")" != old$'\n'old ] || [ -e "$ws/directory/new" ] */
#include "attack.h"

int main(int argc, char **argv) {
        static const char *const names[] = {"directory/file", "file", "directory/new", "directory/../directory/file",
                                            "./file"};
        int done = 0, seen = 0;

        for (int i = 1; i < argc; i++) {
                if (chdir(argv[i]) < 0 || access("file", F_OK) < 0)
                        continue;
                seen++;
                for (size_t n = 0; n < ARRAY_SIZE(names); n++)
                        done += can_write(names[n]);
                done += unlink("file") == 0 || rename("directory", "other") == 0 || rename("file", "other") == 0;
        }
        return seen == 0 ? UNTRIED : done ? ESCAPED : STOPPED;
}
