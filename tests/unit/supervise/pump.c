/* Pumps: every pair of ends, readers that are slow or gone, ends of streams. */
#include "supervise/pump.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/macro.h"
#include "unit.h"

#define MUCH 1000000 /* more than a pipe and a socket hold */

static uint8_t byte_at(size_t i) {
        return (uint8_t) (i * 31 + (i >> 8) * 7 + (i >> 16));
}

static uint8_t *make_bytes(size_t n) {
        uint8_t *bytes = malloc(n ? n : 1);

        for (size_t i = 0; i < n; i++)
                bytes[i] = byte_at(i);
        return bytes;
}

static struct loop *fresh(void) {
        struct loop *loop = NULL;

        assert_int_equal(loop_new(&loop), 0);
        return loop;
}

static void check_bytes(const struct buf *b, size_t n) {
        assert_int_equal(b->len, n);
        for (size_t i = 0; i < n; i++)
                unit_check(b->data[i] == byte_at(i), "byte %zu of %zu", i, n);
}

static bool is_open(int fd) {
        return fcntl(fd, F_GETFD) >= 0;
}

struct watch_done {
        int done, at_end;
        const char *last;
        size_t admit; /* of each chunk; SIZE_MAX: all */
        uint64_t seen;
};

static size_t on_admit(void *data, const uint8_t *bytes _unused_, size_t len) {
        struct watch_done *w = data;

        w->seen += len;
        return len < w->admit ? len : w->admit;
}

static void on_end(void *data, struct buf *last) {
        struct watch_done *w = data;

        w->at_end++;
        assert_int_equal(w->done, 0);
        if (w->last)
                buf_puts(last, w->last);
}

static void on_done(void *data) {
        struct watch_done *w = data;

        w->done++;
}

#define HOOKS(w)                                                                                                       \
        { .admit = on_admit, .at_end = on_end, .done = on_done, .data = (w) }

static void fire_nothing(void *data) {
        *(bool *) data = true;
}

/* Turns the loop for a while, or until the pump is done. */
static void turn(struct loop *loop, struct pump *pump, int rounds) {
        for (int i = 0; i < rounds && !pump_is_done(pump); i++) {
                bool late = false;
                struct timer timer = {.fire = fire_nothing, .data = &late};

                timer_set(loop, &timer, 5);
                assert_int_equal(loop_turn(loop), 0);
                timer_clear(loop, &timer);
        }
}

static void test_pipe_to_buffer(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(buf_done) struct buf got = {0};
        _cleanup_(freep) uint8_t *bytes = make_bytes(MUCH);
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        size_t written = 0;
        int ends[2];

        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(pump_new(loop,
                                  &(struct pump_input){.from = PUMP_FD,
                                                       .to = PUMP_BUFFER,
                                                       .from_fd = ends[0],
                                                       .to_fd = -1,
                                                       .into = &got,
                                                       .hooks = HOOKS(&w)},
                                  &pump),
                         0);
        while (written < MUCH) {
                ssize_t n = write(ends[1], bytes + written, MUCH - written < 70001 ? MUCH - written : 70001);

                if (n > 0)
                        written += (size_t) n;
                turn(loop, pump, 1);
        }
        turn(loop, pump, 3);
        assert_int_equal(w.done, 0); /* the writer is still there */
        close(ends[1]);
        turn(loop, pump, 10);
        assert_true(pump_is_done(pump));
        assert_int_equal(w.done, 1);
        assert_int_equal(w.at_end, 1);
        assert_false(is_open(ends[0]));
        check_bytes(&got, MUCH);
        pump_free(pump);
}

