/* The guard: it keeps what the host would run out of a box's hands while the box may write to the workspace.
 *
 * Protected names that exist are attached read-only. Two things are left to watch, in the few directories in which such
 * names lie (never a walk of the tree; guard_watch.c):
 *
 * - The host replaces such a file (git and editors rename a new one over it), which takes the read-only bind away. The
 *   guard stops the box, judges the new content, attaches the file again and lets the box continue. A box that has the
 * new file open for writing is ended.
 * - A name appears that was not there. Its creator cannot be determined; it is moved into quarantine and reported.
 *
 * A box without a mount namespace may change what exists, too: there copies are kept and restored (kept.c).
 *
 * A git configuration is judged by its content: keys that run programs and were not there before take it to quarantine,
 * and the last good content is restored. Between an event and the repair the host could briefly run what
 * it finds, so this is detection and repair, and reported as degraded. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/text.h"
#include "../protect/gitconfig.h"
#include "../protect/names.h"
#include "../protect/rerere.h"
#include "guard_internal.h"
#include "quarantine.h"
#include "reattach.h"

#define MOST_MOVED 64

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

void guard_give_up(struct guard *g, const char *path, const char *why) {
        _cleanup_(freep) char *text = NULL;

        if (g->run->failed)
                return;
        if (g->finished) {
                if (asprintf(&text, "%s: the host would run it, and %s", path, why) >= 0)
                        note(g, NOTICE_PROTECTED_MADE, path, text);
                return;
        }
        error_set(&g->run->outcome.error, HUTCH_E_POLICY_REFUSED, EPERM,
                  "%s: the host would run it, and %s: the box was ended", path, why);
        run_give_up(g->run);
}

static void move_away(struct guard *g, const struct watched *w, const char *path, const char *name, const char *why) {
        _cleanup_(freep) char *kept = NULL, *text = NULL;
        int r;

        if (g->moved >= MOST_MOVED) {
                guard_give_up(g, path, "the box goes on making such names");
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

int guard_read_config(int dir, const char *name, char **ret, size_t *ret_len) {
        _cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -ELOOP;
        return read_whole_fd(fd, MOST_CONFIG, ret, ret_len);
}

struct config *guard_find_config(struct guard *g, const char *path, bool make) {
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
        struct config *c = guard_find_config(g, path, true);
        _cleanup_(freep) char *text = NULL, *keys = NULL, *why = NULL;
        size_t len = 0;
        int r;

        if (!c)
                return;
        r = guard_read_config(w->fd, name, &text, &len);
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
                quarantine_put_back(w->fd, name, c->good, c->len, 0644);
}

/* The box writes this file as git does; only what leads git elsewhere is taken away. */
static void judge_rerere(struct guard *g, const struct watched *w, const char *path, const char *name) {
        _cleanup_(freep) char *text = NULL, *found = NULL, *why = NULL;
        size_t len = 0;
        int r = guard_read_config(w->fd, name, &text, &len);

        if (r == -ENOENT)
                return;
        if (r >= 0)
                r = rerere_find(text, len, &found);
        if (r >= 0 && !found)
                return;
        if (found)
                text_clean_in_place(found);
        if (asprintf(&why, "with it git writes %s", found ? found : "what cannot be examined") >= 0)
                move_away(g, w, path, name, why);
}

void guard_look_at_git(struct guard *g) {
        for (size_t i = 0; i < g->n_watched; i++)
                if (g->watched[i]->kind == KIND_GIT)
                        guard_see(g, g->watched[i], "MERGE_RR");
}

/* ---- what appears ---- */

static void see_git(struct guard *g, const struct watched *w, const char *path, const char *name, mode_t type) {
        if (streq(name, "config") || streq(name, "config.worktree"))
                judge_config(g, w, path, name);
        else if (streq(name, "MERGE_RR"))
                judge_rerere(g, w, path, name);
        else if (streq(name, "hooks") && type == S_IFDIR)
                guard_watch_add(g, path, KIND_HOOKS, w->top, true);
        else if (streq(name, "info") && type == S_IFDIR)
                guard_watch_add(g, path, KIND_INFO, w->top, true);
        else if (streq(name, "hooks") || streq(name, "info") || streq(name, "commondir") || streq(name, "gitdir"))
                move_away(g, w, path, name, "it steers git");
}

/* By data/protected, and by what the policy adds below the workspace. */
static enum names_match find_name(const struct guard *g, const struct watched *w, const char *path, bool directory,
                                  const char **ret) {
        const struct guard_input *input = &g->run->in.plan->guard;
        enum names_match found = names_find(path, w->top, directory, ret), own;
        const char *name;

        for (char **top = input->names ? input->tops : NULL; found != NAMES_EXACT && top && *top; top++) {
                if (!path_is_beneath(path, *top) || streq(path, *top))
                        continue;
                own = names_listed(input->names, path_tail(path, *top) + 1, &name);
                if (own == NAMES_NONE)
                        continue;
                found = own;
                *ret = name;
        }
        return found;
}

static void see_name(struct guard *g, const struct watched *w, const char *path, const char *name, mode_t type) {
        const char *pattern = NULL;
        char why[160];

        if (streq(name, ".git") && type == S_IFDIR && strlen(w->path) == w->top) {
                note(g, NOTICE_REPOSITORY_MADE, path, "the box made a git repository of the workspace");
                guard_watch_add(g, path, KIND_GIT, w->top, true);
                return;
        }
        switch (find_name(g, w, path, type == S_IFDIR, &pattern)) {
        case NAMES_EXACT:
                break;
        case NAMES_ABOVE:
                if (type == S_IFDIR) {
                        guard_watch_add(g, path, KIND_NAMES, w->top, true);
                        return;
                }
                break;
        default:
                return;
        }
        snprintf(why, sizeof(why), "protected name %s", pattern);
        move_away(g, w, path, name, why);
}

