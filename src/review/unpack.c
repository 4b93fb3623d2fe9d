/* Importing a layer; see pack.h.
 *
 * Nothing in the archive is believed. A path is plain names alone, and each directory on the way is one that this
 * import made, for it is opened beneath the upper without links; what is made must not be there yet. Directories are
 * open for their owner until the end, when they get their modes, the innermost first. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base.h"
#include "manifest.h"
#include "pack.h"
#include "quote.h"
#include "view.h"
#include "../base/strv.h"
#include "../tree/tree.h"

struct directory {
        char *path;
        mode_t mode;
        struct timespec mtime;
};

struct unpack {
        int upper;
        char *text;                      /* the manifest */
        struct manifest_record *records; /* in its order; paths point into the text */
        size_t n_records;
        struct manifest_record **sparse; /* sorted by path */
        size_t n_sparse;
        struct directory *directories;
        size_t n_folders, room;
        char **links; /* paths of symbolic links */
        /* the file that is being filled */
        int fd;
        char *path;
        mode_t mode;
        struct timespec mtime;
        uint64_t expected, got, size;
        const struct manifest_record *pieces;
        size_t piece;
        uint64_t in_piece;
};

int unpack_new(int upper, struct unpack **ret) {
        struct unpack *u = calloc(1, sizeof(*u));

        if (!u)
                return -ENOMEM;
        u->upper = upper;
        u->fd = -1;
        *ret = u;
        return 0;
}

void unpack_free(struct unpack *u) {
        if (!u)
                return;
        for (size_t i = 0; i < u->n_records; i++)
                manifest_record_done(&u->records[i]);
        for (size_t i = 0; i < u->n_folders; i++)
                free(u->directories[i].path);
        strv_free(u->links);
        free(u->records);
        free(u->sparse);
        free(u->directories);
        free(u->text);
        free(u->path);
        closep(&u->fd);
        free(u);
}

void unpack_freep(struct unpack **unpack) {
        unpack_free(*unpack);
}

/* One line about a name of the archive. */
static int refuse(struct hutch_error *err, const char *path, const char *why) {
        _cleanup_(buf_done) struct buf b = {0};

        quote_put_path(&b, "", path);
        buf_put(&b, "", 1);
        return error_set(err, HUTCH_E_POLICY_REFUSED, EBADMSG, "%s: %s", b.oom ? "a name" : (char *) b.data, why);
}

static int fail(struct hutch_error *err, const char *path, int r) {
        switch (r) {
        case -EEXIST:
                return refuse(err, path, "twice in the archive");
        case -ELOOP:
        case -ENOTDIR:
        case -EXDEV:
                return refuse(err, path, "leads through something that is no directory");
        case -ENOENT:
                return refuse(err, path, "the archive has no directory for it");
        default:
                return error_set(err, HUTCH_E_IO, r, "cannot unpack %s: %s", path, errno_text(-r));
        }
}

/* ---- the manifest ---- */

static int by_path(const void *a, const void *b) {
        return strcmp((*(struct manifest_record *const *) a)->path, (*(struct manifest_record *const *) b)->path);
}

static const struct manifest_record *find_sparse(const struct unpack *u, const char *path) {
        struct manifest_record key = {.path = path}, *at = &key, **found;

        found = u->n_sparse > 0 ? bsearch(&at, u->sparse, u->n_sparse, sizeof(*u->sparse), by_path) : NULL;
        return found ? *found : NULL;
}

