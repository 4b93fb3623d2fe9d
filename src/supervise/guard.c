/* The guard: it keeps what the host would run out of a box's hands while the box may write to the workspace.
 *
 * Protected names that exist are attached read-only. Two things are left to watch, by inotify on the few directories in
 * which such names lie (never a walk of the tree):
 *
 * - The host replaces such a file (git and editors rename a new one over it), which takes the read-only bind away. The
 *   guard stops the box, judges the new content, attaches the file again and lets the box continue. A box that has the
 * new file open for writing is ended.
 * - A name appears that was not there. Its creator cannot be determined; it is moved into quarantine and reported.
 *
 * A git configuration is judged by its content: keys that run programs and were not there before take it to quarantine,
 * and the last good content is restored. Between an event and the repair the host could briefly run what
 * it finds, so this is detection and repair, and reported as degraded. */
#include "guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../protect/gitconfig.h"
#include "../protect/names.h"
#include "quarantine.h"
#include "reattach.h"

#define MOST_WATCHES 256
#define MOST_MOVED 64
#define MOST_CONFIG ((size_t) 1 << 20)
#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR | IN_DONT_FOLLOW)

enum kind {
        KIND_NAMES, /* of the workspace's top, or a directory of a pattern: data/protected */
        KIND_GIT,   /* an administrative directory of git */
        KIND_INFO,  /* its info/ */
        KIND_HOOKS, /* hooks/ that was not there before */
};

struct watched {
        int wd, fd;
        enum kind kind;
        char *path;
        size_t top; /* the length of the workspace's path in it */
};

/* A name that is attached read-only at one place or two of the box. */
struct sealed {
        const char *host, *place;
        bool changed;
};

struct config {
        char *path, *good; /* the content that was judged last; NULL: none */
        size_t len;
};

struct guard {
        struct run *run;
        int inotify, mounts;
        struct watch *on_event;
        struct watched watched[MOST_WATCHES];
        size_t n_watched;
        struct sealed *sealed;
        size_t n_sealed;
        struct config *configs;
        size_t n_configs;
        unsigned moved;
        bool holding, finished;
};

static void note(const struct guard *g, enum notice code, const char *subject, const char *text) {
        struct hutch_event event = event_notice(code, subject, NULL, text);

        if (g->run->in.event)
                g->run->in.event(g->run->in.event_user, &event);
}

static bool is_spared(const struct guard *g, const char *path) {
        for (char **s = g->run->in.plan->guard.spared; s && *s; s++)
                if (path_is_beneath(path, *s))
                        return true;
        return false;
}

/* ---- quarantine ---- */

static void give_up(struct guard *g, const char *path, const char *why) {
        if (g->finished || g->run->failed)
                return;
        error_set(&g->run->outcome.error, HUTCH_E_POLICY_REFUSED, EPERM,
                  "%s: the host would run it, and %s: the box was ended", path, why);
        run_give_up(g->run);
}

static void move_away(struct guard *g, const struct watched *w, const char *path, const char *name, const char *why) {
        _cleanup_(freep) char *kept = NULL, *text = NULL;
        int r;

        if (g->moved >= MOST_MOVED) {
                give_up(g, path, "the box goes on making such names");
                return;
        }
        r = quarantine_move(g->run->in.plan->guard.quarantine, w->fd, w->path, name, &kept);
        if (r == -ENOENT)
                return;
        g->moved++;
        if (r < 0) {
                if (asprintf(&text,
                             "%s appeared while the box ran (%s) and could not be moved away: %s: look at it "
                             "before the host runs it",
                             path, why, errno_text(-r)) >= 0)
                        note(g, NOTICE_PROTECTED_MADE, path, text);
                return;
        }
        if (asprintf(&text, "%s appeared while the box ran (%s) and was moved to %s", path, why, kept) >= 0)
                note(g, NOTICE_PROTECTED_MADE, path, text);
}

/* ---- git configurations ---- */

static int read_config(int dir, const char *name, char **ret, size_t *ret_len) {
        _cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -ELOOP;
        return read_whole_fd(fd, MOST_CONFIG, ret, ret_len);
}

static struct config *find_config(struct guard *g, const char *path, bool make) {
        struct config *grown;

        for (size_t i = 0; i < g->n_configs; i++)
                if (streq(g->configs[i].path, path))
                        return &g->configs[i];
        grown = make ? reallocarray(g->configs, g->n_configs + 1, sizeof(*grown)) : NULL;
        if (!grown)
                return NULL;
        g->configs = grown;
        grown[g->n_configs] = (struct config){.path = strdup(path)};
        return grown[g->n_configs].path ? &grown[g->n_configs++] : NULL;
}

