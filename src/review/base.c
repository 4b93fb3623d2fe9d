/* The base; see base.h. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "../base/io.h"
#include "list.h"
#include "tree.h"
#include "walk.h"

#define HEAD "hutch-base-1"
#define MOST ((size_t) 1 << 30)

void base_done(struct base *base) {
        for (size_t i = 0; base->stamps && i < base->n; i++)
                free(base->stamps[i].path);
        free(base->stamps);
        *base = (struct base){0};
}

static int order(const void *a, const void *b) {
        return strcmp(((const struct base_stamp *) a)->path, ((const struct base_stamp *) b)->path);
}

static const struct base_stamp *find(const struct base *base, const char *path) {
        struct base_stamp key = {.path = (char *) path};

        return base->n > 0 ? bsearch(&key, base->stamps, base->n, sizeof(key), order) : NULL;
}

static int parse(const char *text, struct base_stamp *ret) {
        struct base_stamp s = {.exists = true};
        int at = 0;

        if (startswith(text, "- ")) {
                s.exists = false;
                at = 2;
        } else if (sscanf(text, "%" SCNu64 " %o %" SCNu64 " %ld.%ld %ld.%ld %n", &s.ino, &s.mode, &s.size,
                          &s.mtime.tv_sec, &s.mtime.tv_nsec, &s.ctime.tv_sec, &s.ctime.tv_nsec, &at) != 7 ||
                   at == 0)
                return -EINVAL;
        s.path = strdup(text + at);
        if (!s.path)
                return -ENOMEM;
        *ret = s;
        return 0;
}

int base_load(int layer, struct base *ret, struct hutch_error *err) {
        _cleanup_(base_done) struct base base = {0};
        _cleanup_(freep) char *data = NULL;
        size_t len, lines = 0;
        int r = read_whole_file(layer, "base", MOST, &data, &len);

        if (r == -ENOENT) {
                *ret = (struct base){0};
                return 0;
        }
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read the layer's record: %s", errno_text(-r));
        for (size_t i = 0; i < len; i++)
                lines += data[i] == 0;
        if (len == 0 || data[len - 1] != 0 || !streq(data, HEAD))
                return error_set(err, HUTCH_E_IO, EBADMSG, "the layer's record is damaged");
        base.stamps = calloc(lines, sizeof(*base.stamps));
        if (!base.stamps)
                return error_oom(err);
        for (char *p = data + sizeof(HEAD); p < data + len; p += strlen(p) + 1) {
                r = parse(p, &base.stamps[base.n]);
                if (r == -EINVAL)
                        return error_set(err, HUTCH_E_IO, EBADMSG, "the layer's record is damaged");
                if (r < 0)
                        return error_oom(err);
                base.n++;
        }
        if (base.n > 0)
                qsort(base.stamps, base.n, sizeof(*base.stamps), order);
        *ret = (struct base){.n = base.n, .stamps = take_ptr(base.stamps)};
        return 0;
}

static void put_stamp(struct buf *b, const struct base_stamp *s) {
        if (s->exists)
                buf_printf(b, "%" PRIu64 " %o %" PRIu64 " %ld.%09ld %ld.%09ld %s", s->ino, s->mode, s->size,
                           (long) s->mtime.tv_sec, s->mtime.tv_nsec, (long) s->ctime.tv_sec, s->ctime.tv_nsec, s->path);
        else
                buf_printf(b, "- %s", s->path);
        buf_put(b, "", 1);
}

/* Several callers of one session may be at it at the same time. */
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

int base_forget(int layer, const struct base *base, const struct change_list *kept, struct hutch_error *err) {
        _cleanup_(buf_done) struct buf b = {0};
        int r;

        if (base->n == 0)
                return 0;
        buf_put(&b, HEAD, sizeof(HEAD));
        for (size_t i = 0; i < base->n; i++)
                if (change_list_find(kept, base->stamps[i].path))
                        put_stamp(&b, &base->stamps[i]);
        r = b.oom ? -ENOMEM : write_record(layer, &b);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot write the layer's record: %s", errno_text(-r));
        return 0;
}

static struct base_stamp stamp_of(const char *path, const struct stat *st) {
        if (!st)
                return (struct base_stamp){.path = (char *) path};
        return (struct base_stamp){.path = (char *) path,
                                   .exists = true,
                                   .ino = st->st_ino,
                                   .size = (uint64_t) st->st_size,
                                   .mode = st->st_mode,
                                   .mtime = st->st_mtim,
                                   .ctime = st->st_ctim};
}

