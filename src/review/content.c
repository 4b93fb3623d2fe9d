/* See content.h. */
#include "content.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../base/macro.h"

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
