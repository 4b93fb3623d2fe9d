/* Standard output is a file of the host to which the caller already wrote (`{ echo …; hutch …; } >log`).
 *
 * What stands there must stay. It must fail: a relay that opens the file anew overwrites its beginning.
 *
 * setup: exec 7>"$host/log"; echo earlier >&7
 * stdin: </dev/null >&7 2>&1 7>&-
 * check: exec 7>&-; ! grep -qx earlier "$host/log" */
#include "attack.h"

int main(void) {
        if (getenv("HUTCH_CONTROL"))
                lseek(1, 0, SEEK_SET);
        return write(1, "overwritten\n", 12) == 12 ? STOPPED : UNTRIED; /* the harness looks at the file */
}
