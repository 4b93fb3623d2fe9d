/* A link in the workspace that leads out of it, there when the box starts.
 *
 * A box that looked up the link on the host would show the secret. It must fail because the link is followed inside the box,
 * where its target does not exist.
 *
 * setup: ln -s "$host" "$ws/link"; ln -s "$secret" "$ws/direct"
 * args: "$in"
 * check: [ -e "$host/planted" ] */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        if (has_secret("link/secret") || has_secret("direct") || can_write("link/planted"))
                return ESCAPED;
        return STOPPED;
}
