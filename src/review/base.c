/* The base record; see base.h. How it is taken after a run is in record.c. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "../base/io.h"
#include "../tree/content.h"
#include "../tree/tree.h"
#include "list.h"
#include "merge.h"

#define HEAD "hutch-base-2"
#define HEAD_OLD "hutch-base-1" /* of hutch 0.1.0: stamps without hashes, and nothing about what hides */
#define LATE_DIRECTORY "~ "
#define MOST ((size_t) 1 << 30)
#define HASH_MOST ((uint64_t) 16 << 20) /* larger files go by inode, size and mtime */

void base_done(struct base *base) {
        for (size_t i = 0; base->stamps && i < base->n; i++)
                free(base->stamps[i].path);
        for (size_t i = 0; base->hiding && i < base->n_hiding; i++)
                free(base->hiding[i]);
        free(base->stamps);
        free(base->hiding);
        *base = (struct base){0};
}

static int by_path(const void *a, const void *b) {
        return strcmp(((const struct base_stamp *) a)->path, ((const struct base_stamp *) b)->path);
}

static int by_path_and_order(const void *a, const void *b) {
        const struct base_stamp *one = a, *other = b;
        int order = by_path(a, b);

        return order != 0 ? order : one->order < other->order ? -1 : one->order > other->order;
}

