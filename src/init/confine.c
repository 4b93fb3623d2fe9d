/* See confine.h. */
#include "confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "../host/tree.h"
#include "../tree/tree.h"
#include "landlock.h"

/* ---- the scratch directory ---- */

static const char *const parents[] = {"/tmp", "/var/tmp", "/dev/shm"};

/* Directories of boxes whose init was killed: ours, and held by no process. */
static void sweep(int parent, const char *prefix) {
        int again = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = again < 0 ? NULL : fdopendir(again);
        struct dirent *entry;

        if (!dir) {
                closep(&again);
                return;
        }
        while ((entry = readdir(dir))) {
                _cleanup_(closep) int fd = -1;
                struct stat st;

                if (!startswith(entry->d_name, prefix))
                        continue;
                fd = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
                        tree_remove(parent, entry->d_name);
        }
        closedir(dir);
}

/* A sweeper may take it between the two steps: then it is made once more. */
static int make_in(int parent, const char *prefix, struct scratch *ret) {
        for (int i = 0; i < 16; i++) {
                _cleanup_(closep) int fd = -1;
                struct stat held, named;
                uint64_t number;

                if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                        return -EIO;
                snprintf(ret->name, sizeof(ret->name), "%s%012llx", prefix,
                         (unsigned long long) (number & 0xffffffffffffULL));
                if (mkdirat(parent, ret->name, 0700) < 0) {
                        if (errno == EEXIST)
                                continue;
                        return -errno;
                }
                fd = openat(parent, ret->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &held) < 0 ||
                    fstatat(parent, ret->name, &named, AT_SYMLINK_NOFOLLOW) < 0 || held.st_ino != named.st_ino)
                        continue;
                ret->lock = take_fd(&fd);
                return 0;
        }
        return -EAGAIN;
}

void confine_remove(struct scratch *scratch) {
        if (scratch->parent >= 0)
                tree_remove(scratch->parent, scratch->name);
        closep(&scratch->lock);
        closep(&scratch->parent);
}

static int make_scratch(struct scratch *ret, char *path, size_t room, struct hutch_error *err) {
        char prefix[32];
        int r = -ENOENT;

        snprintf(prefix, sizeof(prefix), "hutch-box-%u-", geteuid());
        for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
                _cleanup_(closep) int parent = open(parents[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                if (parent < 0)
                        continue;
                sweep(parent, prefix);
                r = make_in(parent, prefix, ret);
                if (r < 0)
                        continue;
                ret->parent = take_fd(&parent);
                snprintf(path, room, "%s/%s", parents[i], ret->name);
                return 0;
        }
        return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make a private directory in /tmp or /var/tmp: %s",
                         errno_text(-r));
}

/* ---- the plan with its real path ---- */

static int replace(char **text, const char *path) {
        _cleanup_(freep) char *before = NULL;
        char *whole, *at = strstr(*text, SCRATCH "/");

        if (!at)
                return 0;
        before = strndup(*text, (size_t) (at - *text));
        if (!before || asprintf(&whole, "%s%s%s", before, path, at + strlen(SCRATCH)) < 0)
                return -ENOMEM;
        *text = whole; /* the old one is the warden's copy */
        return 0;
}

static int replace_all(char ***list, const char *path) {
        _cleanup_(strv_freep) char **copy = NULL;
        int r = *list ? strv_copy(*list, &copy) : 0;

        for (char **at = copy; r >= 0 && at && *at; at++)
                r = replace(at, path);
        if (r < 0)
                return r;
        if (copy)
                *list = take_ptr(copy);
        return r;
}