static void judge_config(struct guard *g, const struct watched *w, const char *path, const char *name) {
        struct config *c = find_config(g, path, true);
        _cleanup_(freep) char *text = NULL, *keys = NULL, *why = NULL;
        size_t len = 0;
        int r;

        if (!c)
                return;
        r = read_config(w->fd, name, &text, &len);
        if (r == -ENOENT)
                return;
        if (r >= 0)
                r = gitconfig_find_programs(text, len, c->good, c->len, &keys);
        if (r >= 0 && !keys) {
                free(c->good);
                c->good = take_ptr(text);
                c->len = len;
                return;
        }
        if (asprintf(&why, "keys that run programs: %s", keys ? keys : "it cannot be read") < 0)
                return;
        move_away(g, w, path, name, why);
        if (c->len > 0)
                quarantine_put_back(w->fd, name, c->good, c->len);
}

/* ---- what appears ---- */

static int add(struct guard *g, const char *path, enum kind kind, size_t top, bool look);

static void see_git(struct guard *g, const struct watched *w, const char *path, const char *name, mode_t type) {
        if (streq(name, "config") || streq(name, "config.worktree"))
                judge_config(g, w, path, name);
        else if (streq(name, "hooks") && type == S_IFDIR)
                add(g, path, KIND_HOOKS, w->top, true);
        else if (streq(name, "info") && type == S_IFDIR)
                add(g, path, KIND_INFO, w->top, true);
        else if (streq(name, "hooks") || streq(name, "info") || streq(name, "commondir") || streq(name, "gitdir"))
                move_away(g, w, path, name, "it steers git");
}

static void see_name(struct guard *g, const struct watched *w, const char *path, const char *name, mode_t type) {
        const char *pattern = NULL;
        char why[160];

        if (streq(name, ".git") && type == S_IFDIR && strlen(w->path) == w->top) {
                note(g, NOTICE_REPOSITORY_MADE, path, "the box made a git repository of the workspace");
                add(g, path, KIND_GIT, w->top, true);
                return;
        }
        switch (names_find(path, w->top, type == S_IFDIR, &pattern)) {
        case NAMES_EXACT:
                break;
        case NAMES_ABOVE:
                if (type == S_IFDIR) {
                        add(g, path, KIND_NAMES, w->top, true);
                        return;
                }
                break;
        default:
                return;
        }
        snprintf(why, sizeof(why), "protected name %s", pattern);
        move_away(g, w, path, name, why);
}

static void see(struct guard *g, const struct watched *w, const char *name) {
        _cleanup_(freep) char *path = NULL;
        struct stat st;
        size_t n = strlen(name);

        if (asprintf(&path, "%s/%s", w->path, name) < 0 || is_spared(g, path))
                return;
        for (size_t i = 0; i < g->n_sealed; i++)
                if (streq(g->sealed[i].host, path))
                        g->sealed[i].changed = true;
        for (size_t i = 0; i < g->n_sealed; i++)
                if (g->sealed[i].changed && streq(g->sealed[i].host, path))
                        return;
        if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        switch (w->kind) {
        case KIND_GIT:
                see_git(g, w, path, name, st.st_mode & S_IFMT);
                break;
        case KIND_INFO:
                if (streq(name, "attributes"))
                        move_away(g, w, path, name, "it steers git");
                break;
        case KIND_HOOKS:
                if (n < 7 || !streq(name + n - 7, ".sample"))
                        move_away(g, w, path, name, "a hook");
                break;
        case KIND_NAMES:
                see_name(g, w, path, name, st.st_mode & S_IFMT);
        }
}

