/* io_uring does file and network calls that no filter sees.
 *
 * It must fail because the filter says that the kernel has no such call. */
#include "attack.h"

int main(void) {
        char params[120] = {0};
        int fd = (int) syscall(SYS_io_uring_setup, 4, params);
        static const struct named_call calls[] = {{"io_uring_setup", SYS_io_uring_setup},
                                                  {"io_uring_enter", SYS_io_uring_enter},
                                                  {"io_uring_register", SYS_io_uring_register}};

        note("io_uring_setup: %s", fd < 0 ? strerror(errno) : "done");
        if (fd >= 0)
                return ESCAPED;
        return try_calls(calls, ARRAY_SIZE(calls));
}
