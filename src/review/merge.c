/* See merge.h. */
#include "merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../tree/content.h"
#include "../tree/tree.h"
#include "lines.h"

#define MOST ((size_t) 1 << 20)
#define DIRECTORY "../bases" /* of the box: its layers come and go with snapshots */

/* ---- what is kept ---- */

static void base_name(const uint8_t hash[static HASH_SIZE], char name[static HASH_SIZE * 2 + 1]) {
        hash_hex(hash, name);
}

static bool is_text(const struct buf *text) {
        return text->len <= MOST && !memchr(text->data ? text->data : (const uint8_t *) "", 0, text->len);
}

/* 1: a text of at most 1 MiB; 0: something else. */
static int read_text(int fd, struct buf *ret) {
        struct stat st;
        char *data = NULL;
        size_t len;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || (size_t) st.st_size > MOST)
                return 0;
        r = read_whole_fd(fd, MOST, &data, &len);
        if (r == -EFBIG)
                return 0;
        if (r < 0)
                return r;
        *ret = (struct buf){.data = (uint8_t *) data, .len = len, .room = len};
        return is_text(ret);
}

void merge_keep_base(int layer, int lower, const char *path, const uint8_t hash[static HASH_SIZE]) {
        _cleanup_(closep) int directory = -1, dir = -1, from = -1, to = -1;
        _cleanup_(buf_done) struct buf text = {0};
        char name[HASH_SIZE * 2 + 1], fresh[64];
        const char *last;

        if (mkdirat(layer, DIRECTORY, 0700) < 0 && errno != EEXIST)
                return;
        directory = openat(layer, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        base_name(hash, name);
        if (directory < 0 || faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return;
        dir = tree_open_parent(lower, path, &last);
        from = dir < 0 ? -1 : tree_open_file(dir, last);
        if (from < 0 || read_text(from, &text) <= 0)
                return;
        snprintf(fresh, sizeof(fresh), "new.%d", (int) gettid());
        to = openat(directory, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return;
        if ((!content_share(from, to) && write_all(to, text.data, text.len) < 0) ||
            renameat(directory, fresh, directory, name) < 0)
                (void) unlinkat(directory, fresh, 0);
}

static int open_base(const struct apply *a, const struct base_stamp *stamp, struct buf *ret) {
        _cleanup_(closep) int directory =
                openat(a->journal.layer, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(closep) int fd = -1;
        char name[HASH_SIZE * 2 + 1];
        uint8_t hash[HASH_SIZE];

        base_name(stamp->hash, name);
        fd = directory < 0 ? -1 : tree_open_file(directory, name);
        if (fd < 0 || content_hash(fd, hash) < 0 || memcmp(hash, stamp->hash, HASH_SIZE) != 0 ||
            lseek(fd, 0, SEEK_SET) < 0)
                return 0;
        return read_text(fd, ret);
}

/* ---- three texts ---- */

struct side {
        struct line *lines;
        size_t n;
};

static int split(const struct buf *text, struct side *ret) {
        return lines_split(text->data ? text->data : (const uint8_t *) "", text->len, &ret->lines, &ret->n);
}

/* The line number of each line of the base in the side, or SIZE_MAX. */
static int match(const struct side *base, const struct side *side, size_t **ret) {
        _cleanup_(freep) bool *old = calloc(base->n + 1, sizeof(*old)), *new = calloc(side->n + 1, sizeof(*new));
        _cleanup_(freep) size_t *found = calloc(base->n + 1, sizeof(*found));
        size_t at = 0;
        int r;

        if (!old || !new || !found)
                return -ENOMEM;
        r = lines_compare(base->lines, base->n, side->lines, side->n, old, new);
        if (r < 0)
                return r;
        for (size_t i = 0; i < base->n; i++) {
                found[i] = SIZE_MAX;
                if (old[i])
                        continue;
                while (at < side->n && new[at])
                        at++;
                found[i] = at++;
        }
        *ret = take_ptr(found);
        return 0;
}

static bool is_equal(const struct side *a, size_t from_a, size_t to_a, const struct side *b, size_t from_b,
                     size_t to_b) {
        if (to_a - from_a != to_b - from_b)
                return false;
        for (size_t i = 0; i < to_a - from_a; i++) {
                const struct line *x = &a->lines[from_a + i], *y = &b->lines[from_b + i];

                if (x->len != y->len || memcmp(x->data, y->data, x->len) != 0)
                        return false;
        }
        return true;
}

static void put_lines(struct buf *out, const struct side *side, size_t from, size_t to) {
        for (; from < to; from++)
                buf_put(out, side->lines[from].data, side->lines[from].len);
}

static int merge_sides(const struct side *o, const struct side *a, const struct side *b, const size_t *in_a,
                       const size_t *in_b, struct buf *out) {
        size_t i = 0, j = 0, k = 0;

        while (i < o->n || j < a->n || k < b->n) {
                size_t next = i, to_j, to_k;

                if (i < o->n && in_a[i] == j && in_b[i] == k) {
                        put_lines(out, o, i, i + 1);
                        i++, j++, k++;
                        continue;
                }
                while (next < o->n && (in_a[next] == SIZE_MAX || in_b[next] == SIZE_MAX))
                        next++;
                to_j = next < o->n ? in_a[next] : a->n;
                to_k = next < o->n ? in_b[next] : b->n;
                if (is_equal(o, i, next, a, j, to_j) || is_equal(a, j, to_j, b, k, to_k))
                        put_lines(out, b, k, to_k);
                else if (is_equal(o, i, next, b, k, to_k))
                        put_lines(out, a, j, to_j);
                else
                        return 0;
                i = next, j = to_j, k = to_k;
        }
        return out->oom ? -ENOMEM : 1;
}

int merge_texts(const struct buf *base, const struct buf *host, const struct buf *box, struct buf *ret) {
        _cleanup_(freep) size_t *in_host = NULL, *in_box = NULL;
        struct side o = {0}, a = {0}, b = {0};
        int r = split(base, &o);

        if (r >= 0)
                r = split(host, &a);
        if (r >= 0)
                r = split(box, &b);
        if (r >= 0)
                r = match(&o, &a, &in_host);
        if (r >= 0)
                r = match(&o, &b, &in_box);
        if (r >= 0)
                r = merge_sides(&o, &a, &b, in_host, in_box, ret);
        free(o.lines);
        free(a.lines);
        free(b.lines);
        return r;
}

/* ---- in an apply ---- */

static int read_both(struct apply *a, const char *path, int host, const char *name, struct buf *ret_host,
                     struct buf *ret_box) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *directory = strndup(path, slash ? (size_t) (slash - path) : 0);
        _cleanup_(closep) int dir = -1, fd = -1, own = tree_open_file(host, name);
        int r;

        if (!directory)
                return -ENOMEM;
        if (own < 0)
                return 0;
        dir = upper_open_folder(&a->view.upper, directory, false, NULL);
        fd = dir < 0 ? -1 : upper_open_file(dir, slash ? slash + 1 : path);
        if (fd < 0)
                return 0;
        r = read_text(own, ret_host);
        return r <= 0 ? r : read_text(fd, ret_box);
}

int merge_change(struct apply *a, size_t i, int host, const char *name, struct buf *ret, const char **ret_reason) {
        const struct change *c = &a->list.items[i];
        const struct base_stamp *stamp = base_find(&a->base, c->path);
        _cleanup_(buf_done) struct buf base = {0}, theirs = {0}, ours = {0};
        int r;

        if (c->kind != CHANGE_MODIFIED || !S_ISREG(c->new_mode) || !stamp)
                return 0;
        *ret_reason = "it cannot be merged: only text files of up to 1 MiB are";
        r = read_both(a, c->path, host, name, &theirs, &ours);
        if (r <= 0)
                return r;
        *ret_reason = "it cannot be merged: what the host had before was not kept";
        r = stamp->hashed && !stamp->late ? open_base(a, stamp, &base) : 0;
        if (r <= 0)
                return r;
        *ret_reason = "the host and the box changed the same lines";
        return merge_texts(&base, &theirs, &ours, ret);
}

#define CONTEXT 3 /* of the diff that the hunks are numbered by */

int merge_hunks(struct apply *a, size_t i, int host, const char *name, struct buf *ret) {
        const struct hunks *hunks = a->options->hunks;
        _cleanup_(buf_done) struct buf old_text = {0}, new_text = {0};
        _cleanup_(freep) bool *removed = NULL, *added = NULL;
        struct side old = {0}, new = {0};
        size_t j = 0, k = 0, same = SIZE_MAX, number = 0;
        int r = read_both(a, a->list.items[i].path, host, name, &old_text, &new_text);

        if (r <= 0)
                return r;
        r = split(&old_text, &old);
        if (r >= 0)
                r = split(&new_text, &new);
        removed = calloc(old.n + 1, sizeof(*removed));
        added = calloc(new.n + 1, sizeof(*added));
        if (r >= 0)
                r = removed && added ? lines_compare(old.lines, old.n, new.lines, new.n, removed, added) : -ENOMEM;
        while (r >= 0 && (j < old.n || k < new.n)) {
                bool change = (j < old.n && removed[j]) || (k < new.n &&added[k]), take;

                if (!change) {
                        put_lines(ret, &old, j, j + 1);
                        j++, k++;
                        same += same < SIZE_MAX;
                        continue;
                }
                /* Changes whose contexts touch are one hunk. */
                if (same == SIZE_MAX || same > 2 * CONTEXT)
                        number++;
                same = 0;
                take = number - 1 < hunks->n && hunks->take[number - 1];
                for (; j < old.n && removed[j]; j++)
                        if (!take)
                                put_lines(ret, &old, j, j + 1);
                for (; k < new.n &&added[k]; k++)
                        if (take)
                                put_lines(ret, &new, k, k + 1);
        }
        free(old.lines);
        free(new.lines);
        return r < 0 ? r : ret->oom ? -ENOMEM : number == hunks->n;
}