static int adapt_plan(const struct plan *plan, const char *path, struct plan **ret) {
        struct plan *own = malloc(sizeof(*own));
        struct step *steps = calloc(plan->n_steps + 1, sizeof(*steps));
        int r;

        if (!own || !steps) {
                free(own);
                free(steps);
                return -ENOMEM;
        }
        *own = *plan;
        memcpy(steps, plan->steps, plan->n_steps * sizeof(*steps));
        own->steps = steps;
        r = own->channel ? replace(&own->channel, path) : 0;
        if (r >= 0)
                r = replace_all(&own->env, path);
        if (r >= 0)
                r = replace_all(&own->search, path);
        if (r >= 0)
                r = replace(&own->cwd, path);
        for (size_t i = 0; r >= 0 && i < own->n_steps; i++)
                r = replace(&own->steps[i].dest, path);
        *ret = own; /* lives as long as init */
        return r;
}

/* The box's own files, which it may change, in directories of its own. */
int init_write_seeds(const struct plan *plan, struct hutch_error *err) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];
                _cleanup_(closep) int fd = -1;

                if (s->kind != STEP_FILE || !(s->flags & STEP_SEED))
                        continue;
                fd = open(s->dest, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, s->mode);
                r = fd < 0 ? -errno : write_all(fd, s->text, strlen(s->text));
                if (r < 0)
                        error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot write %s: %s", s->dest, errno_text(-r));
        }
        return r;
}

/* XDG_RUNTIME_DIR where an engine mounted what is around it, as root's; made here, it has the box's owner. */
int init_make_runtime(const struct plan *plan, struct hutch_error *err) {
        char path[64];

        snprintf(path, sizeof(path), RUNTIME_DIR "%u", plan->uid);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make %s: %s", path, errno_text(errno));
        return 0;
}

/* A link in the box's own home, and the directories above it. */
static int make_link(const struct step *s, struct hutch_error *err) {
        _cleanup_(freep) char *path = strdup(s->dest);

        if (!path)
                return error_oom(err);
        for (char *at = path + 1; (at = strchr(at, '/')); at++) {
                *at = 0;
                if (mkdir(path, 0700) < 0 && errno != EEXIST)
                        return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make %s: %s", path,
                                         errno_text(errno));
                *at = '/';
        }
        if ((unlink(path) < 0 && errno != ENOENT) || symlink(s->text, path) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make %s: %s", path, errno_text(errno));
        return 0;
}

/* The directory that a session's shell gets its commands and streams from; the warden gets it as a descriptor. */
static int make_channel(const char *path, int *ret, struct hutch_error *err) {
        int fd = mkdir(path, 0700) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make %s: %s", path, errno_text(errno));
        *ret = fd;
        return 0;
}

bool confine_is_needed(const struct plan *plan) {
        return !(plan->traits & TRAIT_OWN_ROOT) && (plan->traits & TRAIT_LANDLOCK || plan->session);
}

int confine_prepare(struct init_input *in, struct scratch *ret, int *ret_channel, struct hutch_error *err) {
        struct plan *own;
        char path[128];
        int r;

        if (geteuid() == 0 && setgroups(0, NULL) < 0 && errno != EPERM)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot drop groups: %s", errno_text(errno));
        r = make_scratch(ret, path, sizeof(path), err);
        if (r < 0)
                return r;
        r = adapt_plan(in->plan, path, &own);
        if (r < 0)
                return error_oom(err);
        in->plan = own;
        for (size_t i = 0; i < own->n_steps; i++)
                if (own->steps[i].kind == STEP_TMPFS && mkdir(own->steps[i].dest, own->steps[i].mode) < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make %s: %s", own->steps[i].dest,
                                         errno_text(errno));
        r = init_write_seeds(own, err);
        for (size_t i = 0; r >= 0 && i < own->n_steps; i++)
                if (own->steps[i].kind == STEP_SYMLINK)
                        r = make_link(&own->steps[i], err);
        if (r < 0 || !own->session)
                return r;
        return make_channel(own->channel, ret_channel, err);
}

/* ---- rules ---- */

#define MOST_DEPTH 8

/* uid 0 reads what the mode bits keep from everybody else. So of /etc only what everybody may read is granted: a
 * directory as a whole if nothing in it is private, else each part by itself. Returns whether all was granted. */
static bool is_public(int dir, const char *name, struct stat *st) {
        return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
               (S_ISLNK(st->st_mode) || (S_ISREG(st->st_mode) && st->st_mode & S_IROTH) ||
                (S_ISDIR(st->st_mode) && (st->st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH)));
}

