/* How the guard finds out what changed: by comparing, and by inotify where a box runs for longer.
 *
 * Closing an inotify instance waits for a grace period of the kernel, 5 to 13 ms, several times what a short command
 * takes. So the directories are listed before the box starts and compared with that 50 ms later, or at its end if that
 * comes first; what is new, gone or replaced is judged like an event. After 50 ms inotify takes over. Its watches are
 * set before the comparison, so nothing falls between the two. Where no instance is available (an ordinary user has 128
 * by default), comparing goes on all the time.
 *
 * A directory with too many names for that is watched by inotify from the start, if an instance is available. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../protect/names.h"
#include "guard_internal.h"

#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR)
#define WATCH_AFTER_MS 50
#define COMPARE_EVERY_MS 100
#define MOST_LISTED 4096
#define MOST_COMPARED ((size_t) 1 << 20) /* of a directory that was smaller when the box started */

/* ---- comparing ---- */

/* A box may take away the right to list a directory, and leave that to open what is in it: this one, or the one before.
 */
static int make_readable(const struct watched *w) {
        char path[32];
        struct stat st;

        if (fstat(w->fd, &st) < 0)
                return -errno;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
        return chmod(path, (st.st_mode & 07777) | 0700) < 0 ? -errno : 0;
}

static int list_names(const struct watched *w, size_t most, struct dirnames *ret) {
        int r = dirnames_take(w->fd, most, ret);

        if (r != -EACCES)
                return r;
        r = make_readable(w);
        return r < 0 ? r : dirnames_take(w->fd, most, ret);
}

/* Everything in it that was not there before. False: it cannot be listed now. */
static bool compare_names(struct guard *g, struct watched *w) {
        _cleanup_(dirnames_done) struct dirnames now = {0}, before = {0};
        int r = list_names(w, MOST_COMPARED, &now);

        if (r < 0 && r != -ENOENT) {
                if (r == -E2BIG || g->finished)
                        guard_give_up(g, w->path, "the names in it cannot be listed");
                return false;
        }
        before = take_struct(w->seen);
        w->seen = take_struct(now);
        for (const char *name = NULL; (name = dirnames_next(&w->seen, name));)
                if (!dirnames_has(&before, name))
                        guard_see(g, w, name);
        return true;
}

/* Another directory may stand in its place. The descriptor keeps its inode number from being used again. */
static void compare_place(struct guard *g, const struct watched *w) {
        const struct watched *above;
        struct stat st;

        if (lstat(w->path, &st) < 0 || (st.st_dev == w->dev && st.st_ino == w->ino))
                return;
        above = guard_watched_of(g, w->path);
        if (above)
                guard_see(g, above, path_basename(w->path));
}

static struct identity identify(const char *path) {
        struct statx st;

        if (!path || statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &st) < 0)
                return (struct identity){0};
        return (struct identity){st.stx_dev_major, st.stx_dev_minor, st.stx_ino,
                                 st.stx_mask & STATX_BTIME ? st.stx_btime : (struct statx_timestamp){0}};
}

static void compare_sealed(struct sealed *s) {
        struct identity now = identify(s->host);

        if (now.ino != s->seen.ino || now.major != s->seen.major || now.minor != s->seen.minor ||
            now.birth.tv_sec != s->seen.birth.tv_sec || now.birth.tv_nsec != s->seen.birth.tv_nsec)
                s->changed = true;
        s->seen = now;
}

static void compare_config(struct guard *g, size_t i) {
        const struct config *c = &g->configs[i];
        const struct watched *w = guard_watched_of(g, c->path);
        const char *name = path_basename(c->path);
        _cleanup_(freep) char *text = NULL;
        size_t len = 0;

        if (!w || guard_read_config(w->fd, name, &text, &len) == -ENOENT)
                return;
        if (!text || len != c->len || (c->good && memcmp(text, c->good, len) != 0))
                guard_see(g, w, name);
}

static bool compare(struct guard *g) {
        bool complete = true;

        for (size_t i = 0; i < g->n_sealed; i++)
                compare_sealed(&g->sealed[i]);
        for (size_t i = 0; i < g->n_watched; i++)
                compare_place(g, g->watched[i]);
        for (size_t i = 0; i < g->n_watched; i++)
                complete = compare_names(g, g->watched[i]) && complete;
        for (size_t i = 0; i < g->n_configs; i++)
                compare_config(g, i);
        guard_look_at_git(g);
        return complete;
}

/* ---- inotify ---- */

static void look_through(struct guard *g, const struct watched *w) {
        _cleanup_(dirnames_done) struct dirnames now = {0};
        int r = list_names(w, MOST_COMPARED, &now);

        if (r < 0 && r != -ENOENT) /* later, then */
                timer_set(g->run->loop, &g->timer, COMPARE_EVERY_MS);
        for (const char *name = NULL; (name = dirnames_next(&now, name));)
                guard_see(g, w, name);
}

