/* A read-only file in the writable workspace that the host replaces while the box runs, as editors and `git config` do: by renaming
 * a new one over it. The kernel then removes the mount that stood on the old one.
 *
 * It must fail: after the host's rename the file must still not be writable in the box.
 *
 * setup: echo old >"$ws/file"; (for _ in {1..400}; do [ -e "$ws/go" ] && break; sleep 0.01; done; echo old >"$ws/new"; mv "$ws/new" "$ws/file"; echo >"$ws/done") 8<&- 9<&- </dev/null >/dev/null 2>&1 &
 * options: --ro "$ws/file"
 * args: "$in"
 * check: [ "$(cat "$ws/file")" != old ]
 * variants: /
 * variants: /--as root
 * variants: /--as user
 * variants: without mount-api/
 * variants: without landlock/
 * known: What the box may read */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        if (!getenv("HUTCH_CONTROL") && can_write("file"))
                return ESCAPED;
        close(open("go", O_CREAT | O_WRONLY, 0644));
        for (int i = 0; i < 500 && access("done", F_OK) < 0; i++)
                usleep(10000);
        if (access("done", F_OK) < 0)
                return UNTRIED;
        usleep(100000); /* who mends it may take a moment */
        return can_write("file") ? ESCAPED : STOPPED;
}
