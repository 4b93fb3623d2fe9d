/* See content.h. */
#include "content.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/macro.h"
#include "tree.h"

#define CHUNK ((size_t) 256 * 1024)

static int copy_by_hand(int from, int to, off_t at, size_t len) {
        _cleanup_(freep) char *data = malloc(CHUNK);

        if (!data)
                return -ENOMEM;
        while (len > 0) {
                ssize_t n = pread(from, data, len < CHUNK ? len : CHUNK, at), done = 0;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -ESTALE; /* it shrinks while we copy */
                while (done < n) {
                        ssize_t m = pwrite(to, data + done, (size_t) (n - done), at + done);

                        if (m < 0 && errno == EINTR)
                                continue;
                        if (m < 0)
                                return -errno;
                        done += m;
                }
                at += n;
                len -= (size_t) n;
        }
        return 0;
}

static int copy_range(int from, int to, off_t at, size_t len) {
        while (len > 0) {
                off_t in = at, out = at;
                ssize_t n = copy_file_range(from, &in, to, &out, len, 0);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
                        return -errno;
                if (n <= 0) /* not between these file systems */
                        return copy_by_hand(from, to, at, len);
                at += n;
                len -= (size_t) n;
        }
        return 0;
}

int content_copy(int from, int to, off_t size) {
        for (off_t at = 0; at < size;) {
                off_t data = lseek(from, at, SEEK_DATA), hole;
                int r;

                if (data < 0 && errno == ENXIO)
                        break;
                if (data < 0)
                        data = at;
                hole = lseek(from, data, SEEK_HOLE);
                if (hole < 0 || hole > size)
                        hole = size;
                if (hole <= data)
                        break;
                r = copy_range(from, to, data, (size_t) (hole - data));
                if (r < 0)
                        return r;
                at = hole;
        }
        return ftruncate(to, size) < 0 ? -errno : 0;
}

bool content_share(int from, int to) {
        return ioctl(to, FICLONE, from) == 0;
}

/* Where the next data is from `at` on; the end if none follows. File systems without holes report everything as data.
 */
static off_t next_data(int fd, off_t at, off_t end) {
        off_t data = lseek(fd, at, SEEK_DATA);

        if (data < 0)
                return errno == ENXIO ? end : at;
        return data < end ? data : end;
}

static ssize_t read_at(int fd, void *data, size_t len, off_t at) {
        size_t done = 0;

        while (done < len) {
                ssize_t n = pread(fd, (char *) data + done, len - done, at + (off_t) done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

int content_equal(int a, int b) {
        _cleanup_(freep) char *one = NULL, *two = NULL;
        struct stat sa, sb;
        off_t at = 0;

        if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
                return -errno;
        if (sa.st_size != sb.st_size)
                return 0;
        one = malloc(CHUNK);
        two = malloc(CHUNK);
        if (!one || !two)
                return -ENOMEM;
        for (;;) {
                off_t data_a = next_data(a, at, sa.st_size), data_b = next_data(b, at, sa.st_size);
                size_t want;
                ssize_t n, m;

                at = data_a < data_b ? data_a : data_b;
                if (at >= sa.st_size)
                        return 1;
                want = (uint64_t) (sa.st_size - at) < CHUNK ? (size_t) (sa.st_size - at) : CHUNK;
                n = read_at(a, one, want, at);
                m = read_at(b, two, want, at);
                if (n < 0 || m < 0)
                        return (int) (n < 0 ? n : m);
                if ((size_t) n != want || (size_t) m != want || memcmp(one, two, want) != 0)
                        return 0;
                at += (off_t) want;
        }
}

#define BLOCK ((size_t) 64 * 1024)
#define HASH_MOST ((uint64_t) 4 << 30)

static bool is_zero(const char *data, size_t len) {
        return len == 0 || (data[0] == 0 && memcmp(data, data + 1, len - 1) == 0);
}

static int hash_blocks(int fd, off_t size, struct hash *hash) {
        _cleanup_(freep) char *data = malloc(BLOCK);
        uint64_t total = 0;

        if (!data)
                return -ENOMEM;
        for (off_t at = next_data(fd, 0, size); at < size; at = next_data(fd, at, size)) {
                ssize_t n;
                uint64_t number;

                at -= at % (off_t) BLOCK;
                n = read_at(fd, data, BLOCK, at);
                if (n < 0)
                        return (int) n;
                if (n == 0)
                        break;
                total += (uint64_t) n;
                if (total > HASH_MOST)
                        return -EFBIG;
                number = htole64((uint64_t) at / BLOCK);
                if (!is_zero(data, (size_t) n)) {
                        hash_put(hash, &number, sizeof(number));
                        hash_put(hash, data, (size_t) n);
                }
                at += (off_t) BLOCK;
        }
        return 0;
}

int content_hash(int fd, uint8_t ret[static HASH_SIZE]) {
        struct hash hash;
        struct stat st;
        uint64_t size;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        hash_init(&hash);
        r = hash_blocks(fd, st.st_size, &hash);
        if (r < 0)
                return r;
        size = htole64((uint64_t) st.st_size);
        hash_put(&hash, &size, sizeof(size));
        hash_end(&hash, ret);
        return 0;
}

int content_hash_entry(int dir, const char *name, mode_t mode, uint8_t ret[static HASH_SIZE]) {
        _cleanup_(freep) char *target = NULL;
        _cleanup_(closep) int fd = -1;
        struct hash hash;
        int r;

        if (S_ISREG(mode)) {
                fd = tree_open_file(dir, name);
                return fd < 0 ? fd : content_hash(fd, ret);
        }
        r = tree_read_link(dir, name, &target);
        if (r < 0)
                return r;
        hash_init(&hash);
        hash_put(&hash, target, strlen(target));
        hash_end(&hash, ret);
        return 0;
}