static void read_events(struct guard *g) {
        char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
        ssize_t n;

        while ((n = read(g->inotify, buffer, sizeof(buffer))) > 0)
                for (char *at = buffer; at < buffer + n;) {
                        const struct inotify_event *e = (struct inotify_event *) (void *) at;

                        at += sizeof(*e) + e->len;
                        if (e->mask & IN_Q_OVERFLOW) {
                                g->touched = true;
                                for (size_t i = 0; i < g->n_sealed; i++)
                                        g->sealed[i].changed = true;
                                for (size_t i = 0; i < g->n_watched; i++)
                                        look_through(g, g->watched[i]);
                        }
                        for (size_t i = 0; e->len && i < g->n_watched; i++)
                                if (g->watched[i]->wd == e->wd) {
                                        guard_see(g, g->watched[i], e->name);
                                        break;
                                }
                        if (g->run->failed)
                                return;
                }
}

static void check_kept(struct guard *g) {
        if (!g->kept || !g->touched || g->run->failed)
                return;
        g->touched = false;
        kept_check(g->kept);
}

static void on_event(void *data, uint32_t events _unused_) {
        struct guard *g = data;

        read_events(g);
        check_kept(g);
        guard_ask_for_repair(g);
}

/* By descriptor: the path may lead elsewhere by now. */
static int watch_by_inotify(const struct guard *g, struct watched *w) {
        uint32_t events =
                EVENTS | (g->kept ? IN_CLOSE_WRITE | IN_ATTRIB : 0u) | (w->kind == KIND_GIT ? IN_CLOSE_WRITE : 0u);
        char path[32];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
        w->wd = inotify_add_watch(g->inotify, path, events);
        if (w->wd < 0 && errno == EACCES && make_readable(w) >= 0)
                w->wd = inotify_add_watch(g->inotify, path, events);
        return w->wd < 0 ? -errno : 0;
}

static void stop_inotify(struct guard *g) {
        watch_remove(&g->on_event);
        closep(&g->inotify);
        for (size_t i = 0; i < g->n_watched; i++)
                g->watched[i]->wd = -1;
}

static int start_inotify(struct guard *g) {
        int r = 0;

        g->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (g->inotify < 0)
                return -errno;
        for (size_t i = 0; r >= 0 && i < g->n_watched; i++)
                r = watch_by_inotify(g, g->watched[i]);
        if (r >= 0)
                r = loop_watch(g->run->loop, g->inotify, EPOLLIN, on_event, g, &g->on_event);
        if (r < 0)
                stop_inotify(g);
        return r;
}

static void on_timer(void *data) {
        struct guard *g = data;
        int r = g->inotify < 0 ? start_inotify(g) : 0;
        bool all = compare(g);

        g->touched = true; /* comparing sees names, and a kept file may have changed in place */
        check_kept(g);
        if (!all || r < 0)
                timer_set(g->run->loop, &g->timer, COMPARE_EVERY_MS);
        guard_ask_for_repair(g);
}

/* ---- what is watched ---- */

static bool is_watched(const struct guard *g, dev_t dev, ino_t ino) {
        for (size_t i = 0; i < g->n_watched; i++)
                if (g->watched[i]->dev == dev && g->watched[i]->ino == ino)
                        return true;
        return false;
}

/* `look`: what is in it already appeared while the box ran. */
int guard_watch_add(struct guard *g, const char *path, enum kind kind, size_t top, bool look) {
        _cleanup_(closep) int fd = -1;
        struct watched *w;
        struct stat st;
        int r;

        if (g->n_watched == MOST_WATCHES)
                return -ENOSPC;
        fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (is_watched(g, st.st_dev, st.st_ino))
                return 0;
        w = malloc(sizeof(*w));
        if (!w)
                return -ENOMEM;
        *w = (struct watched){.wd = -1, .fd = fd, .kind = kind, .top = top, .dev = st.st_dev, .ino = st.st_ino};
        w->path = strdup(path);
        r = !w->path ? -ENOMEM : g->inotify < 0 ? 0 : watch_by_inotify(g, w);
        if (r < 0) {
                free(w->path);
                free(w);
                return r;
        }
        take_fd(&fd);
        g->watched[g->n_watched++] = w;
        if (look && g->inotify < 0)
                compare_names(g, w);
        else if (look)
                look_through(g, w);
        return 0;
}

static struct watched *find_watched(const struct guard *g, const char *path, size_t len) {
        for (size_t i = 0; i < g->n_watched; i++)
                if (strncmp(g->watched[i]->path, path, len) == 0 && !g->watched[i]->path[len])
                        return g->watched[i];
        return NULL;
}

