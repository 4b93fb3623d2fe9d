/* A read-only file deep in the writable workspace: its parent directory is renamed away and built anew, with another file in it.
 *
 * The mount goes with the old directory; on the host the path that was to stay as it is now holds the attacker's file. It must fail:
 * the directories between the workspace and a narrower rule have to be mount points too, which cannot be renamed.
 *
 * setup: mkdir -p "$ws/a/b"; echo old >"$ws/a/b/file"
 * options: --ro "$ws/a/b/file"
 * args: "$in"
 * check: [ "$(cat "$ws/a/b/file")" != old ] */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        if (rename("a/b", "a/moved") == 0 && mkdir("a/b", 0755) == 0 && can_write("a/b/file"))
                return ESCAPED;
        note("rename a/b: %s", strerror(errno));
        if (rename("a", "moved") == 0 && mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && can_write("a/b/file"))
                return ESCAPED;
        note("rename a: %s", strerror(errno));
        return STOPPED;
}
