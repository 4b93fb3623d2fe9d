/* Started by root with further groups: they must not come into the box.
 *
 * A file that only one of these groups may read lies in a directory that the box gets. It must fail because init drops them. (An
 * ordinary user cannot drop groups in a namespace of its own; hutch tells.)
 *
 * setup: mkdir -p "$host/shared/in"; echo "$token" >"$host/shared/in/file"; chown 12345:23456 "$host/shared/in" "$host/shared/in/file"
 * setup: chmod 750 "$host/shared/in"; chmod 640 "$host/shared/in/file"
 * options: --ro "$host/shared"
 * args: "$host/shared/in/file"
 * wrap: setpriv --groups 23456
 * only: root */
#include "attack.h"

int main(int argc, char **argv) {
        gid_t groups[64];
        int n = getgroups(64, groups);

        if (argc < 2)
                return UNTRIED;
        note("%d further groups", n);
        return n > 0 && has_secret(argv[1]) ? ESCAPED : n > 0 && !getenv("HUTCH_CONTROL") ? ESCAPED : STOPPED;
}
