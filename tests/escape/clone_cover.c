/* Looking under a mount that hides, without removing it: a bind of the directory around it, an open_tree() clone of it that is not
 * recursive, an overlay on top of it.
 *
 * It must fail because the filter refuses all of them; where nesting is allowed the kernel refuses to copy a tree without the
 * locked mounts in it.
 *
 * setup: echo "$token" >"$ws/hidden"; mkdir "$ws/m" "$ws/u" "$ws/w"
 * options: --hide "$ws/hidden"
 * args: "$in"
 * control: userns
 * also: /--allow-nested --workspace ro
 * also: /--allow-nested --workspace ro --as root
 * also: without mount-api/--allow-nested --workspace ro */
#include "attack.h"
#include <sys/mount.h>

int main(int argc, char **argv) {
        char options[8192];
        bool found = false;
        int tree;

        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        own_mounts();
        if (getenv("HUTCH_CONTROL")) {
                close(open("cover", O_CREAT | O_WRONLY, 0644));
                if (mount("cover", "hidden", NULL, MS_BIND, NULL) < 0)
                        return UNTRIED;
        }
        if (has_secret("hidden"))
                return getenv("HUTCH_CONTROL") ? UNTRIED : ESCAPED;
        tree = (int) syscall(SYS_open_tree, AT_FDCWD, argv[1], 1 /* OPEN_TREE_CLONE */);
        note("open_tree: %s", tree < 0 ? strerror(errno) : "done");
        if (tree >= 0)
                found = has_secret_at(tree, "hidden");
        if (mount(argv[1], "m", NULL, MS_BIND, NULL) == 0)
                found = found || has_secret("m/hidden");
        else
                note("bind: %s", strerror(errno));
        snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s/u,workdir=%s/w,userxattr", argv[1], argv[1],
                 argv[1]);
        if (mount("overlay", "m", "overlay", 0, options) == 0)
                found = found || has_secret("m/hidden");
        else
                note("overlay: %s", strerror(errno));
        return found ? ESCAPED : STOPPED;
}
