/* What was printed before anybody listened: by a builtin in front of the shell's answer, by a program that was faster,
 * and what builtins complain of. It is sent at once, as long as it is little. */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../base/io.h"
#include "../base/macro.h"

#define FETCHES 64 /* whoever else writes there must not keep the warden from everything else */

static void hand_out(struct command *c, int stream, const uint8_t *bytes, size_t len) {
        uint32_t tag = (uint32_t) stream;

        for (size_t n; len > 0; bytes += n, len -= n) {
                struct iovec parts[] = {{&tag, sizeof(tag)}, {(void *) bytes, 0}};
                struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

                n = len < FETCH_MOST ? len : FETCH_MOST;
                parts[1].iov_len = budget_admit(&c->budget, stream, bytes, n);
                if (parts[1].iov_len > 0 && sendmsg(c->in.messages, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                        c->outcome.messages++;
        }
}

/* What was there when it was looked at, and no more: somebody may go on writing faster than it is read. */
static void fetch(struct command *c, int stream, int fd, int left) {
        uint8_t bytes[FETCH_MOST];
        ssize_t n;

        for (; left > 0; left -= (int) n) {
                n = read(fd, bytes, (size_t) left < sizeof(bytes) ? (size_t) left : sizeof(bytes));
                if (n <= 0)
                        return;
                hand_out(c, stream, bytes, (size_t) n);
        }
}

/* The names of folders have no end. What is too much to be sent at once, or for the cap, is a file's content. */
static int attend_printed(struct command *c) {
        const struct buf *printed = &c->s->printed;
        int r = printed->oom ? -ENOMEM : 0;

        c->out[0] = memfd_create("printed", MFD_CLOEXEC);
        if (c->out[0] < 0)
                return -errno;
        if (r >= 0)
                r = write_all(c->out[0], printed->data, printed->len);
        if (r >= 0 && lseek(c->out[0], 0, SEEK_SET) < 0)
                r = -errno;
        if (r >= 0)
                r = command_open_output(c, 1);
        closep(&c->out[0]);
        return r;
}

void fetch_builtin(struct command *c) {
        struct session *s = c->s;
        int unread = 0, r = 0;

        if (s->printed.oom || s->printed.len > FETCH_MOST)
                r = attend_printed(c);
        else
                hand_out(c, 1, s->printed.data, s->printed.len);
        if (r < 0) {
                error_set(&c->outcome.error, HUTCH_E_IO, r, "cannot carry the output: %s", errno_text(-r));
                c->outcome.exit_code = 125;
        }
        if (c->words == WORDS_BUILTIN && !c->pumps[2] && ioctl(c->out[1], FIONREAD, &unread) >= 0)
                fetch(c, 2, c->out[1], unread);
        buf_done(&s->printed);
}

/* A program that was over before anybody listened: what it printed is in its FIFOs. */
void fetch_program(struct command *c) {
        int unread[2] = {FEW_BYTES, FEW_BYTES};

        for (int i = 0; i < 2; i++)
                (void) ioctl(c->out[i], FIONREAD, &unread[i]);
        if (unread[0] + unread[1] > FEW_BYTES) {
                command_attend(c);
                return;
        }
        for (int i = 0; i < 2; i++)
                fetch(c, i + 1, c->out[i], unread[i]);
}

/* Other texts find these FIFOs, too, if they search for them. */
void fetch_forget(struct session *s) {
        uint8_t rest[FETCH_MOST];

        for (int i = 0; i < 2 && !s->shared; i++)
                for (int most = FETCHES; most > 0 && s->streams[i] >= 0 && read(s->streams[i], rest, sizeof(rest)) > 0;)
                        most--;
}
