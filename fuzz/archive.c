/* What the helper that reads a stranger's archive may send, were it taken over: entries, a manifest, links. They are
 * unpacked into a directory that must hold everything that was written. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "review/manifest.h"
#include "review/pack.h"
#include "tree/tree.h"

#define BESIDE "beside"

static void read_manifest(const char *data, size_t len) {
        _cleanup_(freep) char *text = strndup(data, len);
        const char *at = text, *end = text ? text + strlen(text) + 1 : NULL;

        while (at && at < end) {
                struct manifest_record record = {0};
                int r = manifest_next(&at, end, &record);

                if (at > end)
                        abort();
                manifest_record_done(&record);
                if (r < 0)
                        break;
        }
}

static void unpack_all(int stream, int upper, const char *manifest, size_t len) {
        _cleanup_(unpack_freep) struct unpack *unpack = NULL;
        struct archive_item item = {0};

        if (unpack_new(upper, &unpack) < 0)
                return;
        if (unpack_manifest(unpack, manifest, len, NULL) >= 0)
                for (size_t n = 0; n < 64 && stream_get(stream, &item) >= 0 && item.kind != ITEM_END; n++) {
                        if (item.kind == ITEM_FAILED)
                                break;
                        if (item.kind == ITEM_DATA
                                    ? unpack_data(unpack, item.data.data, item.data.len, NULL) < 0
                                    : unpack_item(unpack, item.name ? item.name : "", item.target, &item, NULL) < 0)
                                break;
                }
        archive_item_done(&item);
}

static void check_beside(int top) {
        char text[8] = "";
        struct stat st;
        int fd = openat(top, BESIDE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0 || read(fd, text, sizeof(text)) != 4 || memcmp(text, "same", 4) != 0 || fstat(fd, &st) < 0 ||
            st.st_nlink != 1 || (st.st_mode & 07777) != 0600)
                abort(); /* it was touched */
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        const uint8_t *nul = len ? memchr(data, 0xff, len) : NULL; /* before it the manifest, behind it the entries */
        size_t first = nul ? (size_t) (nul - data) : len;
        char path[] = "/tmp/hutch-fuzz.XXXXXX";
        _cleanup_(closep) int top = -1, upper = -1, stream = -1, sender = -1, file = -1;
        int ends[2];

        read_manifest((const char *) data, first);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
                return 0;
        stream = ends[0];
        sender = ends[1];
        if (!mkdtemp(path) || (top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
                return 0;
        file = openat(top, BESIDE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0 && write_all(file, "same", 4) == 0 && mkdirat(top, "upper", 0700) == 0 &&
            (upper = openat(top, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0 &&
            (!nul || send(sender, nul + 1, len - first - 1, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) &&
            shutdown(sender, SHUT_WR) == 0) {
                unpack_all(stream, upper, (const char *) data, first);
                check_beside(top);
        }
        tree_remove(top, "upper");
        unlinkat(top, BESIDE, 0);
        rmdir(path);
        return 0;
}
