/* See stream.h. A message is its length and a row of fields (base/wire.h). */
#include "stream.h"

#include <errno.h>
#include <sys/socket.h>

#include "../base/macro.h"
#include "../base/wire.h"

#define MOST (1u << 20)
#define CHUNK ((size_t) 1 << 16)

void archive_item_done(struct archive_item *item) {
        free(item->name);
        free(item->target);
        buf_done(&item->data);
        *item = (struct archive_item){0};
}

/* Not write(): the library's host may not have SIGPIPE ignored. */
static int send_all(int fd, const void *data, size_t len) {
        const uint8_t *p = data;

        while (len > 0) {
                ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == ECONNRESET ? -EPIPE : -errno;
                p += n;
                len -= (size_t) n;
        }
        return 0;
}

static int receive_all(int fd, void *data, size_t len) {
        uint8_t *p = data;

        while (len > 0) {
                ssize_t n = recv(fd, p, len, 0);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n == 0 || errno == ECONNRESET ? -EBADMSG : -errno;
                p += n;
                len -= (size_t) n;
        }
        return 0;
}

static int put_message(int fd, const struct buf *b) {
        uint32_t len = (uint32_t) b->len;
        int r;

        if (b->oom)
                return -ENOMEM;
        if (b->len > MOST)
                return -ENAMETOOLONG;
        r = send_all(fd, &len, sizeof(len));
        return r < 0 ? r : send_all(fd, b->data, b->len);
}

int stream_put(int fd, const struct archive_item *item) {
        _cleanup_(buf_done) struct buf b = {0};

        wire_put_u32(&b, item->kind);
        wire_put_str(&b, item->name);
        wire_put_str(&b, item->target);
        wire_put_u32(&b, item->mode);
        wire_put_u64(&b, (uint64_t) item->sec);
        wire_put_u32(&b, item->nsec);
        wire_put_u64(&b, item->size);
        return put_message(fd, &b);
}

int stream_put_data(int fd, const void *data, size_t len) {
        const uint8_t *p = data;

        while (len > 0) {
                _cleanup_(buf_done) struct buf b = {0};
                size_t n = len < CHUNK ? len : CHUNK;
                int r;

                wire_put_u32(&b, ITEM_DATA);
                wire_put_bytes(&b, p, n);
                r = put_message(fd, &b);
                if (r < 0)
                        return r;
                p += n;
                len -= n;
        }
        return 0;
}

int stream_get(int fd, struct archive_item *item) {
        _cleanup_(buf_done) struct buf b = {0};
        struct wire_reader reader;
        const void *data;
        uint32_t len;
        size_t n;
        int r = receive_all(fd, &len, sizeof(len));

        if (r < 0)
                return r;
        if (len > MOST)
                return -EBADMSG;
        if (!buf_reserve(&b, len + 1))
                return -ENOMEM;
        r = receive_all(fd, b.data, len);
        if (r < 0)
                return r;
        free(item->name);
        free(item->target);
        *item = (struct archive_item){.data = {.data = item->data.data, .room = item->data.room}};
        reader = (struct wire_reader){.data = b.data, .left = len};
        item->kind = (enum archive_kind) wire_get_u32(&reader);
        if (item->kind == ITEM_DATA) {
                data = wire_get_bytes(&reader, &n);
                if (!reader.failed)
                        buf_put(&item->data, data, n);
                return reader.failed || item->data.oom ? -EBADMSG : 0;
        }
        item->name = wire_get_str(&reader);
        item->target = wire_get_str(&reader);
        item->mode = wire_get_u32(&reader);
        item->sec = (int64_t) wire_get_u64(&reader);
        item->nsec = wire_get_u32(&reader);
        item->size = wire_get_u64(&reader);
        if (reader.failed || item->kind < ITEM_REGULAR || item->kind > ITEM_FAILED || !item->name)
                return -EBADMSG;
        return 0;
}
