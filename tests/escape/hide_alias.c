/* Hidden files and directories (--hide) by every other name they have: the workspace's two places, a link to them, /proc/self/root,
 * a file named by a link in the rule itself.
 *
 * It must fail because a rule is laid on the file itself, wherever an attachment shows it.
 *
 * setup: mkdir "$ws/d" "$host/more"; for f in "$ws/hidden" "$ws/d/deep" "$ws/real" "$host/more/x"; do echo "$token" >"$f"; done; ln -s real "$ws/named"
 * setup: ln -s hidden "$ws/alias"; ln -s d "$ws/e"
 * options: --rw "$host/more:/mnt/more" --hide "$ws/hidden" --hide "$ws/d/deep" --hide "$ws/named" --hide "$host/more/x"
 * args: "$in" "$ws" "/workspace/$leaf" /workspace /mnt/more "$host/more" */
#include "attack.h"

int main(int argc, char **argv) {
        static const char *const names[] = {"hidden",        "alias", "d/deep", "e/deep",
                                            "./d/../d/deep", "real",  "named",  "x"};
        char path[8192];

        for (int i = 1; i < argc; i++)
                for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
                        snprintf(path, sizeof(path), "%s/%s", argv[i], names[n]);
                        if (has_secret(path))
                                return ESCAPED;
                        snprintf(path, sizeof(path), "/proc/self/root%s/%s", argv[i], names[n]);
                        if (has_secret(path))
                                return ESCAPED;
                }
        return STOPPED;
}
