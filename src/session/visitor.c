/* A visitor: one more shell in the box, at a terminal, that begins with the state of the session's own. What it reports
 * when it ends becomes the state of the session's shell, which is started again with it. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../base/macro.h"

#define RECEIVED_MOST (64u << 20)
#define READS_AT_ONCE 4
#define HANG_UP_MS 2000

/* The descriptor is the box's to write: what it sends is bounded in each turn and as a whole, and past the bound it is
 * closed. */
static void receive(struct session *s, unsigned reads) {
        struct visitor *v = &s->visitor;

        while (reads-- > 0 && v->answers >= 0 && v->received.len < RECEIVED_MOST && buf_reserve(&v->received, 65536)) {
                ssize_t n = read(v->answers, v->received.data + v->received.len, 65536);

                if (n <= 0)
                        return;
                v->received.len += (size_t) n;
        }
}

static void on_answers(void *data, uint32_t events) {
        struct session *s = data;

        struct visitor *v = &s->visitor;

        receive(s, READS_AT_ONCE);
        if (v->received.len < RECEIVED_MOST && (events & EPOLLIN || !(events & EPOLLHUP)))
                return;
        watch_remove(&v->on_answers);
        if (v->received.len >= RECEIVED_MOST)
                closep(&v->answers); /* what is written from now on fails, and does not wait for a reader */
}

int session_attach(struct session *s, void (*attached)(void *user, int master),
                   void (*detached)(void *user, int status, const struct outcome *box), void *user) {
        if (s->over)
                return -EPIPE;
        if (s->visitor.state != VISITOR_NONE)
                return -EBUSY;
        s->visitor = (struct visitor){
                .state = VISITOR_WAITS, .attached = attached, .detached = detached, .user = user, .answers = -1};
        session_next(s);
        return 0;
}

/* What it runs may ignore that its terminal is gone, and commands would wait for it forever. */
static void on_hang_up(void *data) {
        struct session *s = data;

        if (s->visitor.state == VISITOR_ON)
                run_order(s->box, ORDER_DETACH, 0, NULL, 0);
}

void session_detach(struct session *s) {
        if (s->visitor.state == VISITOR_WAITS) {
                s->visitor.state = VISITOR_NONE;
                s->visitor.detached(s->visitor.user, 129, NULL);
        } else if (s->visitor.state == VISITOR_ON) {
                s->visitor.hang_up = (struct timer){.fire = on_hang_up, .data = s};
                timer_set(s->loop, &s->visitor.hang_up, HANG_UP_MS);
        }
}

static int put_beginning(struct session *s) {
        _cleanup_(buf_done) struct buf text = {0}, history = {0};
        int r;

        history_put(s, &history, NULL);
        s->shell.dialect->put_visitor(&text, s->channel.path, &history);
        if (text.oom || history.oom)
                return -ENOMEM;
        r = channel_put(&s->channel, "state", s->dump.text, s->dump.len);
        return r < 0 ? r : channel_put(&s->channel, "attach", text.data, text.len);
}

static int begin(struct session *s) {
        _cleanup_(closep) int answers = -1;
        int ends[2], r;

        r = put_beginning(s);
        if (r < 0)
                return r;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        s->visitor.answers = ends[0];
        answers = ends[1];
        fd_set_nonblocking(s->visitor.answers);
        r = loop_watch(s->loop, s->visitor.answers, EPOLLIN, on_answers, s, &s->visitor.on_answers);
        return r < 0 ? r : run_order(s->box, ORDER_ATTACH, s->shell.dialect->answers, &answers, 1);
}

void visitor_begin(struct session *s) {
        int r = begin(s);

        s->visitor.state = VISITOR_ON;
        if (r < 0)
                visitor_ended(s, 125 << 8, NULL);
}

void visitor_opened(struct session *s, int master) {
        s->visitor.attached(s->visitor.user, master);
}

/* The dump that it wrote, if it is whole. */
static const char *find_dump(const struct buf *received, size_t *ret_len) {
        static const char mark[] = {0, SHELL_MARK, 'D'};
        const char *begin = (const char *) received->data, *end;

        if (received->len <= sizeof(mark) || memcmp(begin, mark, sizeof(mark)) != 0)
                return NULL;
        end = memchr(begin + sizeof(mark), 0, received->len - sizeof(mark));
        if (!end)
                return NULL;
        *ret_len = (size_t) (end - begin) - sizeof(mark);
        return begin + sizeof(mark);
}

void visitor_ended(struct session *s, int status, const struct outcome *box) {
        const char *dump;
        size_t len;

        if (s->visitor.state != VISITOR_ON)
                return;
        receive(s, RECEIVED_MOST / 65536);
        dump = find_dump(&s->visitor.received, &len);
        if (dump) {
                dump_take(s, dump, len);
                shell_kill(s); /* it comes back with that */
                s->shell.runs = false;
        }
        visitor_free(s);
        s->visitor.state = VISITOR_NONE;
        s->visitor.detached(s->visitor.user, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), box);
        session_next(s);
}

void visitor_free(struct session *s) {
        timer_clear(s->loop, &s->visitor.hang_up);
        watch_remove(&s->visitor.on_answers);
        closep(&s->visitor.answers);
        buf_done(&s->visitor.received);
}