int unpack_manifest(struct unpack *u, const char *text, size_t len, struct hutch_error *err) {
        size_t lines = 0;

        if (u->text)
                return refuse(err, "manifest", "twice in the archive");
        u->text = malloc(len + 1);
        if (!u->text)
                return error_oom(err);
        memcpy(u->text, text, len);
        u->text[len] = 0;
        for (size_t i = 0; i < len; i++)
                lines += text[i] == 0;
        u->records = calloc(lines + 1, sizeof(*u->records));
        u->sparse = calloc(lines + 1, sizeof(*u->sparse));
        if (!u->records || !u->sparse)
                return error_oom(err);
        if (len > 0 && text[len - 1] != 0)
                return refuse(err, "manifest", "damaged");
        for (const char *at = u->text; at < u->text + len; u->n_records++)
                if (manifest_next(&at, u->text + len, &u->records[u->n_records]) < 0)
                        return refuse(err, "manifest", "damaged, or of another version of hutch");
        for (size_t i = 0; i < u->n_records; i++)
                if (u->records[i].kind == 's')
                        u->sparse[u->n_sparse++] = &u->records[i];
        qsort(u->sparse, u->n_sparse, sizeof(*u->sparse), by_path);
        return 0;
}

size_t unpack_count_whiteouts(const struct unpack *u) {
        size_t n = 0;

        for (size_t i = 0; i < u->n_records; i++)
                n += u->records[i].kind == 'w';
        return n;
}

/* ---- entries ---- */

static int note_folder(struct unpack *u, const char *path, const struct archive_item *item) {
        char *copy = strdup(path);

        if (copy && u->n_folders == u->room) {
                size_t room = u->room ? u->room * 2 : 64;
                struct directory *grown = reallocarray(u->directories, room, sizeof(*grown));

                if (grown) {
                        u->directories = grown;
                        u->room = room;
                }
        }
        if (!copy || u->n_folders == u->room) {
                free(copy);
                return -ENOMEM;
        }
        u->directories[u->n_folders++] =
                (struct directory){.path = copy, .mode = item->mode & 01777, .mtime = {item->sec, item->nsec}};
        return 0;
}

/* The last file is whole: its mode and time. */
static int finish_file(struct unpack *u, struct hutch_error *err) {
        const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, u->mtime};
        int r = 0;

        if (u->fd < 0)
                return 0;
        if (u->got != u->expected)
                r = refuse(err, u->path, "its content is cut off");
        else if (ftruncate(u->fd, (off_t) u->size) < 0 || fchmod(u->fd, u->mode) < 0 || futimens(u->fd, times) < 0)
                r = fail(err, u->path, -errno);
        closep(&u->fd);
        return r;
}

static int begin_file(struct unpack *u, int dir, const char *name, const char *path, const struct archive_item *item,
                      struct hutch_error *err) {
        uint64_t sum = 0;

        u->pieces = find_sparse(u, path);
        for (size_t i = 0; u->pieces && i < u->pieces->n_pieces; i++)
                sum += u->pieces->pieces[i].len;
        if (u->pieces && sum != item->size)
                return refuse(err, path, "its content is not what the manifest says");
        u->fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (u->fd < 0)
                return fail(err, path, -errno);
        free(u->path);
        u->path = strdup(path);
        if (!u->path)
                return error_oom(err);
        u->mode = item->mode & 07777;
        u->mtime = (struct timespec){item->sec, item->nsec};
        u->expected = item->size;
        u->size = u->pieces ? u->pieces->size : item->size;
        u->got = u->in_piece = 0;
        u->piece = 0;
        return 0;
}