static void put_to(struct base_writer *writer, const struct base_stamp *stamp) {
        if (writer->text.len == 0)
                buf_put(&writer->text, HEAD, sizeof(HEAD));
        put_stamp(&writer->text, stamp);
}

void base_writer_put(struct base_writer *writer, const char *path, const struct stat *host) {
        const struct base_stamp stamp = stamp_of(path, host);

        put_to(writer, &stamp);
}

/* An inode that no file has. */
void base_writer_put_foreign(struct base_writer *writer, const char *path, bool had_nothing) {
        const struct base_stamp stamp = {.path = (char *) path, .exists = !had_nothing, .mode = S_IFREG};

        put_to(writer, &stamp);
}

int base_writer_end(struct base_writer *writer, int layer, struct hutch_error *err) {
        int r = 0;

        if (writer->text.len > 0 || writer->text.oom)
                r = writer->text.oom ? -ENOMEM : write_record(layer, &writer->text);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot write the layer's record: %s", errno_text(-r));
        return 0;
}

void base_writer_done(struct base_writer *writer) {
        buf_done(&writer->text);
}

int review_record_base(const struct review_pair *pair, int layer, struct hutch_error *err) {
        _cleanup_(view_done) struct view view = {.pair = pair, .upper.root = pair->upper};
        _cleanup_(base_writer_done) struct base_writer writer = BASE_WRITER_EMPTY;
        _cleanup_(change_list_done) struct change_list list = {0};
        _cleanup_(base_done) struct base known = {0};
        int r = base_load(layer, &known, err);

        if (r >= 0)
                r = walk_changes(&view, true, &list, err);
        if (r < 0)
                return r;
        change_list_sort(&list);
        buf_put(&writer.text, HEAD, sizeof(HEAD));
        for (size_t i = 0; i < list.n; i++) {
                const char *path = list.items[i].path;
                const struct base_stamp *before = find(&known, path);
                struct stat st;

                if (before)
                        put_to(&writer, before);
                else
                        base_writer_put(&writer, path, tree_stat(pair->lower, path, &st) >= 0 ? &st : NULL);
        }
        return base_writer_end(&writer, layer, err);
}

static bool later(const struct timespec *a, int64_t sec, long nsec) {
        return a->tv_sec > sec || (a->tv_sec == sec && a->tv_nsec > nsec);
}

/* When the box covered the host's entry. */
static bool find_birth(struct view *view, const char *path, struct statx *ret) {
        _cleanup_(freep) char *cover = NULL;
        const char *name;
        _cleanup_(closep) int dir = -1;

        if (tree_is_remote(view->pair->lower) || view_cover(view, path, &cover) < 0 || !cover[0])
                return false;
        dir = tree_open_parent(view->upper.root, cover, &name);
        return dir >= 0 && statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, ret) == 0 &&
               (ret->stx_mask & STATX_BTIME);
}

static bool same_stamp(const struct base_stamp *s, const struct stat *st) {
        return s->ino == st->st_ino && s->mode == st->st_mode && s->size == (uint64_t) st->st_size &&
               s->mtime.tv_sec == st->st_mtim.tv_sec && s->mtime.tv_nsec == st->st_mtim.tv_nsec &&
               s->ctime.tv_sec == st->st_ctim.tv_sec && s->ctime.tv_nsec == st->st_ctim.tv_nsec;
}

const char *base_check(const struct base *base, struct view *view, const struct change *change,
                       const struct stat *lower) {
        const char *path = change->path;
        const struct base_stamp *stamp = find(base, path);
        struct statx birth;
        bool born;

        if (stamp && stamp->exists && !lower)
                return S_ISDIR(stamp->mode) ? NULL : "the host removed it since";
        if (!lower)
                return NULL;
        if (S_ISDIR(lower->st_mode) && S_ISDIR(change->new_mode))
                return NULL; /* whoever made it */
        if (S_ISDIR(lower->st_mode))
                return stamp && stamp->exists && !S_ISDIR(stamp->mode) ? "the host made a folder of it since" : NULL;
        if (stamp && !stamp->exists)
                return "the host made one of that name since";
        if (stamp && !same_stamp(stamp, lower))
                return "the host changed it since";
        born = find_birth(view, path, &birth);
        if (!born)
                return stamp ? NULL : "nothing tells what the host had there before";
        if (later(&lower->st_ctim, birth.stx_btime.tv_sec, birth.stx_btime.tv_nsec))
                return "the host changed it since";
        return NULL;
}