void guard_see(struct guard *g, const struct watched *w, const char *name) {
        _cleanup_(freep) char *path = NULL;
        struct stat st;
        size_t n = strlen(name);

        if (asprintf(&path, "%s/%s", w->path, name) < 0 || is_spared(g, path))
                return;
        if (g->kept && kept_concerns(g->kept, path)) {
                g->touched = true;
                if (kept_holds(g->kept, path))
                        return;
        }
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

/* ---- repair ---- */

const struct watched *guard_watched_of(const struct guard *g, const char *path) {
        for (size_t i = 0; i < g->n_watched; i++) {
                const struct watched *w = g->watched[i];

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
                const struct watched *w = g->sealed[i].changed ? guard_watched_of(g, g->sealed[i].host) : NULL;
                const char *name = path_basename(g->sealed[i].host);

                if (w && w->kind == KIND_GIT && startswith(name, "config"))
                        judge_config(g, w, g->sealed[i].host, name);
        }
        for (size_t i = 0; i < g->n_sealed; i++)
                if (g->sealed[i].changed)
                        places[n++].place = g->sealed[i].place;
        if (n > 0 && g->mounts >= 0 && !g->finished)
                reattach(g->mounts, places, n);
        for (size_t i = 0; i < n && g->mounts < 0 && plan_mounts_on_hold(g->run->in.plan); i++)
                places[i].result = -EBADF; /* init could not send them */
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
                        guard_give_up(g, g->sealed[i].host, "the box has it open for writing");
                else if (one->result < 0 && one->result != -ENOENT)
                        guard_give_up(g, g->sealed[i].host, "it cannot be attached read-only again");
                else if (asprintf(&text, "%s was replaced on the host while the box ran%s", g->sealed[i].host,
                                  g->mounts < 0 ? ": it is no longer read-only in the box"
                                                : ", and attached read-only again") >= 0)
                        note(g, NOTICE_PROTECTED_REPLACED, g->sealed[i].host, text);
        }
}

void guard_ask_for_repair(struct guard *g) {
        bool wanted = false;

        for (size_t i = 0; i < g->n_sealed; i++)
                wanted = wanted || g->sealed[i].changed;
        if (!wanted || g->holding)
                return;
        /* A session's box is stopped by its warden for other reasons; it is repaired while it runs. */
        if (!g->run->in.plan->session && g->run->in.plan->traits & TRAIT_OWN_PIDS &&
            run_order(g->run, ORDER_HOLD, HOLD_BEGIN, NULL, 0) >= 0)
                g->holding = true;
        else if (!plan_mounts_on_hold(g->run->in.plan)) /* else init is gone, and the box with it */
                repair(g);
}

bool guard_take_held(struct guard *g, int mounts) {
        if (!g || !g->holding)
                return false;
        guard_take_namespace(g, mounts);
        repair(g);
        closep(&g->mounts);
        g->holding = false;
        run_order(g->run, ORDER_HOLD, HOLD_END, NULL, 0);
        guard_ask_for_repair(g);
        return true;
}

/* ---- the life of a guard ---- */

static void report_kept(void *data, const char *path, const char *text) {
        note(data, NOTICE_PROTECTED_MADE, path, text);
}

static void give_up_kept(void *data, const char *path) {
        guard_give_up(data, path, "the box goes on changing it");
}

int guard_start(struct run *run, struct guard **ret, struct hutch_error *err) {
        struct kept_user user = {.report = report_kept, .give_up = give_up_kept};
        struct guard *g;
        int r;

        if (!run->in.plan->guard.quarantine)
                return 0;
        /* The guard makes readable what a box has closed, and must not do that to a workspace that its owner closed. */
        for (char **top = run->in.plan->guard.tops; top && *top; top++)
                if (access(*top, X_OK) < 0 && errno == EACCES)
                        return error_set(err, HUTCH_E_PATH_MISSING, errno, "cannot enter %s: %s", *top,
                                         errno_text(errno));
        g = calloc(1, sizeof(*g));
        if (!g)
                return error_oom(err);
        g->run = run;
        g->inotify = g->mounts = -1;
        user.data = g;
        r = kept_new(run->in.plan, &user, &g->kept);
        if (r >= 0)
                r = guard_watch_begin(g);
        if (r < 0) {
                note(g, NOTICE_GUARD_MISSING, NULL,
                     "the workspace's protected names are not watched: inotify is not available");
                guard_free(g);
                return r == -ENOMEM ? error_oom(err) : 0;
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
        guard_watch_look(g);
        guard_look_at_git(g);
        repair(g);
        guard_watch_look(g); /* what the repair itself put back */
        timer_clear(g->run->loop, &g->timer);
        if (g->kept)
                kept_finish(g->kept);
}

void guard_free(struct guard *g) {
        if (!g)
                return;
        guard_watch_end(g);
        for (size_t i = 0; i < g->n_configs; i++) {
                free(g->configs[i].path);
                free(g->configs[i].good);
        }
        free(g->configs);
        free(g->sealed);
        kept_free(g->kept);
        closep(&g->mounts);
        free(g);
}
