/* Standard input is a file of the host of which the caller already read the beginning, where a secret stands.
 *
 * The box is to get what the caller's fd would still give. It must fail: a relay that opens the file anew starts at its beginning.
 *
 * setup: { echo "$token"; echo rest; } >"$host/input"; exec 7<"$host/input"; read -r line <&7
 * stdin: <&7 7<&-
 * check: exec 7<&-; false */
#include "attack.h"

int main(void) {
        char text[256];
        ssize_t n;

        if (getenv("HUTCH_CONTROL"))
                lseek(0, 0, SEEK_SET);
        n = read(0, text, sizeof(text));
        note("%zd bytes", n);
        return n > 0 && memmem(text, (size_t) n, SECRET, strlen(SECRET)) ? ESCAPED : STOPPED;
}
