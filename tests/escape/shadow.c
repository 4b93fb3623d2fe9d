/* Started by root: files that only root may read, in directories that every box sees.
 *
 * Without capabilities uid 0 is still their owner. It must fail because the box runs under an id of the host that owns nothing.
 *
 * only: root
 * also: /--allow-nested --workspace rw --as root */
#include "attack.h"

int main(void) {
        static const char *const files[] = {"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/security/opasswd",
                                            "/etc/sudoers"};
        int opened = 0;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                int fd = open(files[i], O_RDONLY | O_CLOEXEC);
                char text[65536];
                ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

                if (n <= 0)
                        continue;
                text[n] = 0;
                /* A box whose system is layers of its own has lists of accounts of its own, without the system's. */
                if (i < 3 && !strstr(text, "\ndaemon:"))
                        continue;
                note("%s is the host's", files[i]);
                opened++;
        }
        return opened ? ESCAPED : STOPPED;
}