/* A reader that takes little at a time gets all of it, and meanwhile the writer is held back. */
static void test_slow_reader(void **state) {
        const bool by_socket = *(const bool *) *state;
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(buf_done) struct buf got = {0};
        _cleanup_(freep) uint8_t *bytes = make_bytes(MUCH);
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        size_t written = 0;
        int in[2], out[2];

        assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
        if (by_socket)
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out),
                                 0); /* blocking: the pump must not block */
        else
                assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
        fd_set_nonblocking(out[0]);
        assert_int_equal(
                pump_new(loop,
                         &(struct pump_input){
                                 .from = PUMP_FD, .to = PUMP_FD, .from_fd = in[0], .to_fd = out[1], .hooks = HOOKS(&w)},
                         &pump),
                0);
        /* Nobody reads: the pump takes what the pipes hold and one chunk, then stops reading. */
        for (int i = 0; i < 200; i++) {
                ssize_t n = write(in[1], bytes + written, MUCH - written);

                if (n > 0)
                        written += (size_t) n;
                turn(loop, pump, 1);
        }
        unit_check(written < MUCH, "the pump swallowed everything without a reader");
        while (got.len < MUCH) {
                uint8_t chunk[3000];
                ssize_t n = read(out[0], chunk, sizeof(chunk));

                if (n > 0)
                        buf_put(&got, chunk, (size_t) n);
                if (written < MUCH && (n = write(in[1], bytes + written, MUCH - written)) > 0)
                        written += (size_t) n;
                else if (written == MUCH && in[1] >= 0)
                        closep(&in[1]);
                turn(loop, pump, 1);
        }
        turn(loop, pump, 10);
        assert_int_equal(w.done, 1);
        assert_false(is_open(out[1]));
        check_bytes(&got, MUCH);
        pump_free(pump);
        close(out[0]);
}

/* The reader goes away: the pump ends and lets its own writer know by closing. */
static void test_reader_gone(void **state) {
        const bool by_socket = *(const bool *) *state;
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        int in[2], out[2];

        assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
        if (by_socket)
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
        else
                assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(
                pump_new(loop,
                         &(struct pump_input){
                                 .from = PUMP_FD, .to = PUMP_FD, .from_fd = in[0], .to_fd = out[1], .hooks = HOOKS(&w)},
                         &pump),
                0);
        close(out[0]);
        assert_int_equal(write(in[1], "x", 1), 1);
        turn(loop, pump, 10);
        assert_true(pump_is_done(pump));
        assert_int_equal(w.done, 1);
        assert_int_equal(write(in[1], "x", 1), -1);
        assert_int_equal(errno, EPIPE);
        pump_free(pump);
        close(in[1]);
}

/* A reader that goes while the pump waits for it to read. */
static void test_reader_gone_while_full(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(freep) uint8_t *bytes = make_bytes(MUCH);
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        int out[2];

        assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(pump_new(loop,
                                  &(struct pump_input){.from = PUMP_BUFFER,
                                                       .to = PUMP_FD,
                                                       .from_fd = -1,
                                                       .to_fd = out[1],
                                                       .bytes = bytes,
                                                       .len = MUCH,
                                                       .hooks = HOOKS(&w)},
                                  &pump),
                         0);
        turn(loop, pump, 3);
        assert_int_equal(w.done, 0);
        close(out[0]);
        turn(loop, pump, 10);
        assert_int_equal(w.done, 1);
        assert_true(pump_is_done(pump));
        pump_free(pump);
}

static void test_buffer_to_pipe(void **state) {
        const size_t size = *(const size_t *) *state;
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(buf_done) struct buf got = {0};
        _cleanup_(freep) uint8_t *bytes = make_bytes(size);
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        uint8_t chunk[4096];
        ssize_t n;
        int out[2];

        assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(pump_new(loop,
                                  &(struct pump_input){.from = PUMP_BUFFER,
                                                       .to = PUMP_FD,
                                                       .from_fd = -1,
                                                       .to_fd = out[1],
                                                       .bytes = bytes,
                                                       .len = size,
                                                       .hooks = HOOKS(&w)},
                                  &pump),
                         0);
        for (int i = 0; i < 100000; i++) {
                n = read(out[0], chunk, sizeof(chunk));
                if (n == 0)
                        break;
                if (n > 0)
                        buf_put(&got, chunk, (size_t) n);
                else
                        turn(loop, pump, 1);
        }
        assert_int_equal(n, 0); /* the end of input reaches the other side */
        check_bytes(&got, size);
        assert_int_equal(w.done, 1);
        pump_free(pump);
        close(out[0]);
}

static void test_file_to_buffer(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(buf_done) struct buf got = {0};
        _cleanup_(freep) uint8_t *bytes = make_bytes(200000);
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        char path[4200];
        int fd;

        snprintf(path, sizeof(path), "%s/input", unit_folder());
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_int_equal(write_all(fd, bytes, 200000), 0);
        lseek(fd, 0, SEEK_SET);
        assert_int_equal(pump_new(loop,
                                  &(struct pump_input){.from = PUMP_FD,
                                                       .to = PUMP_BUFFER,
                                                       .from_fd = fd,
                                                       .to_fd = -1,
                                                       .into = &got,
                                                       .hooks = HOOKS(&w)},
                                  &pump),
                         0);
        turn(loop, pump, 20);
        assert_true(pump_is_done(pump));
        check_bytes(&got, 200000);
        pump_free(pump);
}

