/* Whole reads and writes, and messages that carry fds. */
#include "base/io.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "unit.h"

static void make_file(const char *name, const void *data, size_t len) {
        char path[4200];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", unit_folder(), name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, data, len), 0);
        close(fd);
}

static void test_read(void **state) {
        size_t size = *(const size_t *) *state, len = 0;
        _cleanup_(freep) char *data = malloc(size + 1), *got = NULL;
        int dir = open(unit_folder(), O_PATH | O_CLOEXEC);
        uint32_t seed = 5;

        for (size_t i = 0; i < size; i++)
                data[i] = (char) unit_random(&seed);
        make_file("whole", data, size);
        assert_int_equal(read_whole_file(dir, "whole", size, &got, &len), 0);
        assert_int_equal(len, size);
        assert_memory_equal(got, data, size);
        assert_int_equal(got[len], 0);
        free(got);
        got = NULL;
        assert_int_equal(read_whole_file(dir, "whole", size, &got, NULL), 0);
        free(got);
        got = NULL;
        if (size > 0)
                assert_int_equal(read_whole_file(dir, "whole", size - 1, &got, &len), -EFBIG);
        assert_null(got);
        close(dir);
}

static void test_read_fails(void **state _unused_) {
        char *got = NULL;
        size_t len = 77;

        assert_int_equal(read_whole_file(AT_FDCWD, "/nonexistent/file", 10, &got, &len), -ENOENT);
        assert_int_equal(read_whole_file(AT_FDCWD, unit_folder(), 10, &got, &len), -EISDIR);
        assert_int_equal(read_whole_file(AT_FDCWD, "/dev/zero", 100000, &got, &len), -EFBIG);
        assert_null(got);
        assert_int_equal(len, 77);
}

static void test_write_fails(void **state _unused_) {
        int ends[2];

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        close(ends[0]);
        assert_int_equal(write_all(ends[1], "x", 1), -EPIPE);
        assert_int_equal(write_all(ends[1], NULL, 0), 0);
        close(ends[1]);
        assert_int_equal(write_all(ends[1], "x", 1), -EBADF);
}

static void test_nonblocking(void **state _unused_) {
        int ends[2];
        char c;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(fd_set_nonblocking(ends[0]), 0);
        assert_int_equal(read(ends[0], &c, 1), -1);
        assert_int_equal(errno, EAGAIN);
        close(ends[0]);
        close(ends[1]);
        assert_int_equal(fd_set_nonblocking(ends[0]), -EBADF);
}

static size_t count_fds(void) {
        size_t n = 0;

        for (int fd = 0; fd < 256; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static const struct message_row {
        const char *name;
        size_t len, sent, room, asked; /* bytes and fds, here and there */
        ssize_t want;
} message_rows[] = {
        {"a message without fds", 5, 0, 16, 3, 5},
        {"a message with fds", 5, 3, 16, 3, 5},
        {"a message with eight fds", 5, 8, 16, 8, 5},
        {"more places than fds", 5, 1, 16, 4, 5},
        {"more fds than places are closed", 5, 4, 16, 2, 5},
        {"fds that nobody asked for are closed", 5, 2, 16, 0, 5},
        {"a message that is cut is refused, its fds closed", 5, 2, 4, 2, -EMSGSIZE},
        {"a message that just fits", 5, 0, 5, 0, 5},
};

static void test_message(void **state) {
        const struct message_row *row = *state;
        int pair[2], send[8], got[8];
        size_t before, filled = row->sent < row->asked ? row->sent : row->asked;
        char data[16];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        for (size_t i = 0; i < 8; i++)
                send[i] = 1;
        before = count_fds();
        assert_int_equal(message_send(pair[0], "hello", row->len, send, row->sent), 0);
        memset(got, 0x77, sizeof(got));
        assert_int_equal(message_receive(pair[1], data, row->room, got, row->asked, 0), row->want);
        if (row->want < 0)
                filled = 0;
        assert_int_equal(count_fds(), before + filled);
        for (size_t i = 0; i < row->asked; i++) {
                if (i >= filled)
                        assert_int_equal(got[i], -1);
                else {
                        assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
                        close(got[i]);
                }
        }
        close(pair[0]);
        assert_int_equal(message_receive(pair[1], data, sizeof(data), got, 0, 0), 0);
        close(pair[1]);
}

/* A side that closes its end without having read everything. */
static void test_message_before_end(void **state _unused_) {
        int pair[2];
        char data[16];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(message_send(pair[1], "unread", 6, NULL, 0), 0);
        assert_int_equal(message_send(pair[0], "last", 4, NULL, 0), 0);
        close(pair[0]);
        assert_int_equal(message_receive(pair[1], data, sizeof(data), NULL, 0, MSG_DONTWAIT), 4);
        assert_memory_equal(data, "last", 4);
        assert_int_equal(message_receive(pair[1], data, sizeof(data), NULL, 0, MSG_DONTWAIT), 0);
        close(pair[1]);
}

static void test_message_limits(void **state _unused_) {
        int pair[2], fds[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        char data[4];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(message_send(pair[0], "x", 1, fds, 9), -EINVAL);
        assert_int_equal(message_receive(pair[1], data, sizeof(data), NULL, 0, MSG_DONTWAIT), -EAGAIN);
        close(pair[1]);
        assert_int_equal(message_send(pair[0], "x", 1, NULL, 0), -EPIPE);
        close(pair[0]);
}

int main(void) {
        static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 100000};

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                char name[64];

                snprintf(name, sizeof(name), "read a file of %zu bytes", sizes[i]);
                unit_add(name, test_read, &sizes[i]);
        }
        unit_add("reads that fail", test_read_fails, NULL);
        unit_add("writes that fail", test_write_fails, NULL);
        unit_add("nonblocking", test_nonblocking, NULL);
        unit_add_rows(message_rows, test_message);
        unit_add("the limits of a message", test_message_limits, NULL);
        unit_add("what was sent before the end arrives", test_message_before_end, NULL);
        return unit_run("base/io");
}
