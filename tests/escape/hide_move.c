/* A hidden file brought out from under its cover: renamed, linked, exchanged, unlinked; its parent renamed away; its mode changed.
 *
 * It must fail because a mount point cannot be renamed or removed, goes along when its parent moves, and its cover is read-only.
 *
 * setup: mkdir -p "$ws/a/b"; echo "$token" >"$ws/a/b/hidden"; mkdir "$ws/f"; echo "$token" >"$ws/f/x"
 * options: --hide "$ws/a/b/hidden" --hide "$ws/f"
 * args: "$in" */
#include "attack.h"

int main(int argc, char **argv) {
        static const char *const names[] = {"a/b/hidden", "a/b/2",      "a/b/3", "a/b/4", "a/c/hidden",
                                            "g/c/hidden", "g/b/hidden", "f/x",   "h/x",   "k/x"};

        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        note("chmod: %s", chmod("a/b/hidden", 0644) < 0 ? strerror(errno) : "done");
        note("rename: %s", rename("a/b/hidden", "a/b/2") < 0 ? strerror(errno) : "done");
        note("link: %s", link("a/b/hidden", "a/b/3") < 0 ? strerror(errno) : "done");
        close(open("a/b/4", O_CREAT | O_WRONLY, 0644));
        note("exchange: %s",
             syscall(SYS_renameat2, AT_FDCWD, "a/b/4", AT_FDCWD, "a/b/hidden", 2) < 0 ? strerror(errno) : "done");
        note("rename parent: %s", rename("a/b", "a/c") < 0 ? strerror(errno) : "done");
        note("rename its parent: %s", rename("a", "g") < 0 ? strerror(errno) : "done");
        note("rename directory: %s", rename("f", "h") < 0 ? strerror(errno) : "done");
        mkdir("k", 0755);
        note("exchange directory: %s",
             syscall(SYS_renameat2, AT_FDCWD, "k", AT_FDCWD, "f", 2) < 0 ? strerror(errno) : "done");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (has_secret(names[i]))
                        return ESCAPED;
        return STOPPED;
}
