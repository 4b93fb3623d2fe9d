/* A directory that holds hutch's own state is attached to read. The socket of a named session lies in it, and neither a read-only
 * mount nor Landlock stops connect(): who talks to that session's warden runs what it likes, outside.
 *
 * It must fail because the warden answers only a client that can show a file of the session's directory that is open for
 * writing, and descriptors of the warden's own namespaces: the second session is one of another state directory, which
 * the box may write to.
 *
 * setup: for home in state open; do XDG_STATE_HOME=$host/$home "$hutch" session start victim -d "$ws" --workspace none; done >"$host/log" 2>&1
 * args: "$host/state/hutch/sessions/victim" "$host/open/hutch/sessions/victim"
 * options: --ro "$host" --rw "$host/open"
 * check: for home in state open; do XDG_STATE_HOME=$host/$home "$hutch" session stop victim; done; false */
#include "attack.h"

#include <sys/un.h>

/* As in src/warden/protocol.h. */
struct request {
        uint32_t what, session;
};
enum { STATE = 5, HELLO = 64 };

#define FDS_MOST 3

static int ask(int socket, uint32_t what, const int *fds, size_t n) {
        struct request request = {what, 1};
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int) * FDS_MOST)];
        } control = {.header = {CMSG_LEN(sizeof(int) * n), SOL_SOCKET, SCM_RIGHTS}};
        struct iovec iov = {&request, sizeof(request)};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = CMSG_SPACE(sizeof(int) * n)};

        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n);
        return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* With a proof, or with what looks like one, or with none. */
static bool is_answered(const char *directory, int proof, bool alone) {
        int proofs[FDS_MOST] = {proof, open("/proc/self/ns/user", O_RDONLY), open("/proc/self/ns/pid", O_RDONLY)};
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
                ask(fd, HELLO, proofs, alone || proofs[1] < 0 || proofs[2] < 0 ? 1 : FDS_MOST);
        ask(fd, STATE, &ends[1], 1);
        close(ends[1]);
        reply = (struct pollfd){.fd = ends[0], .events = POLLIN};
        return poll(&reply, 1, 3000) > 0 && recv(ends[0], answer, sizeof(answer), MSG_DONTWAIT) > 0;
}

static bool is_open_to_us(const char *directory) {
        static const int flags[] = {O_RDWR, O_WRONLY, O_RDONLY, O_PATH, O_PATH | O_RDWR, O_RDONLY | O_APPEND};
        char path[4096];

        snprintf(path, sizeof(path), "%s/meta", directory);
        if (is_answered(directory, -1, true)) {
                note("without a proof");
                return true;
        }
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                int proof = open(path, flags[i] | O_CLOEXEC);

                if (proof < 0)
                        note("open with 0%o: %s", flags[i], strerror(errno));
                else if (is_answered(directory, proof, false) || is_answered(directory, proof, true)) {
                        note("%s, with a proof opened with 0%o", directory, flags[i]);
                        return true;
                }
        }
        /* One of its own that can be written to. */
        return is_answered(directory, open("/tmp", O_TMPFILE | O_RDWR, 0600), false);
}

int main(int argc, char **argv) {
        for (int i = 1; i < argc; i++)
                if (is_open_to_us(argv[i]))
                        return ESCAPED;
        return STOPPED;
}
