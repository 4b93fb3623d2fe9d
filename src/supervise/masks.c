/* See masks.h. A mask is a mount over a file. When the host renames another file over it, as editors do to save, the
 * kernel removes the mount and the box sees the new file. So the directories that hold something hidden are watched,
 * and what appears there under a hidden name, or under a name that the same pattern hides, is masked again.
 *
 * Between the two the box can read it: a box that has it open then is ended, and one that closed it already goes
 * unseen. That is why each such event is a warning and the result reports `filesystem` as degraded. Where the host
 * writes, only the mask of a whole directory above is a wall. */
#include "masks.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "reattach.h"

#define MOST_DIRECTORIES 256
#define MOST_MASKS 8192 /* with those that appear */
#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW)

struct mask {
        char *host, *place;
        const char *names; /* the last name of its pattern, NULL: not of a pattern */
        bool changed, made;
};

struct directory {
        int wd;
        char *path;
};

struct masks {
        struct run *run;
        int inotify, mounts;
        struct watch *on_event;
        struct directory *directories;
        size_t n_directories;
        struct mask *masks;
        size_t n_masks, n_unwatched;
};

static void note(const struct masks *m, enum notice code, const char *subject, const char *text) {
        struct hutch_event event = event_notice(code, subject, NULL, text);

        if (m->run->in.event)
                m->run->in.event(m->run->in.event_user, &event);
}

static void give_up(struct masks *m, const char *path, const char *why) {
        if (m->run->failed)
                return;
        error_set(&m->run->outcome.error, HUTCH_E_POLICY_REFUSED, EPERM,
                  "%s is hidden and was replaced on the host, and %s: the box was ended", path, why);
        run_give_up(m->run);
}

static int add_mask(struct masks *m, const char *host, const char *place, const char *names, bool made) {
        struct mask *grown = m->n_masks < MOST_MASKS ? reallocarray(m->masks, m->n_masks + 1, sizeof(*grown)) : NULL;

        if (!grown)
                return -ENOMEM;
        m->masks = grown;
        grown[m->n_masks] = (struct mask){
                .host = strdup(host), .place = strdup(place), .names = names, .changed = made, .made = made};
        return grown[m->n_masks].host && grown[m->n_masks++].place ? 0 : -ENOMEM;
}