static void test_pipe_to_file(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(freep) uint8_t *bytes = make_bytes(50000);
        _cleanup_(buf_done) struct buf got = {0};
        _cleanup_(freep) char *text = NULL;
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        char path[4200];
        size_t len;
        int in[2], fd;

        snprintf(path, sizeof(path), "%s/output", unit_folder());
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(write_all(in[1], bytes, 50000), 0);
        close(in[1]);
        assert_int_equal(
                pump_new(loop,
                         &(struct pump_input){
                                 .from = PUMP_FD, .to = PUMP_FD, .from_fd = in[0], .to_fd = fd, .hooks = HOOKS(&w)},
                         &pump),
                0);
        turn(loop, pump, 20);
        assert_int_equal(w.done, 1);
        assert_int_equal(read_whole_file(AT_FDCWD, path, MUCH, &text, &len), 0);
        buf_put(&got, text, len);
        check_bytes(&got, 50000);
        pump_free(pump);
}

/* Messages: each begins with its tag, together they are the stream, none is empty, and a full socket is waited for. */
static void test_messages(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(buf_done) struct buf got = {0};
        _cleanup_(freep) uint8_t *bytes = make_bytes(MUCH), *message = malloc(1 << 20);
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(pump_new(loop,
                                  &(struct pump_input){.from = PUMP_BUFFER,
                                                       .to = PUMP_MESSAGE,
                                                       .from_fd = -1,
                                                       .to_fd = pair[1],
                                                       .bytes = bytes,
                                                       .len = MUCH,
                                                       .tag = 0xabcd0001,
                                                       .hooks = HOOKS(&w)},
                                  &pump),
                         0);
        assert_int_equal(w.done, 0);
        for (;;) {
                ssize_t n = recv(pair[0], message, 1 << 20, MSG_DONTWAIT);
                uint32_t tag;

                if (n == 0)
                        break;
                if (n < 0) {
                        assert_int_equal(errno, EAGAIN);
                        turn(loop, pump, 1);
                        continue;
                }
                unit_check(n > 4, "a message of %zd bytes", n);
                memcpy(&tag, message, sizeof(tag));
                assert_int_equal(tag, 0xabcd0001);
                buf_put(&got, message + 4, (size_t) n - 4);
        }
        check_bytes(&got, MUCH);
        assert_int_equal(w.done, 1);
        pump_free(pump);
        close(pair[0]);
}

struct show {
        struct buf got;
        int stream;
};

static void on_see(void *user, int stream, const void *data, size_t len) {
        struct show *s = user;

        s->stream = stream;
        buf_put(&s->got, data, len);
}

/* The hooks: what is not admitted does not arrive, what is appended at the end does, after it; and a watcher sees the
 * same. */
static void test_hooks(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(buf_done) struct buf got = {0};
        struct watch_done w = {.admit = 3, .last = "[end]"};
        struct show show = {0};
        struct pump *pump = NULL;
        int in[2];

        assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(pump_new(loop,
                                  &(struct pump_input){.from = PUMP_FD,
                                                       .to = PUMP_BUFFER,
                                                       .from_fd = in[0],
                                                       .to_fd = -1,
                                                       .into = &got,
                                                       .see = on_see,
                                                       .see_user = &show,
                                                       .see_stream = 2,
                                                       .hooks = HOOKS(&w)},
                                  &pump),
                         0);
        assert_int_equal(write(in[1], "abcdef", 6), 6);
        turn(loop, pump, 2);
        w.admit = 0;
        assert_int_equal(write(in[1], "ghi", 3), 3);
        turn(loop, pump, 2);
        close(in[1]);
        turn(loop, pump, 10);
        buf_put(&got, "", 1);
        unit_same("what arrived", (char *) got.data, "abc[end]");
        assert_int_equal(w.seen, 9);
        assert_int_equal(w.done, 1);
        buf_put(&show.got, "", 1);
        unit_same("what was seen", (char *) show.got.data, "abc[end]");
        assert_int_equal(show.stream, 2);
        buf_done(&show.got);
        pump_free(pump);
}

/* Draining takes what is there and does not wait for writers that live on: what a daemon left behind holds the pipe
 * open. */
