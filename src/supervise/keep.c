/* Files of an agent's that a box has as copies: credentials, ~/.claude.json (STEP_KEEP).
 *
 * Agents save such a file by renaming a new one over it, which no bind mount of a single file allows. So init copies
 * the host's file into the box's home, and this part, outside of the box, looks at the copies twice a second and once
 * more at the end. What the box saved goes to the host by a rename too: the host's agent never sees half a file, and a
 * killed hutch loses what was saved in the last half second at most.
 *
 * The copies are hostile. They are opened beneath the home that init sent, without links and without leaving its file
 * system, and must be regular files of a bounded size that is JSON where the name says so. Of a file with rules only
 * the listed keys are carried over (keys.c), into what the host has by then. Of the others the last save wins, of the
 * host or of the box; what the host saves goes into the box, where the box has not saved anything itself. A file that
 * the box removes stays on the host.
 *
 * A lock on the host's directory keeps two boxes apart. An agent on the host does not take it; between reading the
 * host's file and renaming ours over it lie microseconds, in which a save of the host's would be lost. */
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "keys.h"
#include "run_internal.h"

#define LOOK_EVERY_MS 500
#define MOST_KEYS ((size_t) 16 << 20) /* of a file with rules */
#define MOST_WHOLE ((size_t) 1 << 20)
#define LOCK_TRIES 100
#define BOX_ONLY (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

/* What distinguishes one state of a file from another. */
struct stamp {
        ino_t ino;
        off_t size;
        struct timespec mtime, ctime;
};

struct kept {
        const char *rules;  /* NULL: the whole file */
        const char *inside; /* the path below the box's home */
        char *dir, *name;   /* of the host's file, links resolved */
        size_t most;
        char *text; /* what the box was known to have last, NULL: no file; after a save, what the host has too */
        size_t len;
        struct stamp box, host;
        bool complained;
};

struct keep {
        struct run *run;
        int home; /* of the box, -1: not yet */
        struct timer timer;
        struct kept *files;
        struct kept_text *texts;
        size_t n;
        bool finished;
};

static struct stamp stamp_of(const struct stat *st) {
        return (struct stamp){st->st_ino, st->st_size, st->st_mtim, st->st_ctim};
}

static bool is_same(const struct stamp *a, const struct stamp *b) {
        return a->ino == b->ino && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
               a->mtime.tv_nsec == b->mtime.tv_nsec && a->ctime.tv_sec == b->ctime.tv_sec &&
               a->ctime.tv_nsec == b->ctime.tv_nsec;
}

static bool has_text(const struct kept *f, const char *text, size_t len) {
        return f->text && text && f->len == len && memcmp(f->text, text, len) == 0;
}

static void complain(struct keep *k, struct kept *f, const char *why) {
        _cleanup_(freep) char *path = NULL, *text = NULL;
        struct hutch_event event;

        if (f->complained || !k->run->in.event || asprintf(&path, "%s/%s", f->dir, f->name) < 0 ||
            asprintf(&text, "%s: the box's changes to it were not saved: %s", path, why) < 0)
                return;
        f->complained = true;
        event = event_notice(NOTICE_KEPT_NOT_SAVED, path, NULL, text);
        k->run->in.event(k->run->in.event_user, &event);
}

/* A regular file that did not change while it was read: 0, -EAGAIN, or -errno. */
static int read_still(int fd, size_t most, struct stamp *ret_stamp, char **ret, size_t *ret_len) {
        _cleanup_(freep) char *text = NULL;
        struct stat before, after;
        struct stamp first, second;
        size_t len;
        int r;

        if (fstat(fd, &before) < 0)
                return -errno;
        if (!S_ISREG(before.st_mode))
                return -ELOOP;
        if ((uint64_t) before.st_size > most)
                return -EFBIG;
        r = read_whole_fd(fd, most, &text, &len);
        if (r < 0)
                return r;
        if (fstat(fd, &after) < 0)
                return -errno;
        first = stamp_of(&before);
        second = stamp_of(&after);
        if (!is_same(&first, &second))
                return -EAGAIN;
        *ret_stamp = second;
        *ret_len = len;
        *ret = take_ptr(text);
        return 0;
}

/* ---- the host's file ---- */

static int open_host_dir(const struct kept *f, bool make) {
        int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT && make && (mkdir(f->dir, 0700) == 0 || errno == EEXIST))
                fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int read_host(int dir, const struct kept *f, struct stamp *ret_stamp, char **ret, size_t *ret_len) {
        _cleanup_(closep) int fd = openat(dir, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        return fd < 0 ? -errno : read_still(fd, f->most, ret_stamp, ret, ret_len);
}

/* Under the lock, so a file of that name is what a killed hutch left. */
static int replace(int dir, const char *name, mode_t mode, uid_t owner, gid_t group, const char *text, size_t len) {
        _cleanup_(freep) char *temporary = NULL;
        _cleanup_(closep) int fd = -1;
        int r;

        if (asprintf(&temporary, ".%s.hutch", name) < 0)
                return -ENOMEM;
        unlinkat(dir, temporary, 0);
        fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, len);
        if (r >= 0 && owner != geteuid() && fchown(fd, owner, group) < 0)
                r = -errno;
        if (r >= 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || renameat(dir, temporary, dir, name) < 0))
                r = -errno;
        if (r < 0)
                unlinkat(dir, temporary, 0);
        return r;
}