static int watch_directory(struct masks *m, const char *path) {
        struct directory *grown;
        int wd;

        for (size_t i = 0; i < m->n_directories; i++)
                if (streq(m->directories[i].path, path))
                        return 0;
        if (m->n_directories == MOST_DIRECTORIES) {
                m->n_unwatched++;
                return 0;
        }
        grown = reallocarray(m->directories, m->n_directories + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        m->directories = grown;
        wd = inotify_add_watch(m->inotify, path, EVENTS);
        if (wd < 0) {
                m->n_unwatched++;
                return 0;
        }
        grown[m->n_directories] = (struct directory){wd, strdup(path)};
        return grown[m->n_directories++].path ? 0 : -ENOMEM;
}

/* ---- repair ---- */

static void repair(struct masks *m) {
        _cleanup_(freep) struct reattach *places = calloc(m->n_masks + 1, sizeof(*places));
        size_t n = 0;

        for (size_t i = 0; places && i < m->n_masks; i++)
                if (m->masks[i].changed)
                        places[n++] = (struct reattach){.place = m->masks[i].place, .hide = true};
        if (n == 0)
                return;
        if (m->mounts >= 0)
                reattach(m->mounts, places, n);
        n = 0;
        for (size_t i = 0; i < m->n_masks; i++) {
                struct mask *one = &m->masks[i];
                _cleanup_(freep) char *text = NULL;
                const struct reattach *got = &places[n];

                if (!one->changed)
                        continue;
                n++;
                one->changed = false;
                if (m->mounts < 0 || (got->result < 0 && got->result != -ENOENT))
                        give_up(m, one->host, "it cannot be masked again");
                else if (got->writer && !one->made)
                        give_up(m, one->host, "the box had opened it before it was masked again");
                else if (got->result >= 0 && asprintf(&text,
                                                      "%s is hidden and %s while the box ran: it was masked at once, "
                                                      "but the box could have read it before",
                                                      one->host, one->made ? "appeared" : "was replaced") >= 0)
                        note(m, NOTICE_HIDDEN_REPLACED, one->host, text);
        }
}

/* ---- events ---- */

static bool is_known(const struct masks *m, const char *path) {
        for (size_t i = 0; i < m->n_masks; i++)
                if (streq(m->masks[i].host, path))
                        return true;
        return false;
}

static void see(struct masks *m, const char *directory, const char *name) {
        _cleanup_(freep) char *path = NULL;
        size_t n = m->n_masks;
        bool known;

        if (asprintf(&path, "%s/%s", directory, name) < 0)
                return;
        known = is_known(m, path);
        for (size_t i = 0; i < n; i++) {
                struct mask *one = &m->masks[i];
                _cleanup_(freep) char *place = NULL;
                bool twice = false;

                if (streq(one->host, path))
                        one->changed = true;
                else if (!known && one->names && path_is_beneath(one->host, directory) &&
                         !strchr(path_tail(one->host, directory) + 1, '/') && fnmatch(one->names, name, 0) == 0) {
                        if (asprintf(&place, "%.*s/%s", (int) (strrchr(one->place, '/') - one->place), one->place,
                                     name) < 0)
                                return;
                        for (size_t k = n; k < m->n_masks; k++)
                                twice = twice || streq(m->masks[k].place, place);
                        if (!twice && add_mask(m, path, place, m->masks[i].names, true) < 0)
                                give_up(m, path, "no more can be masked");
                }
        }
}

static void on_event(void *data, uint32_t events _unused_) {
        char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
        struct masks *m = data;
        ssize_t n;

        while ((n = read(m->inotify, buffer, sizeof(buffer))) > 0)
                for (char *at = buffer; at < buffer + n;) {
                        const struct inotify_event *e = (struct inotify_event *) (void *) at;

                        at += sizeof(*e) + e->len;
                        for (size_t i = 0; e->mask & IN_Q_OVERFLOW && i < m->n_masks; i++)
                                m->masks[i].changed = true;
                        for (size_t i = 0; e->len && i < m->n_directories; i++)
                                if (m->directories[i].wd == e->wd)
                                        see(m, m->directories[i].path, e->name);
                }
        repair(m);
}

/* ---- from start to end ---- */

static int set_up(struct masks *m) {
        const struct plan *plan = m->run->in.plan;
        int r = 0;

        m->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (m->inotify < 0)
                return -errno;
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];
                _cleanup_(freep) char *parent = NULL;

                if (s->kind != STEP_HIDE || !s->text)
                        continue;
                r = path_dirname(s->text, &parent);
                if (r >= 0)
                        r = add_mask(m, s->text, s->dest, s->source, false);
                if (r >= 0)
                        r = watch_directory(m, parent);
        }
        return r < 0 ? r : loop_watch(m->run->loop, m->inotify, EPOLLIN, on_event, m, &m->on_event);
}

int masks_start(struct run *run, struct masks **ret) {
        const struct plan *plan = run->in.plan;
        char text[160];
        struct masks *m;
        int r;

        if (!plan_watches_masks(plan))
                return 0;
        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        m->run = run;
        m->inotify = m->mounts = -1;
        r = set_up(m);
        if (r == -ENOMEM) {
                masks_free(m);
                return r;
        }
        if (r < 0)
                m->n_unwatched++;
        if (m->n_unwatched > 0) {
                snprintf(text, sizeof(text),
                         "%s directories with hidden files are not watched: what the host replaces there is visible",
                         r < 0 ? "the" : "some");
                note(m, NOTICE_GUARD_MISSING, NULL, text);
        }
        *ret = m;
        return 0;
}

void masks_take_namespace(struct masks *m, int mounts) {
        if (m && m->mounts < 0)
                m->mounts = fcntl(mounts, F_DUPFD_CLOEXEC, 3);
}

void masks_free(struct masks *m) {
        if (!m)
                return;
        watch_remove(&m->on_event);
        for (size_t i = 0; i < m->n_directories; i++)
                free(m->directories[i].path);
        for (size_t i = 0; i < m->n_masks; i++) {
                free(m->masks[i].host);
                free(m->masks[i].place);
        }
        free(m->directories);
        free(m->masks);
        closep(&m->inotify);
        closep(&m->mounts);
        free(m);
}
