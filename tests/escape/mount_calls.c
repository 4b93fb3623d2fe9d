/* Every call that mounts, of the old and the new family, and those that change the root or the namespace.
 *
 * The new family (fsopen, open_tree, move_mount, mount_setattr, open_tree_attr) is what lists of refused calls forget. It must fail
 * because the filter knows them all. */
#include "attack.h"

int main(void) {
        static const struct named_call calls[] = {
                {"mount", SYS_mount},         {"umount2", SYS_umount2},       {"pivot_root", SYS_pivot_root},
                {"chroot", SYS_chroot},       {"setns", SYS_setns},           {"fsopen", SYS_fsopen},
                {"fsconfig", SYS_fsconfig},   {"fsmount", SYS_fsmount},       {"fspick", SYS_fspick},
                {"open_tree", SYS_open_tree}, {"move_mount", SYS_move_mount}, {"mount_setattr", 442},
                {"open_tree_attr", 467},
        };

        return try_calls(calls, ARRAY_SIZE(calls));
}
