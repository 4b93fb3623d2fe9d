/* See index.h. One walk: directories wait on a stack and are read once each, and each name costs one fstatat(). */
#include "index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/path.h"
#include "../base/io.h"
#include "../base/strv.h"
#include "../tree/attrs.h"
#include "../tree/content.h"
#include "../tree/tree.h"
#include "../tree/upper.h"

#define FILE_MOST ((off_t) 1 << 20)
#define COST_LEAST 4096   /* of a file: it has to be opened */
#define TICKS_NS 20000000 /* two of the slowest kernels' */

void index_done(struct index *index) {
        if (!index->raw)
                free(index->entries);
        free(index->raw);
        free(index->slots);
        buf_done(&index->text);
        *index = (struct index){0};
}

/* ---- finding ---- */

static uint64_t path_hash(const char *path) { /* FNV-1a */
        uint64_t h = 14695981039346656037u;

        for (; *path; path++)
                h = (h ^ (uint8_t) *path) * 1099511628211u;
        return h ^ h >> 29;
}

const char *index_path(const struct index *index, const struct index_entry *entry) {
        const char *text = index->raw ? (const char *) (index->entries + index->n) : (const char *) index->text.data;

        return text + entry->path;
}

static uint32_t *find_slot(const struct index *index, const char *path) {
        size_t at = path_hash(path) & (index->n_slots - 1);

        while (index->slots[at] && !streq(index_path(index, &index->entries[index->slots[at] - 1]), path))
                at = (at + 1) & (index->n_slots - 1);
        return &index->slots[at];
}

/* Boxes choose the names; at worst they make their own runs slow. */
int index_prepare(struct index *index) {
        size_t n = 16;

        if (index->n_slots > 0)
                return 0;
        while (n < index->n * 2)
                n *= 2;
        index->slots = calloc(n, sizeof(*index->slots));
        if (!index->slots)
                return -ENOMEM;
        index->n_slots = n;
        for (size_t i = 0; i < index->n; i++)
                *find_slot(index, index_path(index, &index->entries[i])) = (uint32_t) i + 1;
        return 0;
}

const struct index_entry *index_find(const struct index *index, const char *path) {
        uint32_t at = index && index->n_slots > 0 ? *find_slot(index, path) : 0;

        return at ? &index->entries[at - 1] : NULL;
}

bool index_hides(const struct index *index, const char *path) {
        char part[PATH_MAX];

        for (size_t n = path_name_length(path); path[n] && n < sizeof(part); n += 1 + path_name_length(path + n + 1)) {
                const struct index_entry *e;

                memcpy(part, path, n);
                part[n] = 0;
                e = index_find(index, part);
                if (!e)
                        return false;
                if (!S_ISDIR(e->mode) || e->flags & INDEX_OPAQUE)
                        return true;
        }
        return false;
}

bool index_is_equal(const struct index_entry *a, const struct index_entry *b) {
        if (a->mode != b->mode || a->size != b->size)
                return false;
        if (a->flags & b->flags & INDEX_HASHED)
                return memcmp(a->hash, b->hash, HASH_SIZE) == 0;
        return a->ino == b->ino && a->sec == b->sec && a->nsec == b->nsec;
}

/* ---- taking ---- */

struct take {
        struct upper upper;
        struct index *before;
        size_t cursor; /* where the next entry of `before` to be looked up probably is */
        struct index index;
        char **stack; /* paths of directories still to be read */
        size_t n, room;
        struct timespec begun;
        off_t budget;
};

static void take_done(struct take *t) {
        while (t->n > 0)
                free(t->stack[--t->n]);
        free(t->stack);
        upper_done(&t->upper);
        index_done(&t->index);
}