static int write_host(int dir, struct kept *f, const char *text, size_t len) {
        struct stat st = {.st_mode = S_IFREG | 0600, .st_uid = geteuid(), .st_gid = getegid()};
        int r;

        if (fstatat(dir, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ELOOP;
        r = replace(dir, f->name, st.st_mode & 0777, st.st_uid, st.st_gid, text, len);
        if (r < 0)
                return r;
        fsync(dir);
        if (fstatat(dir, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                f->host = stamp_of(&st);
        return 0;
}

static int merge_into_host(int dir, struct kept *f, const char *text, size_t len) {
        _cleanup_(freep) char *host = NULL, *merged = NULL;
        size_t host_len = 0, merged_len = 0;
        struct stamp stamp;
        int r = read_host(dir, f, &stamp, &host, &host_len);

        if (r < 0 && r != -ENOENT)
                return r;
        r = keys_merge(f->rules, host, host_len, text, len, f->text, f->len, &merged, &merged_len);
        if (r <= 0)
                return r;
        return merged_len > f->most ? -EFBIG : write_host(dir, f, merged, merged_len);
}

/* -EAGAIN: another box has the lock. */
static int save(struct kept *f, const char *text, size_t len) {
        _cleanup_(closep) int dir = open_host_dir(f, true);

        if (dir < 0)
                return dir;
        if (flock(dir, LOCK_EX | LOCK_NB) < 0)
                return -EAGAIN;
        return f->rules ? merge_into_host(dir, f, text, len) : write_host(dir, f, text, len);
}

/* ---- the box's copy ---- */

static int open_box(const struct keep *k, const struct kept *f) {
        int fd = sys_openat2(k->home, f->inside, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, BOX_ONLY);

        return fd < 0 ? -errno : fd;
}

static bool is_json(const struct kept *f) {
        size_t n = strlen(f->name);

        return n > 5 && streq(f->name + n - 5, ".json");
}

static void look_at_box(struct keep *k, struct kept *f) {
        _cleanup_(closep) int fd = open_box(k, f);
        _cleanup_(freep) char *text = NULL;
        struct stamp stamp;
        struct stat st;
        size_t len = 0;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return;
        stamp = stamp_of(&st);
        if (is_same(&stamp, &f->box))
                return;
        r = read_still(fd, f->most, &stamp, &text, &len);
        if (r == -EAGAIN) /* it is being written */
                return;
        if (r == -ELOOP || r == -EFBIG) {
                complain(k, f, r == -ELOOP ? "it is not a regular file" : "it is too large");
                f->box = stamp;
                return;
        }
        if (r < 0)
                return;
        if (has_text(f, text, len)) {
                f->box = stamp;
                return;
        }
        /* Half a file, or none of the agent's. */
        r = is_json(f) ? keys_check(text, len) : 0;
        if (r >= 0)
                r = save(f, text, len);
        if (r == -EAGAIN || r == -ENOMEM)
                return; /* the next look does it */
        f->box = stamp;
        if (r < 0) {
                if (r != -EBADMSG || k->finished)
                        complain(k, f,
                                 r == -EBADMSG   ? "it is not JSON"
                                 : r == -EUCLEAN ? "the host's file is not JSON"
                                                 : errno_text(-r));
                return;
        }
        free(f->text);
        f->text = take_ptr(text);
        f->len = len;
}

/* What an agent on the host or another box saved, such as a renewed token. Not where root started the box: its ids do
 * not exist in the box's file system. */
static void look_at_host(struct keep *k, struct kept *f) {
        _cleanup_(closep) int dir = -1, box = -1;
        _cleanup_(freep) char *text = NULL, *above = NULL;
        struct stamp stamp, now;
        struct stat st;
        size_t len = 0;

        if (f->rules || k->finished || k->run->in.plan->map_by_parent)
                return;
        dir = open_host_dir(f, false);
        if (dir < 0 || fstatat(dir, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        stamp = stamp_of(&st);
        if (is_same(&stamp, &f->host) || read_host(dir, f, &stamp, &text, &len) < 0)
                return;
        f->host = stamp;
        if (has_text(f, text, len) || (is_json(f) && keys_check(text, len) < 0))
                return;
        box = open_box(k, f);
        if (box >= 0 && (fstat(box, &st) < 0 || (now = stamp_of(&st), !is_same(&now, &f->box))))
                return; /* the box saved too, later than the host as far as anyone can tell */
        closep(&box);
        if (strchr(f->inside, '/') && path_dirname(f->inside, &above) < 0)
                return;
        box = sys_openat2(k->home, above ? above : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, BOX_ONLY);
        if (box < 0 || replace(box, f->name, 0600, geteuid(), getegid(), text, len) < 0 ||
            fstatat(box, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        f->box = stamp_of(&st);
        free(f->text);
        f->text = take_ptr(text);
        f->len = len;
}

static void look(struct keep *k) {
        for (size_t i = 0; k->home >= 0 && i < k->n; i++) {
                look_at_box(k, &k->files[i]);
                look_at_host(k, &k->files[i]);
        }
}

static void on_time(void *data) {
        struct keep *k = data;

        look(k);
        timer_set(k->run->loop, &k->timer, LOOK_EVERY_MS);
}

void keep_take_home(struct keep *k, int home) {
        struct stat st;

        if (!k || k->home >= 0) {
                closep(&home);
                return;
        }
        k->home = home;
        /* What init wrote is no save. A box that was faster is seen by the content. */
        for (size_t i = 0; i < k->n; i++) {
                _cleanup_(closep) int fd = k->texts[i].data ? open_box(k, &k->files[i]) : -1;

                if (fd >= 0 && fstat(fd, &st) == 0 && (size_t) st.st_size == k->files[i].len) {
                        _cleanup_(freep) char *text = NULL;
                        struct stamp stamp;
                        size_t len;

                        if (read_still(fd, k->files[i].most, &stamp, &text, &len) >= 0 &&
                            has_text(&k->files[i], text, len))
                                k->files[i].box = stamp;
                }
        }
        timer_set(k->run->loop, &k->timer, LOOK_EVERY_MS);
}

static int begin(struct kept *f, const struct step *s, const char *home) {
        _cleanup_(freep) char *real = realpath(s->source, NULL);
        _cleanup_(closep) int dir = -1;
        const char *path = real ? real : s->source;
        int r;

        f->rules = s->text;
        f->most = s->text ? MOST_KEYS : MOST_WHOLE;
        f->inside = path_tail(s->dest, home) + 1;
        f->name = strdup(path_basename(path));
        r = path_dirname(path, &f->dir);
        if (!f->name || r < 0)
                return -ENOMEM;
        dir = open_host_dir(f, false);
        r = dir < 0 ? dir : read_host(dir, f, &f->host, &f->text, &f->len);
        return r == -ENOMEM ? r : 0;
}

int keep_start(struct run *run, struct keep **ret, const struct kept_text **ret_texts) {
        const struct plan *plan = run->in.plan;
        struct keep *k;
        size_t n = 0;

        for (size_t i = 0; i < plan->n_steps; i++)
                n += plan->steps[i].kind == STEP_KEEP;
        if (n == 0)
                return 0;
        k = calloc(1, sizeof(*k));
        if (!k)
                return -ENOMEM;
        *ret = k;
        k->run = run;
        k->home = -1;
        k->timer = (struct timer){.fire = on_time, .data = k};
        k->files = calloc(n, sizeof(*k->files));
        k->texts = calloc(n, sizeof(*k->texts));
        if (!k->files || !k->texts)
                return -ENOMEM;
        for (size_t i = 0; i < plan->n_steps; i++) {
                struct kept *f = &k->files[k->n];

                if (plan->steps[i].kind != STEP_KEEP)
                        continue;
                k->n++;
                if (begin(f, &plan->steps[i], plan->home) < 0)
                        return -ENOMEM;
                k->texts[k->n - 1] = (struct kept_text){f->text, f->len};
        }
        *ret_texts = k->texts;
        return 0;
}

/* Another box may hold a lock for a moment. */
void keep_finish(struct keep *k) {
        const struct timespec moment = {.tv_nsec = 10000000};

        if (!k || k->finished)
                return;
        timer_clear(k->run->loop, &k->timer);
        k->finished = true;
        for (unsigned tries = 0; k->home >= 0 && tries < LOCK_TRIES; tries++) {
                bool pending = false;

                look(k);
                for (size_t i = 0; i < k->n; i++) {
                        _cleanup_(closep) int fd = open_box(k, &k->files[i]);
                        struct stamp stamp;
                        struct stat st;

                        if (fd < 0 || fstat(fd, &st) < 0)
                                continue;
                        stamp = stamp_of(&st);
                        pending = pending || !is_same(&stamp, &k->files[i].box);
                }
                if (!pending)
                        return;
                nanosleep(&moment, NULL);
        }
        for (size_t i = 0; k->home >= 0 && i < k->n; i++)
                complain(k, &k->files[i], "another box is saving it");
}

void keep_free(struct keep *k) {
        if (!k)
                return;
        timer_clear(k->run->loop, &k->timer);
        for (size_t i = 0; i < k->n; i++) {
                free(k->files[i].dir);
                free(k->files[i].name);
                free(k->files[i].text);
        }
        free(k->files);
        free(k->texts);
        closep(&k->home);
        free(k);
}
