/* Lock, trash and journal; see journal.h. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>

#include "../base/io.h"
#include "base.h"
#include "index.h"
#include "../tree/tree.h"

#define FILE_NAME "apply"
#define TRASH "trash"
#define PREFIX ".hutch-apply."
#define MOST ((size_t) 1 << 28)

/* Removes the temporary names of one directory. Such a name is a file, a link or an empty directory that was not put
 * into place, or a file that was replaced by a directory. */
static void sweep_folder(int lower, const char *directory, const char *prefix) {
        _cleanup_(closep) int fd = tree_open(lower, directory, O_RDONLY | O_DIRECTORY);
        _cleanup_(names_list_done) struct names_list list = {0};

        if (fd < 0 || tree_list(fd, &list) < 0)
                return;
        for (size_t i = 0; i < list.n; i++)
                if (startswith(list.names[i], prefix) && unlinkat(fd, list.names[i], 0) < 0)
                        (void) unlinkat(fd, list.names[i], AT_REMOVEDIR);
}

static int recover(struct journal *journal, const struct review_pair *pair, struct hutch_error *err) {
        _cleanup_(freep) char *data = NULL;
        char prefix[JOURNAL_NAME_MAX];
        size_t len;
        int r = read_whole_file(journal->layer, FILE_NAME, MOST, &data, &len);

        (void) unlinkat(journal->layer, FILE_NAME ".new", 0);
        sweep_folder(journal->layer, "", BASE_NEW);
        sweep_folder(journal->layer, "", INDEX_NEW);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read the journal of an earlier apply: %s", errno_text(-r));
        if (len > 0 && data[len - 1] == 0 && strlen(data) == 16) {
                snprintf(prefix, sizeof(prefix), PREFIX "%s.", data);
                for (char *p = data + strlen(data) + 1; p < data + len; p += strlen(p) + 1)
                        sweep_folder(pair->lower, p, prefix);
        }
        journal->resumed = true;
        return 0;
}

int journal_open(struct journal *journal, const struct review_pair *pair, int layer, struct hutch_error *err) {
        uint64_t random;
        int r;

        journal->layer = openat(layer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (journal->layer < 0)
                return error_set(err, HUTCH_E_IO, errno, "cannot open the layer of %s: %s", pair->host_path,
                                 errno_text(errno));
        if (flock(journal->layer, LOCK_EX | LOCK_NB) < 0) {
                r = errno == EWOULDBLOCK ? EBUSY : errno;
                return error_set(err, HUTCH_E_IO, r, "%s",
                                 r == EBUSY ? "another apply or discard is at work on this layer" : errno_text(r));
        }
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                return error_set(err, HUTCH_E_INTERNAL, errno, "cannot get random bytes: %s", errno_text(errno));
        snprintf(journal->token, sizeof(journal->token), "%016" PRIx64, random);
        index_expire(journal->layer);
        return recover(journal, pair, err);
}

int journal_begin(struct journal *journal, const struct change_list *changes, struct hutch_error *err) {
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(closep) int fd = -1;
        const char *last = NULL;
        size_t last_len = 0;
        int r;

        buf_put(&b, journal->token, sizeof(journal->token));
        for (size_t i = 0; i < changes->n; i++) {
                const char *path = changes->items[i].path, *slash = strrchr(path, '/');
                size_t len = slash ? (size_t) (slash - path) : 0;

                /* Sorted by path, the same directory mostly comes in a row; twice does no harm. */
                if (last && last_len == len && strncmp(last, path, len) == 0)
                        continue;
                buf_put(&b, path, len);
                buf_put(&b, "", 1);
                last = path;
                last_len = len;
        }
        if (b.oom)
                return error_oom(err);
        fd = openat(journal->layer, FILE_NAME ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, b.data, b.len);
        if (r >= 0 && fdatasync(fd) < 0 && errno != EINVAL)
                r = -errno;
        if (r >= 0 && renameat(journal->layer, FILE_NAME ".new", journal->layer, FILE_NAME) < 0)
                r = -errno;
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot write the journal: %s", errno_text(-r));
        return 0;
}

int journal_end(struct journal *journal) {
        return unlinkat(journal->layer, FILE_NAME, 0) < 0 && errno != ENOENT ? -errno : 0;
}

void journal_name(struct journal *journal, char name[static JOURNAL_NAME_MAX]) {
        snprintf(name, JOURNAL_NAME_MAX, PREFIX "%s.%" PRIx64, journal->token, journal->counter++);
}

int journal_trash(struct journal *journal) {
        if (journal->trash >= 0)
                return journal->trash;
        if (mkdirat(journal->layer, TRASH, 0700) < 0 && errno != EEXIST)
                return -errno;
        journal->trash = tree_open(journal->layer, TRASH, O_RDONLY | O_DIRECTORY);
        return journal->trash;
}

int journal_discard(struct journal *journal, int dir, const char *name) {
        char fresh[JOURNAL_NAME_MAX];
        int trash;

        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT || unlinkat(dir, name, AT_REMOVEDIR) == 0)
                return 0;
        trash = journal_trash(journal);
        if (trash < 0)
                return trash;
        snprintf(fresh, sizeof(fresh), "%s.%" PRIx64, journal->token, journal->in_trash++);
        return renameat2(dir, name, trash, fresh, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

void journal_done(struct journal *journal) {
        if (journal->layer >= 0) {
                closep(&journal->trash);
                (void) tree_remove(journal->layer, TRASH);
                closep(&journal->layer);
        }
}