static void look_through(struct guard *g, const struct watched *w) {
        int fd = openat(w->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (fd >= 0 && !d)
                close(fd);
        for (struct dirent *e; d && (e = readdir(d));)
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        see(g, w, e->d_name);
        if (d)
                closedir(d);
}

/* `look`: what is in it already appeared while the box ran. */
static int add(struct guard *g, const char *path, enum kind kind, size_t top, bool look) {
        struct watched *w = &g->watched[g->n_watched];

        if (g->n_watched == MOST_WATCHES)
                return -ENOSPC;
        *w = (struct watched){
                .kind = kind, .top = top, .fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
        if (w->fd < 0)
                return -errno;
        w->path = strdup(path);
        w->wd = w->path ? inotify_add_watch(g->inotify, path, EVENTS | (kind == KIND_GIT ? IN_CLOSE_WRITE : 0)) : -1;
        if (w->wd < 0) {
                int r = w->path ? -errno : -ENOMEM;

                free(w->path);
                close(w->fd);
                return r;
        }
        for (size_t i = 0; i < g->n_watched; i++)
                if (g->watched[i].wd == w->wd) {
                        free(w->path);
                        close(w->fd);
                        return 0;
                }
        g->n_watched++;
        if (look)
                look_through(g, w);
        return 0;
}

/* ---- repair ---- */

static const struct watched *watched_of(const struct guard *g, const char *path) {
        for (size_t i = 0; i < g->n_watched; i++) {
                const struct watched *w = &g->watched[i];

                if (path_is_beneath(path, w->path) && streq(path_tail(path, w->path) + 1, path_basename(path)))
                        return w;
        }
        return NULL;
}

static void repair(struct guard *g) {
        _cleanup_(freep) struct reattach *places = calloc(g->n_sealed + 1, sizeof(*places));
        size_t n = 0;

        if (!places)
                return;
        for (size_t i = 0; i < g->n_sealed; i++) {
                const struct watched *w = g->sealed[i].changed ? watched_of(g, g->sealed[i].host) : NULL;
                const char *name = path_basename(g->sealed[i].host);

                if (w && w->kind == KIND_GIT && startswith(name, "config"))
                        judge_config(g, w, g->sealed[i].host, name);
        }
        for (size_t i = 0; i < g->n_sealed; i++)
                if (g->sealed[i].changed)
                        places[n++].place = g->sealed[i].place;
        if (n > 0 && g->mounts >= 0 && !g->finished)
                reattach(g->mounts, places, n);
        n = 0;
        for (size_t i = 0; i < g->n_sealed; i++) {
                struct reattach *one = &places[n];
                _cleanup_(freep) char *text = NULL;

                if (!g->sealed[i].changed)
                        continue;
                n++;
                g->sealed[i].changed = false;
                if (g->finished)
                        continue;
                if (one->writer)
                        give_up(g, g->sealed[i].host, "the box has it open for writing");
                else if (one->result < 0 && one->result != -ENOENT)
                        give_up(g, g->sealed[i].host, "it cannot be attached read-only again");
                else if (asprintf(&text, "%s was replaced on the host while the box ran%s", g->sealed[i].host,
                                  g->mounts < 0 ? ": it is no longer read-only in the box"
                                                : ", and attached read-only again") >= 0)
                        note(g, NOTICE_PROTECTED_REPLACED, g->sealed[i].host, text);
        }
}

static void ask_for_repair(struct guard *g) {
        bool wanted = false;

        for (size_t i = 0; i < g->n_sealed; i++)
                wanted = wanted || g->sealed[i].changed;
        if (!wanted || g->holding)
                return;
        /* A session's box is stopped by its warden for other reasons; it is repaired while it runs. */
        if (!g->run->in.plan->session && g->run->in.plan->traits & TRAIT_OWN_PIDS &&
            run_order(g->run, ORDER_HOLD, HOLD_BEGIN, NULL, 0) >= 0)
                g->holding = true;
        else
                repair(g);
}

bool guard_take_held(struct guard *g, int result _unused_) {
        if (!g || !g->holding)
                return false;
        repair(g);
        g->holding = false;
        run_order(g->run, ORDER_HOLD, HOLD_END, NULL, 0);
        ask_for_repair(g);
        return true;
}

/* ---- events ---- */

static void read_events(struct guard *g) {
        char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
        ssize_t n;

        while ((n = read(g->inotify, buffer, sizeof(buffer))) > 0)
                for (char *at = buffer; at < buffer + n;) {
                        const struct inotify_event *e = (struct inotify_event *) (void *) at;

                        at += sizeof(*e) + e->len;
                        if (e->mask & IN_Q_OVERFLOW) {
                                for (size_t i = 0; i < g->n_sealed; i++)
                                        g->sealed[i].changed = true;
                                for (size_t i = 0; i < g->n_watched; i++)
                                        look_through(g, &g->watched[i]);
                        }
                        for (size_t i = 0; e->len && i < g->n_watched; i++)
                                if (g->watched[i].wd == e->wd) {
                                        see(g, &g->watched[i], e->name);
                                        break;
                                }
                        if (g->run->failed)
                                return;
                }
}

static void on_event(void *data, uint32_t events _unused_) {
        struct guard *g = data;

        read_events(g);
        ask_for_repair(g);
}

/* The directories of patterns that exist, such as `.config` of `.config/mise`. */
static void add_names(struct guard *g, const char *top) {
        char name[256], tried[256] = ""; /* many names in a row are in one directory */
        bool tree;

        for (size_t i = 0; names_fixed(&i, &tree, name, sizeof(name));)
                for (char *at = name; (at = strchr(at, '/')); at++) {
                        size_t len = (size_t) (at - name);
                        _cleanup_(freep) char *path = NULL;

                        if (strlen(tried) == len && strncmp(tried, name, len) == 0)
                                continue;
                        snprintf(tried, sizeof(tried), "%.*s", (int) len, name);
                        if (asprintf(&path, "%s/%s", top, tried) >= 0)
                                add(g, path, KIND_NAMES, strlen(top), false); /* most do not exist */
                }
}

static int add_git(struct guard *g, const char *directory) {
        static const char *const names[] = {"config", "config.worktree"};
        _cleanup_(freep) char *info = NULL;
        int r = add(g, directory, KIND_GIT, 0, false);

        if (r < 0 || asprintf(&info, "%s/info", directory) < 0)
                return r < 0 ? r : -ENOMEM;
        add(g, info, KIND_INFO, 0, false);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(freep) char *path = NULL;
                struct config *c;

                if (asprintf(&path, "%s/%s", directory, names[i]) < 0)
                        return -ENOMEM;
                c = find_config(g, path, true);
                if (!c)
                        return -ENOMEM;
                read_whole_file(AT_FDCWD, path, MOST_CONFIG, &c->good, &c->len);
        }
        return 0;
}

static int set_up(struct guard *g) {
        const struct plan *plan = g->run->in.plan;
        int r = 0;

        g->sealed = calloc(plan->n_steps + 1, sizeof(*g->sealed));
        g->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (!g->sealed || g->inotify < 0)
                return g->sealed ? -errno : -ENOMEM;
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_SEAL && plan->steps[i].text)
                        g->sealed[g->n_sealed++] = (struct sealed){plan->steps[i].text, plan->steps[i].dest, false};
        for (char **top = plan->guard.tops; r >= 0 && top && *top; top++) {
                r = add(g, *top, KIND_NAMES, strlen(*top), false);
                add_names(g, *top);
        }
        for (char **git = plan->guard.git; r >= 0 && git && *git; git++)
                r = add_git(g, *git);
        return r < 0 ? r : loop_watch(g->run->loop, g->inotify, EPOLLIN, on_event, g, &g->on_event);
}