static int by_text(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

const struct base_stamp *base_find(const struct base *base, const char *path) {
        struct base_stamp key = {.path = (char *) path};

        return base->n > 0 ? bsearch(&key, base->stamps, base->n, sizeof(key), by_path) : NULL;
}

bool base_never_saw(const struct base *base, const char *path) {
        return base && base->recorded && !base_find(base, path);
}

/* ---- reading ---- */

/* A number and the one character behind it. */
static bool get_number(const char **p, int radix, char end, uint64_t *ret) {
        char *after;

        if (**p < '0' || **p > '9')
                return false;
        errno = 0;
        *ret = strtoull(*p, &after, radix);
        if (errno || *after != end)
                return false;
        *p = after + 1;
        return true;
}

static bool get_time(const char **p, struct timespec *ret) {
        bool negative = **p == '-';
        uint64_t sec, nsec;

        *p += negative;
        if (!get_number(p, 10, '.', &sec) || !get_number(p, 10, ' ', &nsec) || nsec > 999999999)
                return false;
        *ret = (struct timespec){negative ? -(time_t) sec : (time_t) sec, (long) nsec};
        return true;
}

static int hex_value(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool get_hash(const char **p, struct base_stamp *s) {
        if (startswith(*p, "- ")) {
                *p += 2;
                return true;
        }
        for (size_t i = 0; i < HASH_SIZE; i++) {
                int high = hex_value((*p)[0]), low = high < 0 ? -1 : hex_value((*p)[1]);

                if (low < 0)
                        return false;
                s->hash[i] = (uint8_t) (high << 4 | low);
                *p += 2;
        }
        s->hashed = true;
        return *(*p)++ == ' ';
}

static bool get_stamp(const char *text, bool old, struct base_stamp *s, const char **ret_path) {
        uint64_t mode;

        if (startswith(text, "- ") || startswith(text, "! ")) {
                s->late = text[0] == '!';
                s->exists = s->late;
                s->mode = s->late ? S_IFREG : 0;
                *ret_path = text + 2;
                return true;
        }
        s->late = startswith(text, LATE_DIRECTORY);
        text += s->late ? strlen(LATE_DIRECTORY) : 0;
        s->exists = true;
        if (!get_number(&text, 10, ' ', &s->ino) || !get_number(&text, 8, ' ', &mode) ||
            !get_number(&text, 10, ' ', &s->size) || !get_time(&text, &s->mtime) || !get_time(&text, &s->ctime) ||
            (!old && !get_hash(&text, s)))
                return false;
        s->mode = (mode_t) mode;
        *ret_path = text;
        return true;
}

static int parse(const char *text, bool old, struct base *base) {
        struct base_stamp stamp = {0};
        const char *path;

        if (startswith(text, "o ")) {
                base->hiding[base->n_hiding] = strdup(text + 2);
                return base->hiding[base->n_hiding] ? (int) base->n_hiding++ : -ENOMEM;
        }
        if (!get_stamp(text, old, &stamp, &path))
                return -EBADMSG;
        stamp.path = strdup(path);
        if (!stamp.path)
                return -ENOMEM;
        stamp.order = base->n;
        base->stamps[base->n++] = stamp;
        return 0;
}

static void keep_first_stamps(struct base *base) {
        size_t kept = 0;

        qsort(base->stamps, base->n, sizeof(*base->stamps), by_path_and_order);
        for (size_t i = 0; i < base->n; i++)
                if (kept > 0 && streq(base->stamps[kept - 1].path, base->stamps[i].path))
                        free(base->stamps[i].path);
                else
                        base->stamps[kept++] = base->stamps[i];
        base->n = kept;
}

/* Without what was begun at the end and never finished. */
static size_t whole_length(const char *data, size_t len) {
        while (len > 0 && data[len - 1] != 0)
                len--;
        return len;
}

static int parse_all(char *data, size_t len, struct base *base) {
        bool old;
        size_t lines = 0;

        len = whole_length(data, len);
        old = len > 0 && streq(data, HEAD_OLD);
        if (len == 0 || (!old && !streq(data, HEAD)))
                return -EBADMSG;
        for (size_t i = 0; i < len; i++)
                lines += data[i] == 0;
        if (lines == 0)
                return -EBADMSG;
        base->stamps = calloc(lines, sizeof(*base->stamps));
        base->hiding = calloc(lines, sizeof(*base->hiding));
        if (!base->stamps || !base->hiding)
                return -ENOMEM;
        for (char *p = data + sizeof(HEAD); p < data + len; p += strlen(p) + 1) {
                int r = parse(p, old, base);

                if (r < 0)
                        return r;
        }
        keep_first_stamps(base);
        qsort(base->hiding, base->n_hiding, sizeof(*base->hiding), by_text);
        base->recorded = true;
        return 0;
}

int base_load(int layer, struct base *ret, struct hutch_error *err) {
        _cleanup_(base_done) struct base base = {0};
        _cleanup_(freep) char *data = NULL;
        size_t len;
        int r = read_whole_file(layer, "base", MOST, &data, &len);

        if (r == -ENOENT) {
                *ret = (struct base){0};
                return 0;
        }
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read the layer's record: %s", errno_text(-r));
        r = parse_all(data, len, &base);
        if (r == -ENOMEM)
                return error_oom(err);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "the layer's record is damaged");
        *ret = take_struct(base);
        return 0;
}

/* ---- writing ---- */

static void begin(struct base_writer *writer) {
        if (writer->text.len == 0)
                buf_put(&writer->text, HEAD, sizeof(HEAD));
}

static void put_stamp(struct base_writer *writer, const struct base_stamp *s) {
        struct buf *b = &writer->text;
        char hash[HASH_SIZE * 2 + 1] = "-";

        begin(writer);
        if (!s->exists || (s->late && !S_ISDIR(s->mode)))
                buf_puts(b, s->late ? "! " : "- ");
        else {
                if (s->late)
                        buf_puts(b, LATE_DIRECTORY);
                if (s->hashed)
                        hash_hex(s->hash, hash);
                buf_printf(b, "%" PRIu64 " %o %" PRIu64 " %lld.%09ld %lld.%09ld %s ", s->ino, s->mode, s->size,
                           (long long) s->mtime.tv_sec, s->mtime.tv_nsec, (long long) s->ctime.tv_sec, s->ctime.tv_nsec,
                           hash);
        }
        buf_put(b, s->path, strlen(s->path) + 1);
}

/* Several callers of one session may write at the same time. */
static int write_record(int layer, const struct buf *b) {
        _cleanup_(closep) int fd = -1;
        char name[64];
        int r;

        snprintf(name, sizeof(name), BASE_NEW ".%d", (int) gettid());
        fd = openat(layer, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, b->data, b->len);
        if (r >= 0 && renameat(layer, name, layer, "base") < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(layer, name, 0);
        return r;
}

static bool hash_host(int lower, const char *path, mode_t mode, uint64_t size, uint8_t ret[static HASH_SIZE]) {
        const char *name;
        _cleanup_(closep) int dir = -1;

        if (size > HASH_MOST || (!S_ISREG(mode) && !S_ISLNK(mode)))
                return false;
        dir = tree_open_parent(lower, path, &name);
        return dir >= 0 && content_hash_entry(dir, name, mode, ret) >= 0;
}

static void make_stamp(int lower, const char *path, const struct stat *host, struct base_stamp *ret) {
        *ret = (struct base_stamp){.path = (char *) path,
                                   .exists = true,
                                   .ino = host->st_ino,
                                   .size = (uint64_t) host->st_size,
                                   .mode = host->st_mode,
                                   .mtime = host->st_mtim,
                                   .ctime = host->st_ctim};
        ret->hashed = hash_host(lower, path, host->st_mode, ret->size, ret->hash);
}

void base_writer_put(struct base_writer *writer, int lower, const char *path, const struct stat *host) {
        struct base_stamp stamp = {.path = (char *) path};

        if (host)
                make_stamp(lower, path, host, &stamp);
        put_stamp(writer, &stamp);
}

void base_writer_put_kept(struct base_writer *writer, int layer, int lower, const char *path, const struct stat *host) {
        struct base_stamp stamp;

        make_stamp(lower, path, host, &stamp);
        if (stamp.hashed && S_ISREG(stamp.mode))
                merge_keep_base(layer, lower, path, stamp.hash);
        put_stamp(writer, &stamp);
}

void base_writer_put_late(struct base_writer *writer, const char *path, const struct stat *host) {
        struct base_stamp stamp;

        if (!S_ISDIR(host->st_mode)) {
                base_writer_put_foreign(writer, path, false);
                return;
        }
        make_stamp(-1, path, host, &stamp);
        stamp.late = true;
        put_stamp(writer, &stamp);
}

void base_restamp(struct base *base, const char *path, int lower) {
        struct base_stamp *stamp = (struct base_stamp *) base_find(base, path), fresh;
        struct stat st;

        if (!stamp || tree_stat(lower, path, &st) < 0)
                return;
        make_stamp(lower, stamp->path, &st, &fresh);
        fresh.order = stamp->order;
        *stamp = fresh;
}

void base_writer_put_foreign(struct base_writer *writer, const char *path, bool had_nothing) {
        const struct base_stamp stamp = {.path = (char *) path, .exists = !had_nothing, .late = !had_nothing};

        put_stamp(writer, &stamp);
}

void base_writer_put_hiding(struct base_writer *writer, const char *path) {
        begin(writer);
        buf_puts(&writer->text, "o ");
        buf_put(&writer->text, path, strlen(path) + 1);
}

int base_writer_end(struct base_writer *writer, int layer, struct hutch_error *err) {
        int r;

        begin(writer);
        r = writer->text.oom ? -ENOMEM : write_record(layer, &writer->text);
        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot write the layer's record: %s", errno_text(-r)) : 0;
}

/* Frozen layers may share the record: it is replaced then. */
static int append_shared(int layer, const char *data, size_t len, const struct buf *more) {
        _cleanup_(buf_done) struct buf all = {0};

        buf_put(&all, data, whole_length(data, len));
        buf_put(&all, more->data + sizeof(HEAD), more->len - sizeof(HEAD));
        return all.oom ? -ENOMEM : write_record(layer, &all);
}

static int append(int layer, const struct buf *more) {
        _cleanup_(closep) int fd = openat(layer, "base", O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(freep) char *data = NULL;
        char head[sizeof(HEAD)], last = 0;
        struct stat st;
        size_t len;
        int r;

        if (fd < 0)
                return errno == ENOENT ? write_record(layer, more) : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (pread(fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, HEAD, sizeof(head)) != 0)
                return 0; /* an older hutch's: without a stamp there is a conflict, which is safe */
        if (st.st_nlink > 1 || pread(fd, &last, 1, st.st_size - 1) != 1 || last != 0) {
                r = read_whole_fd(fd, MOST, &data, &len);
                return r < 0 ? r : append_shared(layer, data, len, more);
        }
        r = write_all(fd, more->data + sizeof(HEAD), more->len - sizeof(HEAD));
        if (r < 0 && ftruncate(fd, st.st_size) < 0)
                r = -errno;
        return r;
}

int base_writer_append(struct base_writer *writer, int layer, struct hutch_error *err) {
        int r = writer->text.oom ? -ENOMEM : writer->text.len > 0 ? append(layer, &writer->text) : 0;

        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot write the layer's record: %s", errno_text(-r)) : 0;
}

void base_writer_done(struct base_writer *writer) {
        buf_done(&writer->text);
}

void base_writer_keep(struct base_writer *writer, const struct base_stamp *stamp) {
        put_stamp(writer, stamp);
}

/* Whether the upper has something at the path that hides a directory of the host. */
static bool hides(struct view *view, const char *path) {
        _cleanup_(closep) int fd = -1;
        struct stat st;

        if (tree_stat(view->upper.root, path, &st) < 0)
                return false;
        if (!S_ISDIR(st.st_mode))
                return true;
        fd = tree_open(view->upper.root, path, O_RDONLY | O_DIRECTORY);
        return fd >= 0 && tree_is_opaque(fd);
}

int base_forget(int layer, const struct base *base, struct view *view, const struct change_list *kept,
                struct hutch_error *err) {
        _cleanup_(base_writer_done) struct base_writer writer = BASE_WRITER_EMPTY;

        if (!base->recorded)
                return 0;
        for (size_t i = 0; i < base->n; i++) {
                const struct base_stamp *stamp = &base->stamps[i];
                struct stat st;

                if (!change_list_find(kept, stamp->path) && tree_stat(view->upper.root, stamp->path, &st) < 0)
                        continue;
                put_stamp(&writer, stamp);
                if (hides(view, stamp->path))
                        base_writer_put_hiding(&writer, stamp->path);
        }
        return base_writer_end(&writer, layer, err);
}

/* ---- comparing ---- */

static bool same_time(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool base_is_same(const struct base_stamp *s, int lower, const struct stat *st) {
        uint8_t hash[HASH_SIZE];

        if (s->late || !s->exists || s->mode != st->st_mode || s->size != (uint64_t) st->st_size)
                return false;
        if (s->ino == st->st_ino && same_time(&s->mtime, &st->st_mtim) &&
            (!s->hashed || same_time(&s->ctime, &st->st_ctim)))
                return true;
        return s->hashed && hash_host(lower, s->path, st->st_mode, s->size, hash) &&
               memcmp(hash, s->hash, HASH_SIZE) == 0;
}

bool base_equals_box(const struct base_stamp *s, int dir, const char *name, const struct stat *box) {
        _cleanup_(closep) int fd = -1;
        uint8_t hash[HASH_SIZE];
        int r;

        if (!s->exists || s->late || !s->hashed || s->mode != box->st_mode || s->size != (uint64_t) box->st_size)
                return false;
        if (S_ISREG(box->st_mode)) {
                fd = upper_open_file(dir, name);
                r = fd < 0 ? fd : content_hash(fd, hash);
        } else
                r = content_hash_entry(dir, name, box->st_mode, hash);
        return r >= 0 && memcmp(hash, s->hash, HASH_SIZE) == 0;
}

/* For a layer of which nothing was recorded: its run was killed, and the record could not be made since. */
static const char *check_by_birth(struct view *view, const char *path, const struct stat *lower) {
        struct timespec birth;

        if (S_ISDIR(lower->st_mode) || !view_birth(view, path, &birth))
                return "what the host had there before is not known";
        return view_is_later(&lower->st_ctim, &birth) ? "the host changed it since" : NULL;
}

/* Whether the directory has a mode that an apply gives it until it is filled: 0700 a new one, and another one what its
 * owner needs besides. */
static bool is_half_made(const struct base *base, const struct base_stamp *stamp, const struct stat *lower) {
        return base->resumed &&
               lower->st_mode == (S_ISDIR(stamp->mode) ? stamp->mode | 0700 : (mode_t) (S_IFDIR | 0700));
}

/* Of a directory that both have, what is in it is compared by itself. One that the box does not have goes once it is
 * empty, and must be the one that the box saw. */
static const char *check_directory(const struct base *base, const struct base_stamp *stamp, const struct change *change,
                                   const struct stat *lower) {
        bool both = S_ISDIR(change->new_mode);

        if (both && (!change->mode_changed || (stamp && is_half_made(base, stamp, lower))))
                return NULL;
        if (!stamp || !S_ISDIR(stamp->mode))
                return "the host made a directory of that name since";
        if (stamp->late)
                return "the host changed it since";
        return stamp->mode != lower->st_mode ? "the host changed its mode since" : NULL;
}

const char *base_check(const struct base *base, struct view *view, const struct change *change,
                       const struct stat *lower) {
        const struct base_stamp *stamp = base_find(base, change->path);

        if (!lower)
                return stamp && stamp->exists && !S_ISDIR(stamp->mode) ? "the host removed it since" : NULL;
        if (!base->recorded)
                return S_ISDIR(change->new_mode) && S_ISDIR(lower->st_mode) ? NULL
                                                                            : check_by_birth(view, change->path, lower);
        if (S_ISDIR(lower->st_mode))
                return check_directory(base, stamp, change, lower);
        if (!stamp || !stamp->exists)
                return "the host made one of that name since";
        if (stamp->late)
                return "the host changed it since";
        return base_is_same(stamp, view->pair->lower, lower) ? NULL : "the host changed it since";
}