static int push(struct take *t, const char *path) {
        if (t->n == t->room) {
                size_t room = t->room ? t->room * 2 : 64;
                char **grown = reallocarray(t->stack, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                t->stack = grown;
                t->room = room;
        }
        t->stack[t->n] = strdup(path);
        return t->stack[t->n++] ? 0 : -ENOMEM;
}

static struct index_entry *add(struct index *index, const char *path, size_t len) {
        if (index->n == index->room) {
                size_t room = index->room ? index->room * 2 : 256;
                struct index_entry *grown = reallocarray(index->entries, room, sizeof(*grown));

                if (!grown)
                        return NULL;
                index->entries = grown;
                index->room = room;
        }
        if (index->n >= UINT32_MAX - 1 || index->text.len + len >= UINT32_MAX)
                return NULL;
        index->entries[index->n] = (struct index_entry){.path = (uint32_t) index->text.len};
        buf_put(&index->text, path, len + 1);
        return index->text.oom ? NULL : &index->entries[index->n++];
}

static void put_attr(void *user, const char *name, const void *value, size_t len) {
        struct hash *hash = user;

        hash_put(hash, name, strlen(name) + 1);
        hash_put(hash, &len, sizeof(len));
        hash_put(hash, value, len);
}

static int hash_open(struct hash *hash, int fd, bool content) {
        uint8_t value[HASH_SIZE];
        int r = attrs_each(fd, put_attr, hash);

        if (r < 0 || !content)
                return r;
        r = content_hash(fd, value);
        if (r >= 0)
                hash_put(hash, value, sizeof(value));
        return r;
}

/* 1: hashed; 0: not, it is large or goes away; -errno. */
static int hash_entry(struct take *t, int dir, const char *name, const char *path, const struct stat *st,
                      uint8_t ret[static HASH_SIZE]) {
        _cleanup_(freep) char *target = NULL;
        _cleanup_(closep) int fd = -1;
        struct hash hash;
        int r = 0;

        hash_init(&hash);
        if (S_ISLNK(st->st_mode)) {
                r = tree_read_link(dir, name, &target);
                if (r >= 0)
                        hash_put(&hash, target, strlen(target));
        } else if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) {
                off_t cost = (off_t) st->st_blocks * 512;

                cost = cost < COST_LEAST ? COST_LEAST : cost;
                if (S_ISREG(st->st_mode) && (cost > FILE_MOST || cost > t->budget))
                        return 0;
                t->budget -= S_ISREG(st->st_mode) ? cost : 0;
                fd = S_ISREG(st->st_mode) ? upper_open_file(dir, name)
                                          : upper_open_folder(&t->upper, path, false, NULL);
                r = fd < 0 ? fd : hash_open(&hash, fd, S_ISREG(st->st_mode));
        }
        if (r == -ENOENT || r == -ESTALE || r == -ELOOP || r == -ENOTDIR || r == -EFBIG)
                return 0;
        if (r < 0)
                return r;
        hash_end(&hash, ret);
        return 1;
}

static bool is_same(const struct index_entry *old, const struct index_entry *e) {
        return old && !(old->flags & INDEX_RACY) && old->ino == e->ino && old->size == e->size &&
               old->mode == e->mode && old->sec == e->sec && old->nsec == e->nsec;
}

static void put_stat(struct index_entry *e, const struct stat *st) {
        e->ino = st->st_ino;
        e->size = S_ISDIR(st->st_mode) ? 0 : (uint64_t) st->st_size;
        e->mode = st->st_mode;
        e->sec = st->st_ctim.tv_sec;
        e->nsec = (uint32_t) st->st_ctim.tv_nsec;
}

static bool is_racy(const struct take *t, const struct stat *st) {
        int64_t since =
                (int64_t) (t->begun.tv_sec - st->st_ctim.tv_sec) * 1000000000 + t->begun.tv_nsec - st->st_ctim.tv_nsec;

        return since < TICKS_NS;
}

/* An entry that cannot be hashed must not be racy, or it would count as changed forever: wait for the clock's next
 * tick, after which every change to it shows in its ctime. */
static void let_pass(const struct take *t, int dir, const char *name, struct stat *st) {
        const struct timespec nap = {0, 1000000};
        struct timespec now;

        for (int i = 0; i < 20 && is_racy(t, st); i++) {
                if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0 || now.tv_sec > st->st_ctim.tv_sec ||
                    (now.tv_sec == st->st_ctim.tv_sec && now.tv_nsec > st->st_ctim.tv_nsec))
                        break;
                nanosleep(&nap, NULL);
        }
        (void) fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW);
}

