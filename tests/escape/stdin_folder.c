/* Standard input is a directory of the host: openat(0, "..") walks out of every box.
 *
 * It must fail because hutch refuses to start with a directory as a stream.
 *
 * stdin: <"$host"
 * refused: yes */
#include "attack.h"

int main(void) {
        for (int i = 0; i < 3; i++)
                if (has_secret_at(i, "secret") || has_secret_at(i, "../host/secret"))
                        return ESCAPED;
        return STOPPED;
}
