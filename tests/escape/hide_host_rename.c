/* A hidden file of the workspace that the host replaces while the box runs, as editors do: by renaming a new one over it. The
 * kernel then removes the mount that hid the old one, until the warden masks the new one.
 *
 * It must fail: the new file is as secret as the old one. What the box reads in the millisecond before is documented
 * (hutch-security(7)) and not tried.
 *
 * setup: echo "$token" >"$ws/hidden"; (for _ in {1..400}; do [ -e "$ws/go" ] && break; sleep 0.01; done; echo "$token" >"$host/new"; mv "$host/new" "$ws/hidden"; echo >"$ws/done") 8<&- 9<&- </dev/null >/dev/null 2>&1 &
 * options: --hide "$ws/hidden"
 * args: "$in"
 * variants: /
 * variants: /--as root
 * variants: /--as user
 * variants: without landlock/ */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        if (!getenv("HUTCH_CONTROL") && has_secret("hidden"))
                return ESCAPED;
        close(open("go", O_CREAT | O_WRONLY, 0644));
        for (int i = 0; i < 500 && access("done", F_OK) < 0; i++)
                usleep(10000);
        if (access("done", F_OK) < 0)
                return UNTRIED;
        usleep(300000);
        for (int i = 0; i < 10; i++) {
                if (has_secret("hidden"))
                        return ESCAPED;
                usleep(10000);
        }
        return STOPPED;
}