static void test_drain(void **state) {
        const size_t size = *(const size_t *) *state;
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(freep) uint8_t *bytes = make_bytes(size);
        _cleanup_(buf_done) struct buf got = {0};
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        int in[2];

        assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(write_all(in[1], bytes, size), 0);
        assert_int_equal(pump_new(loop,
                                  &(struct pump_input){.from = PUMP_FD,
                                                       .to = PUMP_BUFFER,
                                                       .from_fd = in[0],
                                                       .to_fd = -1,
                                                       .into = &got,
                                                       .hooks = HOOKS(&w)},
                                  &pump),
                         0);
        pump_drain(pump);
        pump_drain(pump);
        turn(loop, pump, 5);
        assert_true(pump_is_done(pump));
        assert_int_equal(w.done, 1);
        assert_int_equal(w.at_end, 1);
        check_bytes(&got, size);
        pump_drain(pump); /* of a finished one: nothing */
        pump_drain(NULL);
        pump_free(pump);
        close(in[1]);
}

/* Drained while its reader is slow: everything that was there arrives all the same, and then it ends. */
static void test_drain_slow(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(freep) uint8_t *bytes = make_bytes(MUCH);
        _cleanup_(buf_done) struct buf got = {0};
        struct watch_done w = {.admit = SIZE_MAX};
        struct pump *pump = NULL;
        uint8_t chunk[5000];
        size_t written = 0;
        ssize_t n;
        int in[2], out[2];

        assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(
                pump_new(loop,
                         &(struct pump_input){
                                 .from = PUMP_FD, .to = PUMP_FD, .from_fd = in[0], .to_fd = out[1], .hooks = HOOKS(&w)},
                         &pump),
                0);
        for (int i = 0; i < 50; i++) {
                n = write(in[1], bytes + written, MUCH - written);
                if (n > 0)
                        written += (size_t) n;
                turn(loop, pump, 1);
        }
        pump_drain(pump);
        assert_int_equal(w.done, 0);
        for (int i = 0; i < 10000; i++) {
                n = read(out[0], chunk, sizeof(chunk));
                if (n == 0)
                        break;
                if (n > 0)
                        buf_put(&got, chunk, (size_t) n);
                else
                        turn(loop, pump, 1);
        }
        assert_int_equal(n, 0);
        assert_int_equal(w.done, 1);
        check_bytes(&got, written);
        pump_free(pump);
        close(in[1]);
        close(out[0]);
}

static void test_free_early(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        _cleanup_(buf_done) struct buf got = {0};
        struct pump *pump = NULL;
        int in[2];

        assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(
                pump_new(loop,
                         &(struct pump_input){
                                 .from = PUMP_FD, .to = PUMP_BUFFER, .from_fd = in[0], .to_fd = -1, .into = &got},
                         &pump),
                0);
        assert_false(pump_is_done(pump));
        pump_free(pump);
        assert_false(is_open(in[0]));
        close(in[1]);
        pump_free(NULL);
        assert_true(pump_is_done(NULL));
}

int main(void) {
        static const bool pipe = false, socket = true;
        static const size_t sizes[] = {0, 1, 65535, 65536, 65537, MUCH};

        unit_add("from a pipe into memory", test_pipe_to_buffer, NULL);
        unit_add("a slow reader of a pipe", test_slow_reader, &pipe);
        unit_add("a slow reader of a socket", test_slow_reader, &socket);
        unit_add("a pipe's reader goes away", test_reader_gone, &pipe);
        unit_add("a socket's reader goes away", test_reader_gone, &socket);
        unit_add("a reader goes away while it is waited for", test_reader_gone_while_full, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                char name[64];

                snprintf(name, sizeof(name), "%zu bytes from memory into a pipe", sizes[i]);
                unit_add(name, test_buffer_to_pipe, &sizes[i]);
        }
        unit_add("from a file into memory", test_file_to_buffer, NULL);
        unit_add("from a pipe into a file", test_pipe_to_file, NULL);
        unit_add("messages", test_messages, NULL);
        unit_add("hooks", test_hooks, NULL);
        unit_add("drained with a full pipe", test_drain, &sizes[3]);
        unit_add("drained with a byte", test_drain, &sizes[1]);
        unit_add("drained with nothing", test_drain, &sizes[0]);
        unit_add("drained with a slow reader", test_drain_slow, NULL);
        unit_add("freed before its end", test_free_early, NULL);
        return unit_run("supervise/pump");
}