/* A second name for a file that this import made. */
static int link_file(struct unpack *u, int dir, const char *name, const char *path, const char *target,
                     struct hutch_error *err) {
        const char *last;
        _cleanup_(closep) int from = -1;
        struct stat st;

        if (!manifest_path_is_plain(target))
                return refuse(err, path, "a hard link that leads out");
        from = tree_open_parent(u->upper, target, &last);
        if (from < 0 || fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return refuse(err, path, "a hard link to something that the archive does not have before it");
        return linkat(from, last, dir, name, 0) < 0 ? fail(err, path, -errno) : 0;
}

int unpack_item(struct unpack *u, const char *path, const char *hard_link, const struct archive_item *item,
                struct hutch_error *err) {
        const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {item->sec, item->nsec}};
        _cleanup_(closep) int dir = -1;
        const char *name;
        int r = finish_file(u, err);

        if (r < 0)
                return r;
        if (!manifest_path_is_plain(path))
                return refuse(err, path, "a name that leads out, or is none");
        if (item->nsec > 999999999)
                return refuse(err, path, "a time that is none");
        if (item->kind == ITEM_REGULAR && item->mode & (S_ISUID | S_ISGID))
                return refuse(err, path, "a set-id bit, which no box can set");
        dir = tree_open_parent(u->upper, path, &name);
        if (dir < 0)
                return fail(err, path, dir);
        switch (item->kind) {
        case ITEM_REGULAR:
                return begin_file(u, dir, name, path, item, err);
        case ITEM_HARD_LINK:
                return link_file(u, dir, name, path, hard_link, err);
        case ITEM_FOLDER:
                if (mkdirat(dir, name, 0700) < 0)
                        return fail(err, path, -errno);
                return note_folder(u, path, item) < 0 ? error_oom(err) : 0;
        case ITEM_LINK:
                if (!item->target[0] || symlinkat(item->target, dir, name) < 0)
                        return fail(err, path, item->target[0] ? -errno : -EINVAL);
                (void) utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
                return strv_push(&u->links, path) < 0 ? error_oom(err) : 0;
        default:
                return refuse(err, path, "a device, FIFO or socket");
        }
}

int unpack_data(struct unpack *u, const void *data, size_t len, struct hutch_error *err) {
        const uint8_t *p = data;

        if (u->fd < 0 || len > u->expected - u->got)
                return refuse(err, u->path ? u->path : "data", "more content than was announced");
        while (len > 0) {
                uint64_t at = u->got;
                size_t n = len;
                ssize_t done;

                if (u->pieces) {
                        const struct manifest_piece *piece = &u->pieces->pieces[u->piece];

                        if (u->in_piece == piece->len) {
                                u->piece++;
                                u->in_piece = 0;
                                continue;
                        }
                        at = piece->offset + u->in_piece;
                        if (n > piece->len - u->in_piece)
                                n = (size_t) (piece->len - u->in_piece);
                }
                done = pwrite(u->fd, p, n, (off_t) at);
                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return fail(err, u->path, -errno);
                p += done;
                len -= (size_t) done;
                u->got += (uint64_t) done;
                u->in_piece += (uint64_t) done;
        }
        return 0;
}

/* ---- the end ---- */

