/* The x32 way of calling: the same calls under numbers that a filter by number does not know.
 *
 * It must fail because every number that is not known is refused. Most kernels lack x32; whether the filter lets the numbers
 * through is seen all the same. */
#include "attack.h"

int main(void) {
#ifdef __x86_64__
        static const struct named_call calls[] = {
                {"x32 getpid", 0x40000000 + SYS_getpid}, {"x32 mount", 0x40000000 + SYS_mount},
                {"x32 ptrace", 0x40000000 + 521},        {"x32 ioctl", 0x40000000 + 514},
                {"x32 execveat", 0x40000000 + 545},      {"x32 keyctl", 0x40000000 + SYS_keyctl}};

        return try_calls(calls, ARRAY_SIZE(calls));
#else
        note("only x86-64 has x32");
        return UNTRIED;
#endif
}