static int look_into(struct take *t, int dir, const char *name, const char *path, struct stat *st,
                     const struct index_entry *old, struct index_entry *e) {
        int r = hash_entry(t, dir, name, path, st, e->hash);

        if (r < 0)
                return r;
        if (r == 0 && S_ISREG(st->st_mode)) {
                let_pass(t, dir, name, st);
                put_stat(e, st);
        }
        /* To be read it was given a mode for a moment, which moved its ctime. */
        if (r > 0 && !S_ISLNK(st->st_mode) && geteuid() != 0 && (st->st_mode & 0400) == 0) {
                struct stat now;

                if (fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == st->st_ino &&
                    now.st_size == st->st_size && now.st_mtim.tv_sec == st->st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == st->st_mtim.tv_nsec && now.st_mode == st->st_mode)
                        put_stat(e, &now);
        }
        e->flags |= r > 0 ? INDEX_HASHED | (is_racy(t, st) ? INDEX_RACY : 0) : 0;
        t->index.changed = t->index.changed || !old || (old->flags & INDEX_RACY) != (e->flags & INDEX_RACY) ||
                           e->sec != old->sec || e->nsec != old->nsec || !index_is_equal(old, e);
        if (!old || !index_is_equal(old, e) || ((old->flags ^ e->flags) & (INDEX_OPAQUE | INDEX_WHITEOUT)))
                e->flags |= INDEX_CHANGED;
        return 0;
}

static int see_opaque(struct take *t, const char *path, struct index_entry *e) {
        _cleanup_(closep) int fd = upper_open_folder(&t->upper, path, false, NULL);

        if (fd >= 0 && tree_is_opaque(fd))
                e->flags |= INDEX_OPAQUE;
        return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd < 0 ? fd : 0;
}

/* Directories mostly list their names in the same order again. */
static int find_old(struct take *t, const char *path, const struct index_entry **ret) {
        struct index *before = t->before;
        int r;

        *ret = NULL;
        if (!before || before->n == 0)
                return 0;
        if (t->cursor >= before->n || !streq(index_path(before, &before->entries[t->cursor]), path)) {
                r = index_prepare(before);
                if (r < 0)
                        return r;
                *ret = index_find(before, path);
                if (*ret)
                        t->cursor = (size_t) (*ret - before->entries) + 1;
                return 0;
        }
        *ret = &before->entries[t->cursor++];
        return 0;
}

static int see(struct take *t, int dir, const char *name, const char *path, size_t len) {
        const struct index_entry *old;
        struct index_entry *e;
        struct stat st;
        int r = find_old(t, path, &old);

        if (r < 0)
                return r;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        e = add(&t->index, path, len);
        if (!e)
                return -ENOMEM;
        put_stat(e, &st);
        if (is_same(old, e)) {
                e->flags = old->flags & ~INDEX_CHANGED;
                memcpy(e->hash, old->hash, HASH_SIZE);
        } else {
                if (tree_is_whiteout(&st))
                        e->flags |= INDEX_WHITEOUT;
                if (S_ISDIR(st.st_mode))
                        r = see_opaque(t, path, e);
                if (r >= 0)
                        r = look_into(t, dir, name, path, &st, old, e);
        }
        return r >= 0 && S_ISDIR(st.st_mode) ? push(t, path) : r;
}