static int set_attr(struct unpack *u, const struct manifest_record *record) {
        _cleanup_(closep) int path_fd = tree_open(u->upper, record->path, O_PATH), fd = -1;
        struct stat st;
        bool locked;
        int r;

        if (path_fd < 0)
                return path_fd;
        if (fstat(path_fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
                return -ELOOP;
        /* A file has its mode already, which may keep its owner out. */
        locked = S_ISREG(st.st_mode) && (st.st_mode & 0600) != 0600;
        if (locked)
                (void) tree_chmod(path_fd, st.st_mode | 0600);
        fd = tree_reopen(path_fd, S_ISREG(st.st_mode) ? O_RDWR : O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd
            : fsetxattr(fd, record->name, record->value.data ? record->value.data : (uint8_t *) "", record->value.len,
                        0) < 0
                    ? -errno
                    : 0;
        if (locked)
                (void) tree_chmod(path_fd, st.st_mode);
        return r == -EOPNOTSUPP ? 0 : r;
}

static int set_mark(struct unpack *u, const struct manifest_record *record) {
        const char *name;
        _cleanup_(closep) int fd = -1;

        if (record->kind == 'w') {
                fd = tree_open_parent(u->upper, record->path, &name);
                if (fd < 0)
                        return fd;
                return mknodat(fd, name, S_IFCHR | 0600, makedev(0, 0)) < 0 ? -errno : 0;
        }
        fd = tree_open(u->upper, record->path, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        return fsetxattr(fd, TREE_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

/* Whether this host has there what the box started from. */
static bool is_same_base(int lower, const struct manifest_record *record, const struct stat *st) {
        char hash[HASH_SIZE * 2 + 1];

        switch (record->base) {
        case '-':
                return !st;
        case 'd':
                return st && S_ISDIR(st->st_mode);
        case 'f':
        case 'l':
                return st && (record->base == 'f' ? S_ISREG(st->st_mode) : S_ISLNK(st->st_mode)) &&
                       manifest_hash_host(lower, record->path, record->base == 'l', hash) >= 0 &&
                       streq(hash, record->hash);
        default:
                return false;
        }
}

static int write_base(struct unpack *u, int lower, int layer, struct hutch_error *err) {
        _cleanup_(base_writer_done) struct base_writer writer = BASE_WRITER_EMPTY;

        for (size_t i = 0; i < u->n_records; i++) {
                const struct manifest_record *record = &u->records[i];
                bool exists;
                struct stat st;

                if (record->kind == 'w' || record->kind == 'o')
                        base_writer_put_hiding(&writer, record->path);
                if (record->kind != 'b')
                        continue;
                exists = tree_stat(lower, record->path, &st) >= 0;
                if (is_same_base(lower, record, exists ? &st : NULL))
                        base_writer_put(&writer, lower, record->path, exists ? &st : NULL);
                else
                        base_writer_put_foreign(&writer, record->path, record->base == '-');
        }
        return base_writer_end(&writer, layer, err);
}

/* A link is judged by where it leads in the directory that the host would have, not by its text: `..` behind another
 * link is not where it looks to be. */
static int check_links(struct unpack *u, const struct review_pair *pair, struct hutch_error *err) {
        _cleanup_(view_done) struct view view = {.pair = pair, .upper.root = pair->upper};

        for (char **link = u->links; link && *link; link++) {
                int r = view_leads_out(&view, *link);

                if (r < 0)
                        return fail(err, *link, r);
                if (r > 0)
                        return refuse(err, *link, "a link that leads out: --force takes such links");
        }
        return 0;
}

/* A directory's set-id bits are never the archive's: it keeps those that the host's has, and a new one gets what
 * mkdir(2) would give it, which in a directory shared by a group is the set-group-id bit. */
static mode_t host_bits(int lower, const char *path) {
        _cleanup_(freep) char *above = strdup(path);
        mode_t own = S_ISUID | S_ISGID;
        struct stat st;

        while (above && lower >= 0) {
                char *slash = strrchr(above, '/');

                if (tree_stat(lower, above, &st) >= 0 && S_ISDIR(st.st_mode))
                        return st.st_mode & own;
                if (!above[0])
                        break;
                *(slash ? slash : above) = 0;
                own = S_ISGID;
        }
        return 0;
}

int unpack_end(struct unpack *u, const struct review_pair *pair, int layer, bool links, struct hutch_error *err) {
        int lower = pair->lower;
        int r = finish_file(u, err);

        for (size_t i = 0; r >= 0 && i < u->n_records; i++) {
                const struct manifest_record *record = &u->records[i];

                if (record->kind == 'w' || record->kind == 'o')
                        r = set_mark(u, record);
                else if (record->kind == 'x')
                        r = set_attr(u, record);
                if (r < 0)
                        return fail(err, record->path, r);
        }
        if (r >= 0 && !links)
                r = check_links(u, pair, err);
        for (size_t i = u->n_folders; r >= 0 && i-- > 0;) {
                const struct directory *directory = &u->directories[i];
                const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, directory->mtime};
                _cleanup_(closep) int fd = tree_open(u->upper, directory->path, O_RDONLY | O_DIRECTORY);

                if (fd < 0 || fchmod(fd, directory->mode | host_bits(lower, directory->path)) < 0 ||
                    futimens(fd, times) < 0)
                        return fail(err, directory->path, fd < 0 ? fd : -errno);
        }
        return r < 0 || lower < 0 ? r : write_base(u, lower, layer, err);
}