static bool all_public(int dir, int depth) {
        int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *list = again < 0 ? NULL : fdopendir(again);
        struct dirent *entry;
        bool all = list && depth < MOST_DEPTH;

        while (all && (entry = readdir(list))) {
                struct stat st;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                all = is_public(dir, entry->d_name, &st);
                if (all && S_ISDIR(st.st_mode)) {
                        _cleanup_(closep) int inner =
                                openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                        all = inner >= 0 && all_public(inner, depth + 1);
                }
        }
        if (list)
                closedir(list);
        else if (again >= 0)
                close(again);
        return all;
}

static int grant_public(int ruleset, const char *path, uint64_t rights, int depth, struct hutch_error *err) {
        _cleanup_(closep) int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *list;
        struct dirent *entry;
        int again, r = 0;

        if (dir < 0 || depth > MOST_DEPTH)
                return 0;
        if (all_public(dir, depth))
                return landlock_allow(ruleset, path, rights, err);
        again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        list = again < 0 ? NULL : fdopendir(again);
        while (r >= 0 && list && (entry = readdir(list))) {
                char inner[PATH_MAX];
                struct stat st;

                if (streq(entry->d_name, ".") || streq(entry->d_name, "..") || !is_public(dir, entry->d_name, &st) ||
                    S_ISLNK(st.st_mode) ||
                    (size_t) snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >= sizeof(inner))
                        continue;
                r = S_ISDIR(st.st_mode) ? grant_public(ruleset, inner, rights, depth + 1, err)
                                        : landlock_allow(ruleset, inner, rights, err);
        }
        if (list)
                closedir(list);
        return r;
}

static int check_source(const struct step *s, struct hutch_error *err) {
        struct stat st;

        if (!(s->flags & STEP_GRANTED) || s->kind == STEP_COW || stat(s->dest, &st) < 0)
                return 0;
        return tree_check(s->dest, &st, s->dev, s->ino, err);
}

int confine_make_landlock(const struct init_input *in, int *ret, struct hutch_error *err) {
        const struct plan *plan = in->plan;
        int abi = in->facts->landlock_abi;
        uint64_t handled = landlock_handled(abi);
        uint64_t execute = plan->commands ? LANDLOCK_ACCESS_FS_EXECUTE : 0;
        _cleanup_(closep) int ruleset = -1;
        int r;

        r = landlock_new(abi, plan_has_sockets(plan) ? 0 : HUTCH_LANDLOCK_NET_TCP,
                         HUTCH_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | HUTCH_LANDLOCK_SCOPE_SIGNAL, &ruleset, err);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                /* A copy is kept outside; the others are in the home. */
                if (s->kind == STEP_SEAL || s->kind == STEP_SYMLINK || s->kind == STEP_FILE)
                        continue;
                r = check_source(s, err);
                if (r < 0)
                        return r;
                if (s->flags & STEP_SYSTEM && geteuid() == 0 && streq(s->dest, "/etc"))
                        r = grant_public(ruleset, s->dest, LANDLOCK_READ & ~execute, 0, err);
                else if (plan->commands)
                        continue;
                else if (s->flags & STEP_WRITABLE)
                        r = landlock_allow(ruleset, s->dest, handled & ~LANDLOCK_DEVICES, err);
                else
                        r = landlock_allow(ruleset, s->dest, LANDLOCK_READ, err);
        }
        if (r < 0)
                return r;
        if (plan->commands)
                r = init_allow_commands(in, ruleset, handled, err);
        if (r < 0)
                return r;
        /* FIFOs are written to; nothing is made or removed, and the texts cannot be written to (session/channel.c). */
        if (plan->session)
                r = landlock_allow(ruleset, plan->channel, LANDLOCK_READ | LANDLOCK_ACCESS_FS_WRITE_FILE, err);
        if (r < 0)
                return r;
        *ret = take_fd(&ruleset);
        return 0;
}
