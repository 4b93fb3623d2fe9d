/* Sockets of families other than UNIX, INET, INET6 and NETLINK: AF_ALG (crypto), AF_VSOCK (the machine's host), AF_PACKET (raw
 * frames) and forty others, each a door into kernel code; by socket() and by socketpair().
 *
 * Asked for a type that does not exist the kernel says EINVAL before it looks at the family, so EAFNOSUPPORT comes from the
 * filter. It must fail for every one of them, also with high bits in the family.
 *
 * also: /--net open
 * also: /--allow-nested --workspace rw */
#include "attack.h"

int main(void) {
        int reached = 0, tried = 0, pair[2];

        for (unsigned long family = 0; family < 64; family++) {
                const unsigned long forms[] = {family, family | 1UL << 32};

                if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
                        continue;
                for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                        tried++;
                        if (syscall(SYS_socket, forms[i], 0xe, 0) >= 0 || errno == EINVAL) {
                                note("socket of family %#lx gets through", forms[i]);
                                reached++;
                        }
                        if (syscall(SYS_socketpair, forms[i], 0xe, 0, pair) >= 0 || errno == EINVAL) {
                                note("socketpair of family %#lx gets through", forms[i]);
                                reached++;
                        }
                        for (int type = 1; type < 11; type++)
                                if (!getenv("HUTCH_CONTROL") && syscall(SYS_socket, forms[i], type, 0) >= 0)
                                        reached++;
                }
        }
        if (getenv("HUTCH_CONTROL"))
                return reached >= 2 * 40 ? ESCAPED : STOPPED; /* the kernel knows 46 families */
        note("%d tried", tried);
        return reached ? ESCAPED : STOPPED;
}
