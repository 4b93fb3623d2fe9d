/* A server of the host that listens on its loopback address.
 *
 * It must fail under --net deny, the default, because the box has a loopback of its own. All spellings of the address are tried.
 *
 * args: "$tcp"
 * check: was_hit
 * also: /--allow-nested --workspace rw */
#include "attack.h"
#include <netdb.h>

int main(int argc, char **argv) {
        static const char *const names[] = {"127.0.0.1",        "127.1", "2130706433", "0.0.0.0", "0x7f.1",
                                            "::ffff:127.0.0.1", "::1",   "127.0.0.2"};

        if (argc < 2)
                return UNTRIED;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *at;
                char text[64];
                int fd;

                if (getaddrinfo(names[i], argv[1], &hint, &at) != 0)
                        continue;
                fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 && read(fd, text, sizeof(text)) > 0)
                        return ESCAPED;
                note("%s: %s", names[i], strerror(errno));
                close(fd);
        }
        return STOPPED;
}
