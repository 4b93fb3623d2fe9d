/* Calls that were not known when the filter was written, and numbers that no kernel has.
 *
 * A list of what is refused grows old. It must fail because every number above the last known one is refused. */
#include "attack.h"

int main(void) {
        static const struct named_call calls[] = {{"470", 470},
                                                  {"480", 480},
                                                  {"500", 500},
                                                  {"511", 511},
                                                  {"512", 512},
                                                  {"547", 547},
                                                  {"1000", 1000},
                                                  {"0x3fffffff", 0x3fffffff},
                                                  {"0x7fffffff", 0x7fffffff}};

        return try_calls(calls, ARRAY_SIZE(calls));
}
