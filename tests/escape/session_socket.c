/* A directory that holds hutch's own state is attached to read. The socket of a named session lies in it, and neither a read-only
 * mount nor Landlock stops connect(): who talks to that session's warden runs what it likes, outside.
 *
 * It must fail because the warden hears nobody who cannot show a file of the session's directory that is open for writing.
 *
 * setup: export XDG_STATE_HOME=$host/state; "$hutch" session start victim -d "$ws" --workspace none >"$host/log" 2>&1; unset XDG_STATE_HOME
 * args: "$host/state/hutch/sessions/victim"
 * options: --ro "$host"
 * check: XDG_STATE_HOME=$host/state "$hutch" session stop victim; false */
#include "attack.h"

#include <sys/un.h>

/* As in src/warden/protocol.h. */
struct request {
        uint32_t what, session;
};
enum { STATE = 5, HELLO = 64 };

static int ask(int socket, uint32_t what, int fd) {
        struct request request = {what, 1};
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
        struct iovec iov = {&request, sizeof(request)};
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* With a proof, or with what looks like one, or with none. */
static bool is_answered(const char *directory, int proof) {
        struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), ends[2];
        struct pollfd reply;
        char answer[1024];

        if (chdir(directory) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0 ||
            connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0) {
                note("connect: %s", strerror(errno));
                return false;
        }
        if (proof >= 0)
                ask(fd, HELLO, proof);
        ask(fd, STATE, ends[1]);
        close(ends[1]);
        reply = (struct pollfd){.fd = ends[0], .events = POLLIN};
        return poll(&reply, 1, 3000) > 0 && recv(ends[0], answer, sizeof(answer), MSG_DONTWAIT) > 0;
}

int main(int argc, char **argv) {
        static const int flags[] = {O_RDWR, O_WRONLY, O_RDONLY, O_PATH, O_PATH | O_RDWR, O_RDONLY | O_APPEND};
        const char *directory = argc > 1 ? argv[1] : ".";
        char path[4096];

        snprintf(path, sizeof(path), "%s/meta", directory);
        if (is_answered(directory, -1)) {
                note("without a proof");
                return ESCAPED;
        }
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                int proof = open(path, flags[i] | O_CLOEXEC);

                if (proof < 0)
                        note("open with 0%o: %s", flags[i], strerror(errno));
                else if (is_answered(directory, proof)) {
                        note("with a proof opened with 0%o", flags[i]);
                        return ESCAPED;
                }
        }
        /* One of its own that can be written to. */
        return is_answered(directory, open("/tmp", O_TMPFILE | O_RDWR, 0600)) ? ESCAPED : STOPPED;
}
