/* The kernel's keys belong to users, not to boxes: keyctl, add_key and request_key reach those of the caller.
 *
 * It must fail because the filter refuses all three. */
#include "attack.h"

int main(void) {
        static const struct named_call calls[] = {
                {"keyctl", SYS_keyctl}, {"add_key", SYS_add_key}, {"request_key", SYS_request_key}};
        long key = syscall(SYS_add_key, "user", "hutch-attack", "x", 1, -1 /* KEY_SPEC_THREAD_KEYRING */);

        note("add_key: %s", key < 0 ? strerror(errno) : "done");
        return key >= 0 ? ESCAPED : try_calls(calls, ARRAY_SIZE(calls));
}
