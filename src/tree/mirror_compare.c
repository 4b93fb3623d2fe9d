/* See mirror.h: what a copy was like, and what became of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "../base/buf.h"
#include "../base/io.h"
#include "copy.h"
#include "mirror_walk.h"
#include "upper.h"

#define NOTES_MOST ((size_t) 1 << 30)
#define FRESH "upper.next"

/* One entry in the file: these, and the path without a NUL. */
struct note {
        uint64_t ino;
        int64_t sec;
        uint32_t nsec, mode, len;
};

struct noted {
        struct note note;
        const char *path; /* NUL-terminated */
        bool seen, is_folder;
};

/* ---- noting ---- */

struct noting {
        struct buf text;
        struct timespec newest;
};

static bool is_later(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

static int note_folder(void *user, int dir, const struct stat *folder_st _unused_, const char *directory) {
        struct noting *n = user;
        _cleanup_(names_list_done) struct names_list names = {0};
        int r = tree_list(dir, &names);

        for (size_t i = 0; r >= 0 && i < names.n; i++) {
                _cleanup_(freep) char *path = tree_join(directory, names.names[i]);
                struct note note;
                struct stat st;

                if (!path)
                        return -ENOMEM;
                if (fstatat(dir, names.names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return -errno;
                note = (struct note){.ino = st.st_ino,
                                     .sec = st.st_ctim.tv_sec,
                                     .nsec = (uint32_t) st.st_ctim.tv_nsec,
                                     .mode = st.st_mode,
                                     .len = (uint32_t) strlen(path) + 1};
                buf_put(&n->text, &note, sizeof(note));
                buf_put(&n->text, path, note.len);
                if (is_later(&st.st_ctim, &n->newest))
                        n->newest = st.st_ctim;
        }
        return n->text.oom ? -ENOMEM : r;
}

/* Times have the clock's last tick: what the box changes within the same one as the copy was made would look unchanged.
 */
static void let_clock_pass(const struct timespec *newest) {
        for (int i = 0; i < 100; i++) {
                const struct timespec nap = {0, 500000};
                struct timespec now;

                if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0 || is_later(&now, newest))
                        return;
                nanosleep(&nap, NULL);
        }
}

int mirror_note(struct mirror *m, const char *name) {
        _cleanup_(closep) int copy = mirror_open(m, name), fd = -1;
        struct noting n = {0};
        int r = copy < 0 ? copy : mirror_walk(copy, true, note_folder, &n);

        if (r >= 0) {
                fd = openat(m->directory, MIRROR_NOTES ".next", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                            0600);
                r = fd < 0 ? -errno : write_all(fd, n.text.data, n.text.len);
        }
        if (r >= 0 && renameat(m->directory, MIRROR_NOTES ".next", m->directory, MIRROR_NOTES) < 0)
                r = -errno;
        buf_done(&n.text);
        if (r < 0)
                return r;
        let_clock_pass(&n.newest);
        return r;
}

/* ---- comparing ---- */

struct comparing {
        int copy, upper; /* the new one's root */
        struct noted *notes;
        size_t n;
        struct paths made; /* directories of the upper */
        struct copier copier;
        char *text;
};

static int by_path(const void *a, const void *b) {
        return strcmp(((const struct noted *) a)->path, ((const struct noted *) b)->path);
}

static struct noted *find(const struct comparing *c, const char *path) {
        const struct noted key = {.path = path};

        return c->n ? bsearch(&key, c->notes, c->n, sizeof(key), by_path) : NULL;
}

static int read_notes(const struct mirror *m, struct comparing *c) {
        size_t len = 0, room = 0;
        int r = read_whole_file(m->directory, MIRROR_NOTES, NOTES_MOST, &c->text, &len);

        for (size_t at = 0; r >= 0 && at < len;) {
                struct note note;
                struct noted *grown;

                if (len - at < sizeof(note))
                        return -EBADMSG;
                memcpy(&note, c->text + at, sizeof(note));
                at += sizeof(note);
                if (note.len == 0 || note.len > len - at || c->text[at + note.len - 1] != 0)
                        return -EBADMSG;
                if (c->n == room) {
                        room = room ? 2 * room : 256;
                        grown = reallocarray(c->notes, room, sizeof(*grown));
                        if (!grown)
                                return -ENOMEM;
                        c->notes = grown;
                }
                c->notes[c->n++] = (struct noted){.note = note, .path = c->text + at};
                at += note.len;
        }
        if (r < 0)
                return r;
        if (c->n)
                qsort(c->notes, c->n, sizeof(*c->notes), by_path);
        return r < 0 ? r : 0;
}

static int make_in_upper(struct comparing *c, const char *directory) {
        const char *name;
        _cleanup_(closep) int parent = tree_open_parent(c->upper, directory, &name);

        if (parent < 0)
                return parent;
        if (mkdirat(parent, name, 0700) < 0)
                return errno == EEXIST ? 0 : -errno;
        return paths_add(&c->made, directory);
}

/* The directory in the upper, created with its parents. */
static int open_in_upper(struct comparing *c, const char *directory) {
        _cleanup_(freep) char *part = strdup(directory);
        int r = 0, fd = tree_open(c->upper, directory, O_RDONLY | O_DIRECTORY);

        if (fd != -ENOENT)
                return fd;
        if (!part)
                return -ENOMEM;
        for (char *slash = strchr(part, '/'); r >= 0 && slash; slash = strchr(slash + 1, '/')) {
                *slash = 0;
                r = make_in_upper(c, part);
                *slash = '/';
        }
        if (r < 0)
                return r;
        r = make_in_upper(c, directory);
        return r < 0 ? r : tree_open(c->upper, directory, O_RDONLY | O_DIRECTORY);
}

static int put_entry(struct comparing *c, int dir, const char *directory, const char *name, const struct stat *st) {
        _cleanup_(closep) int dest = open_in_upper(c, directory);

        if (dest < 0)
                return dest;
        if (S_ISREG(st->st_mode) && linkat(dir, name, dest, name, 0) == 0)
                return 0;
        return copy_entry(&c->copier, dir, name, dest, st);
}

static int compare_one(struct comparing *c, int dir, const char *directory, const char *name) {
        _cleanup_(freep) char *path = tree_join(directory, name);
        struct noted *noted;
        struct stat st;
        bool same;
        int r;

        if (!path)
                return -ENOMEM;
        noted = find(c, path);
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        same = noted && noted->note.ino == st.st_ino && noted->note.sec == st.st_ctim.tv_sec &&
               noted->note.nsec == (uint32_t) st.st_ctim.tv_nsec;
        if (noted) {
                noted->seen = true;
                noted->is_folder = S_ISDIR(st.st_mode);
        }
        if (same)
                return 0;
        if (S_ISDIR(st.st_mode)) {
                _cleanup_(closep) int made = open_in_upper(c, path);

                return made < 0 ? made : 0;
        }
        /* Sockets are unused once the box has ended, and a box cannot create devices. */
        if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISFIFO(st.st_mode))
                return 0;
        r = put_entry(c, dir, directory, name, &st);
        return r == -ENOENT ? 0 : r;
}

static int compare_folder(void *user, int dir, const struct stat *st _unused_, const char *directory) {
        struct comparing *c = user;
        _cleanup_(names_list_done) struct names_list names = {0};
        int r = tree_list(dir, &names);

        for (size_t i = 0; r >= 0 && i < names.n; i++)
                r = compare_one(c, dir, directory, names.names[i]);
        return r;
}

/* What is missing, where the directory that it was in is still one. */
static int put_whiteouts(struct comparing *c) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < c->n; i++) {
                const char *slash = strrchr(c->notes[i].path, '/'), *name = slash ? slash + 1 : c->notes[i].path;
                _cleanup_(freep) char *directory =
                        slash ? strndup(c->notes[i].path, (size_t) (slash - c->notes[i].path)) : strdup("");
                _cleanup_(closep) int dest = -1;
                const struct noted *parent;

                if (!directory)
                        return -ENOMEM;
                parent = find(c, directory);
                if (c->notes[i].seen || (slash && (!parent || !parent->seen || !parent->is_folder)))
                        continue;
                dest = open_in_upper(c, directory);
                r = dest < 0 ? dest : tree_put_whiteout(dest, name);
        }
        return r;
}

