/* Abstract sockets of the host (X11, D-Bus, containerd had them): they have no path on which a mount could stand, and belong to the
 * network namespace.
 *
 * It must fail under --net deny because the namespace is the box's own, and under --net open because Landlock scopes them. Where
 * there is no Landlock, or one that cannot (before Linux 6.12), --net open is degraded, which --strict must refuse.
 *
 * args: "$victim"
 * check: was_hit
 * refused: yes
 * degraded: ipc before 6.12
 * also: /--net open
 * also: /--net open --as root
 * also: /--net open --strict
 * also: without mount-api/--net open
 * also: without landlock/--net open --strict
 * also: /--net open --allow-nested --workspace rw --strict */
#include "attack.h"
#include <sys/un.h>

static int reach(int type, const char *format, const char *pid) {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0), n;
        bool done;

        n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s%s", format, pid);
        done = connect(fd, (struct sockaddr *) &at,
                       (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n)) == 0;
        note("connect to @%s: %s", at.sun_path + 1, done ? "done" : strerror(errno));
        if (sendto(fd, "x", 1, MSG_NOSIGNAL, (struct sockaddr *) &at,
                   (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n)) == 1)
                done = true;
        return done;
}

int main(int argc, char **argv) {
        if (argc < 2)
                return UNTRIED;
        return reach(SOCK_STREAM, "hutch-victim-", argv[1]) + reach(SOCK_DGRAM, "hutch-victim-dgram-", argv[1])
                       ? ESCAPED
                       : STOPPED;
}
