/* Started by root: files that only root may read, in folders that every box sees.
 *
 * Without capabilities uid 0 is still their owner. It must fail because the box runs under an id of the host that owns nothing.
 *
 * only: root
 * also: /--allow-nested --as root */
#include "attack.h"

int main(void) {
        static const char *const files[] = {"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/security/opasswd",
                                            "/etc/sudoers"};
        int opened = 0;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                int fd = open(files[i], O_RDONLY | O_CLOEXEC);

                if (fd >= 0)
                        note("%s opens", files[i]);
                opened += fd >= 0;
        }
        return opened ? ESCAPED : STOPPED;
}
