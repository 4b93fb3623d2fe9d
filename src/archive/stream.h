/* The protocol between hutch and its helper hutch-archive, over a socket.
 *
 * Only the helper uses libarchive, and only it reads untrusted archives; it has no access to any file but the one it
 * was given (main.c). It turns a sequence of entries into an archive, or an archive into a sequence of entries, in the
 * same form: names, types, modes and times, and after a file its content. It checks nothing; the reader of the entries
 * trusts none of them. The sequence ends with END, or with FAILED and a text. */
#pragma once

#include <stdint.h>

#include "../base/buf.h"

#define ARCHIVE_SOCKET 3
#define ARCHIVE_FILE 4

enum archive_kind {
        ITEM_REGULAR = 1,
        ITEM_FOLDER,
        ITEM_LINK,
        ITEM_HARD_LINK, /* `target` is the name of an earlier file */
        ITEM_OTHER,     /* a device, FIFO or socket: never written */
        ITEM_DATA,      /* more of the last file, in `data` */
        ITEM_END,
        ITEM_FAILED /* why, in `name` */
};

struct archive_item {
        enum archive_kind kind;
        char *name, *target;
        uint32_t mode;
        int64_t sec;
        uint32_t nsec;
        uint64_t size;
        struct buf data; /* kept between calls of stream_get() for its room */
};

void archive_item_done(struct archive_item *item);

/* 0 or -errno; -EPIPE when the other side is gone. */
int stream_put(int fd, const struct archive_item *item);
int stream_put_data(int fd, const void *data, size_t len);

/* The next item, in the place of what `item` held. -EBADMSG for what makes no sense, and for an end without END. */
int stream_get(int fd, struct archive_item *item);