static int add_parents(struct guard *g, const char *top, const char *name) {
        size_t root = strlen(top);
        _cleanup_(freep) char *path = NULL;

        if (!strchr(name, '/'))
                return 0;
        if (asprintf(&path, "%s/%s", top, name) < 0)
                return -ENOMEM;
        for (char *from = path + root + 1, *at; (at = strchr(from, '/')); from = at + 1) {
                const struct watched *above = find_watched(g, path, (size_t) (from - 1 - path));

                if (!above || (above->seen.n_slots && !dirnames_may_have(&above->seen, from)))
                        break;
                if (find_watched(g, path, (size_t) (at - path)))
                        continue;
                *at = 0;
                if (guard_watch_add(g, path, KIND_NAMES, root, false) >= 0) {
                        struct watched *w = g->watched[g->n_watched - 1];

                        if (!w->seen.n_slots)
                                (void) list_names(w, MOST_LISTED, &w->seen);
                }
                *at = '/';
        }
        return 0;
}

/* The directories of patterns that exist, such as `.config` of `.config/mise`. Most do not. */
static int add_names(struct guard *g, const char *top) {
        const struct watched *w = find_watched(g, top, strlen(top));
        const struct dirnames *in = w && w->seen.n_slots ? &w->seen : NULL;
        char **own = g->run->in.plan->guard.names, name[256];
        bool tree;
        int r = 0;

        for (size_t i = 0; r >= 0 && names_fixed(&i, in, &tree, name, sizeof(name));)
                r = add_parents(g, top, name);
        for (; r >= 0 && own && *own; own++)
                r = add_parents(g, top, *own);
        return r;
}

static int add_git(struct guard *g, const char *directory) {
        static const char *const names[] = {"config", "config.worktree"};
        _cleanup_(freep) char *info = NULL;
        int r = guard_watch_add(g, directory, KIND_GIT, 0, false);

        if (r < 0 || asprintf(&info, "%s/info", directory) < 0)
                return r < 0 ? r : -ENOMEM;
        guard_watch_add(g, info, KIND_INFO, 0, false);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(freep) char *path = NULL;
                struct config *c;

                if (asprintf(&path, "%s/%s", directory, names[i]) < 0)
                        return -ENOMEM;
                c = guard_find_config(g, path, true);
                if (!c)
                        return -ENOMEM;
                read_whole_file(AT_FDCWD, path, MOST_CONFIG, &c->good, &c->len);
        }
        return 0;
}

static int add_top(struct guard *g, const char *top) {
        int r = guard_watch_add(g, top, KIND_NAMES, strlen(top), false);
        struct watched *w = find_watched(g, top, strlen(top));

        if (r < 0)
                return r;
        if (w && !w->seen.n_slots)
                (void) list_names(w, MOST_LISTED, &w->seen);
        return add_names(g, top);
}

/* What a later comparison is made with. */
static bool take_state(struct guard *g, size_t most) {
        for (size_t i = 0; i < g->n_watched; i++) {
                struct watched *w = g->watched[i];

                if (!w->seen.n_slots && list_names(w, most, &w->seen) < 0)
                        return false;
        }
        for (size_t i = 0; i < g->n_sealed; i++)
                g->sealed[i].seen = identify(g->sealed[i].host);
        return true;
}

int guard_watch_begin(struct guard *g) {
        const struct plan *plan = g->run->in.plan;
        int r = 0;

        g->sealed = calloc(plan->n_steps + 1, sizeof(*g->sealed));
        if (!g->sealed)
                return -ENOMEM;
        for (size_t i = 0; !g->kept && i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_SEAL && plan->steps[i].text)
                        g->sealed[g->n_sealed++] =
                                (struct sealed){.host = plan->steps[i].text, .place = plan->steps[i].dest};
        for (char **top = plan->guard.tops; r >= 0 && top && *top; top++)
                r = add_top(g, *top);
        for (char **git = plan->guard.git; r >= 0 && git && *git; git++)
                r = add_git(g, *git);
        if (r < 0)
                return r;
        for (char *const *d = g->kept ? kept_directories(g->kept) : NULL; d && *d; d++)
                guard_watch_add(g, *d, KIND_NAMES, strlen(*d), false); /* those that are watched stay what they are */
        g->timer = (struct timer){.fire = on_timer, .data = g};
        if (!take_state(g, MOST_LISTED)) {
                r = start_inotify(g);
                if (r >= 0 || !take_state(g, MOST_COMPARED))
                        return r;
        }
        timer_set(g->run->loop, &g->timer, WATCH_AFTER_MS);
        return 0;
}

void guard_watch_look(struct guard *g) {
        if (g->inotify >= 0)
                read_events(g);
        if (g->timer.at_ms != 0)
                compare(g);
}

void guard_watch_end(struct guard *g) {
        timer_clear(g->run->loop, &g->timer);
        stop_inotify(g);
        for (size_t i = 0; i < g->n_watched; i++) {
                free(g->watched[i]->path);
                close(g->watched[i]->fd);
                dirnames_done(&g->watched[i]->seen);
                free(g->watched[i]);
        }
}