int guard_start(struct run *run, struct guard **ret) {
        struct guard *g;
        int r;

        if (!run->in.plan->guard.quarantine)
                return 0;
        g = calloc(1, sizeof(*g));
        if (!g)
                return -ENOMEM;
        g->run = run;
        g->inotify = g->mounts = -1;
        r = set_up(g);
        if (r < 0) {
                note(g, NOTICE_GUARD_MISSING, NULL,
                     "the workspace's protected names are not watched: inotify is not available");
                guard_free(g);
                return r == -ENOMEM ? r : 0;
        }
        *ret = g;
        return 0;
}

void guard_take_namespace(struct guard *g, int mounts) {
        if (g && g->mounts < 0)
                g->mounts = mounts;
        else
                closep(&mounts);
}

/* A git of the host that is at work has read what the box may have put there a moment ago, and will write it. */
static void wait_for_locks(const struct guard *g) {
        const struct timespec moment = {.tv_nsec = 10000000};

        for (unsigned tries = 0; tries < 20; tries++) {
                bool locked = false;

                for (size_t i = 0; i < g->n_configs; i++) {
                        _cleanup_(freep) char *lock = NULL;

                        locked = locked ||
                                 (asprintf(&lock, "%s.lock", g->configs[i].path) >= 0 && access(lock, F_OK) == 0);
                }
                if (!locked)
                        return;
                nanosleep(&moment, NULL);
        }
}

void guard_finish(struct guard *g) {
        if (!g || g->finished)
                return;
        g->finished = true;
        wait_for_locks(g);
        read_events(g);
        repair(g);
        read_events(g); /* what the repair itself put back */
}

void guard_free(struct guard *g) {
        if (!g)
                return;
        watch_remove(&g->on_event);
        for (size_t i = 0; i < g->n_watched; i++) {
                free(g->watched[i].path);
                close(g->watched[i].fd);
        }
        for (size_t i = 0; i < g->n_configs; i++) {
                free(g->configs[i].path);
                free(g->configs[i].good);
        }
        free(g->configs);
        free(g->sealed);
        closep(&g->inotify);
        closep(&g->mounts);
        free(g);
}