static int dress_one(struct upper *copy, int upper, const char *directory) {
        struct stat st;
        _cleanup_(closep) int from = upper_open_folder(copy, directory, false, &st);
        _cleanup_(closep) int to = tree_open(upper, directory, O_RDONLY | O_DIRECTORY);

        return from < 0 || to < 0 ? 0 : mirror_dress(from, &st, to);
}

static int dress_made(const struct comparing *c) {
        _cleanup_(upper_done) struct upper copy = {.root = c->copy};
        int r = 0;

        for (size_t i = c->made.n; r >= 0 && i-- > 0;)
                r = dress_one(&copy, c->upper, c->made.items[i]);
        return r < 0 ? r : dress_one(&copy, c->upper, "");
}

static int compare(const struct mirror *m, const char *name, struct comparing *c) {
        int r = read_notes(m, c);

        if (r < 0)
                return r;
        c->copy = r = mirror_open(m, name);
        if (r < 0)
                return r;
        r = tree_remove(m->directory, FRESH);
        if (r < 0)
                return r;
        if (mkdirat(m->directory, FRESH, 0700) < 0)
                r = -errno;
        if (r < 0)
                return r;
        c->upper = openat(m->directory, FRESH, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = c->upper < 0 ? -errno : 0;
        if (r < 0)
                return r;
        r = mirror_walk(c->copy, true, compare_folder, c);
        if (r < 0)
                return r;
        r = put_whiteouts(c);
        if (r < 0)
                return r;
        r = dress_made(c);
        if (r < 0)
                return r;
        r = tree_remove(m->directory, "upper");
        if (r < 0)
                return r;
        if (renameat(m->directory, FRESH, m->directory, "upper") < 0)
                r = -errno;
        return r;
}

int mirror_compare(struct mirror *m, const char *name) {
        struct comparing c = {.copy = -1, .upper = -1, .copier = {.links = -1}};
        int r = compare(m, name, &c);

        closep(&c.copy);
        closep(&c.upper);
        paths_done(&c.made);
        free(c.notes);
        free(c.text);
        return r;
}