static int read_folder(struct take *t, const char *directory) {
        int r, fd = upper_open_folder(&t->upper, directory, false, NULL);
        size_t n = strlen(directory);
        struct dirent *entry;
        char path[PATH_MAX];
        DIR *d;

        if (fd < 0)
                return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd; /* it has just been removed */
        d = fdopendir(fd);
        if (!d) {
                r = -errno;
                close(fd);
                return r;
        }
        memcpy(path, directory, n + 1);
        if (n > 0)
                path[n++] = '/';
        r = 0;
        while (r >= 0 && (errno = 0, entry = readdir(d))) {
                size_t len = strlen(entry->d_name);

                /* Where paths reach their limit, no program on the host could name anything deeper. */
                if (streq(entry->d_name, ".") || streq(entry->d_name, "..") || n + len >= sizeof(path))
                        continue;
                memcpy(path + n, entry->d_name, len + 1);
                r = see(t, fd, entry->d_name, path, n + len);
        }
        if (r >= 0 && errno)
                r = -errno;
        closedir(d);
        return r;
}

int index_take(int upper, struct index *before, off_t budget, struct index *ret) {
        _cleanup_(take_done) struct take t = {.upper.root = upper, .before = before, .budget = budget};
        int r;

        if (clock_gettime(CLOCK_REALTIME_COARSE, &t.begun) < 0)
                return -errno;
        r = push(&t, "");
        while (r >= 0 && t.n > 0) {
                _cleanup_(freep) char *directory = t.stack[--t.n];

                r = read_folder(&t, directory);
        }
        if (r < 0)
                return r;
        t.index.changed = t.index.changed || !before || before->n != t.index.n;
        *ret = take_struct(t.index);
        return 0;
}

/* ---- the file ---- */

#define NAME "index"
#define NAME_OLD "index.old"
#define HEAD "hutch-index-1\n"
#define MOST ((size_t) 1 << 30)

struct head {
        char magic[16];
        uint64_t n, text;
};

static bool is_sound(const struct head *head, size_t len) {
        return memcmp(head->magic, HEAD, sizeof(HEAD)) == 0 && head->n < UINT32_MAX && head->text < UINT32_MAX &&
               len == sizeof(*head) + head->n * sizeof(struct index_entry) + head->text;
}

/* Takes the data over. */
static int parse(char *data, size_t len, struct index *ret) {
        _cleanup_(index_done) struct index index = {.raw = data};
        struct head head;

        if (len < sizeof(head))
                return -EBADMSG;
        memcpy(&head, data, sizeof(head));
        if (!is_sound(&head, len))
                return -EBADMSG;
        if (head.text > 0 && data[len - 1] != 0)
                return -EBADMSG;
        index.entries = (struct index_entry *) (void *) (data + sizeof(head));
        index.n = head.n;
        for (size_t i = 0; i < index.n; i++) {
                if (index.entries[i].path >= head.text)
                        return -EBADMSG;
                index.entries[i].flags &= ~INDEX_CHANGED;
        }
        *ret = take_struct(index);
        return 0;
}

static int load(int layer, const char *name, struct index *ret) {
        char *data;
        size_t len;
        int r = read_whole_file(layer, name, MOST, &data, &len);

        return r < 0 ? r : parse(data, len, ret);
}

int index_load(int layer, struct index *ret) {
        int r = load(layer, NAME, ret);

        if (r >= 0) {
                ret->fresh = true;
                return 1;
        }
        if (r == -ENOMEM)
                return r;
        r = load(layer, NAME_OLD, ret);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                *ret = (struct index){0};
        return 0;
}

int index_save(int layer, const struct index *index) {
        struct head head = {.magic = HEAD, .n = index->n, .text = index->text.len};
        _cleanup_(closep) int fd = -1;
        char name[64];
        int r;

        snprintf(name, sizeof(name), INDEX_NEW ".%d", (int) gettid());
        fd = openat(layer, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, &head, sizeof(head));
        if (r >= 0 && index->n > 0)
                r = write_all(fd, index->entries, index->n * sizeof(*index->entries));
        if (r >= 0 && index->text.len > 0)
                r = write_all(fd, index->text.data, index->text.len);
        if (r >= 0 && renameat(layer, name, layer, NAME) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(layer, name, 0);
        return r;
}

void index_renew(int layer) {
        (void) renameat(layer, NAME_OLD, layer, NAME);
}

void index_expire(int layer) {
        (void) renameat(layer, NAME, layer, NAME_OLD);
}
