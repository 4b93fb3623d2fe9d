/* Whole reads and writes, messages with fds; see io.h. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "macro.h"

#define MOST_FDS 8

int write_all(int fd, const void *data, size_t len) {
        const char *p = data;

        while (len > 0) {
                ssize_t n = write(fd, p, len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                len -= (size_t) n;
        }
        return 0;
}

int read_whole_file(int dir, const char *path, size_t most, char **ret, size_t *ret_len) {
        _cleanup_(closep) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

        return fd < 0 ? -errno : read_whole_fd(fd, most, ret, ret_len);
}

int read_whole_fd(int fd, size_t most, char **ret, size_t *ret_len) {
        _cleanup_(freep) char *data = NULL;
        size_t len = 0, room = 0;

        for (;;) {
                ssize_t n;

                if (len + 1 >= room) {
                        size_t more = room ? room * 2 : 4096;
                        char *grown = realloc(data, more);

                        if (!grown)
                                return -ENOMEM;
                        data = grown;
                        room = more;
                }
                n = read(fd, data + len, room - len - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                len += (size_t) n;
                if (len > most)
                        return -EFBIG;
        }
        data[len] = 0;
        *ret = take_ptr(data);
        if (ret_len)
                *ret_len = len;
        return 0;
}

int fd_set_nonblocking(int fd) {
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return -errno;
        return 0;
}

int message_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds) {
        struct iovec whole = {.iov_base = (void *) data, .iov_len = len};

        return message_send_parts(sock, &whole, 1, fds, n_fds);
}

static int send_message(int sock, const struct msghdr *message) {
        while (sendmsg(sock, message, MSG_NOSIGNAL) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}

/* As many descriptors of this user as this process may open are on their way through sockets: a box may have put them
 * there. A box may open half as many as hutch (src/init/target.c), so the hard limit suffices for one message. */
static int send_with_more_files(int sock, const struct msghdr *message) {
        struct rlimit before, more;
        int r;

        if (getrlimit(RLIMIT_NOFILE, &before) < 0)
                return -errno;
        more = (struct rlimit){before.rlim_max, before.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &more) < 0)
                return -errno;
        r = send_message(sock, message);
        setrlimit(RLIMIT_NOFILE, &before);
        return r;
}

int message_send_parts(int sock, const struct iovec *parts, size_t n_parts, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int) * MOST_FDS)];
        } control = {0};
        struct msghdr message = {.msg_iov = (struct iovec *) parts, .msg_iovlen = n_parts};
        int r;

        if (n_fds > MOST_FDS)
                return -EINVAL;
        if (n_fds > 0) {
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
                memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
        }
        r = send_message(sock, &message);
        return r == -ETOOMANYREFS ? send_with_more_files(sock, &message) : r;
}

ssize_t message_receive(int sock, void *data, size_t room, int *fds, size_t n_fds, int flags) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int) * MOST_FDS)];
        } control;
        struct iovec iov = {.iov_base = data, .iov_len = room};
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
        size_t taken = 0;
        bool reset = false;
        ssize_t n;

        /* The other side closed its end with messages of ours unread: the kernel says so once, before what it sent. */
        do {
                n = recvmsg(sock, &message, flags | MSG_CMSG_CLOEXEC);
                if (n < 0 && errno == ECONNRESET && !reset) {
                        reset = true;
                        errno = EINTR;
                }
        } while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
                size_t count;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                        if (taken < n_fds)
                                fds[taken++] = fd;
                        else
                                close(fd);
                }
        }
        while (taken < n_fds)
                fds[taken++] = -1;
        if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
                for (size_t i = 0; i < n_fds; i++)
                        closep(&fds[i]);
                return -EMSGSIZE;
        }
        return n;
}
