/* See idmap.h. An id-mapped mount takes its mapping from a user namespace, and that exists only with a process in it:
 * one is made for each owner that occurs, and ends as soon as its namespace is held by a fd. */
#include "idmap.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../host/sys.h"
#include "../host/tree.h"

static int write_map(pid_t pid, const char *name, unsigned inside, unsigned outside, struct hutch_error *err) {
        char path[64], line[64];
        _cleanup_(closep) int fd = -1;
        int n, r;

        snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
        n = snprintf(line, sizeof(line), "%u %u 1", inside, outside);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        r = fd < 0 ? -errno : write_all(fd, line, (size_t) n);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot map ids (%s): %s", name, errno_text(-r));
        return 0;
}

int idmap_write(pid_t pid, uid_t inside, uid_t outside, gid_t gid_inside, gid_t gid_outside, struct hutch_error *err) {
        int r = write_map(pid, "uid_map", inside, outside, err);

        return r < 0 ? r : write_map(pid, "gid_map", gid_inside, gid_outside, err);
}

/* The namespaces made so far: most of what is attached has one owner. */
struct owner {
        uid_t uid;
        gid_t gid;
        int namespace;
};

struct preparation {
        const struct plan *plan;
        const struct host_facts *facts;
        struct owner owners[8];
        size_t n_owners;
};

/* A user namespace in which the files' owner is the box's id. */
static int make_namespace(const struct plan *plan, uid_t owner, gid_t group, int *ret, struct hutch_error *err) {
        char path[64];
        pid_t pid, parent = getpid();
        int fd, r;

        pid = sys_clone_fork(CLONE_NEWUSER);
        if (pid < 0)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, errno, "cannot make a user namespace: %s",
                                 errno_text(errno));
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent) /* it died before */
                        _exit(0);
                for (;;)
                        pause();
        }
        r = idmap_write(pid, owner, plan->host_uid, group, plan->host_gid, err);
        if (r >= 0) {
                snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0)
                        r = error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot open %s: %s", path, errno_text(errno));
                else
                        *ret = fd;
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return r;
}

static int find_namespace(struct preparation *p, uid_t uid, gid_t gid, int *ret, struct hutch_error *err) {
        int fd = -1, r;

        for (size_t i = 0; i < p->n_owners; i++)
                if (p->owners[i].uid == uid && p->owners[i].gid == gid) {
                        *ret = p->owners[i].namespace;
                        return 0;
                }
        r = make_namespace(p->plan, uid, gid, &fd, err);
        if (r < 0)
                return r;
        if (p->n_owners == ARRAY_SIZE(p->owners))
                close(p->owners[--p->n_owners].namespace);
        p->owners[p->n_owners++] = (struct owner){uid, gid, fd};
        *ret = fd;
        return 0;
}

static uint64_t attributes_of(const struct step *s) {
        return MOUNT_ATTR_NOSUID | (s->flags & STEP_WRITABLE ? 0 : MOUNT_ATTR_RDONLY) |
               (s->flags & STEP_DEVICES ? 0 : MOUNT_ATTR_NODEV) | (s->flags & STEP_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
}

static int prepare(struct preparation *p, const struct step *s, int *ret, struct hutch_error *err) {
        _cleanup_(closep) int source = tree_open_source(s->source, p->facts->openat2);
        struct stat st;
        int namespace = -1, fd, r;

        if (source < 0)
                return error_set(err, source == -ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_SETUP_FAILED, source,
                                 "cannot attach %s: %s", s->source, errno_text(-source));
        if (fstat(source, &st) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot look at %s: %s", s->source,
                                 errno_text(errno));
        r = tree_check(s->source, &st, s->dev, s->ino, err);
        if (r < 0)
                return r;
        if (s->flags & STEP_GRANTED) {
                r = find_namespace(p, s->owner, s->group, &namespace, err);
                if (r < 0)
                        return r;
        }
        /* The lower of an overlay is one file system; what is mounted inside of it has separate steps. */
        fd = tree_clone(source, s->kind != STEP_COW, attributes_of(s), namespace);
        if (fd < 0 && s->flags & STEP_SUBMOUNT)
                fd = tree_clone(source, false, attributes_of(s) | MOUNT_ATTR_RDONLY, -1);
        if (fd < 0 && namespace >= 0)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, fd,
                                 "started by root, %s would have to be attached by an id-mapped mount, and its file "
                                 "system has none (%s): "
                                 "run hutch as an ordinary user",
                                 s->source, errno_text(-fd));
        if (fd < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, fd, "cannot attach %s: %s%s", s->source, errno_text(-fd),
                                 fd == -EPERM ? ": run 'hutch doctor' for the reason" : "");
        *ret = fd;
        return 0;
}

/* The directories of layers are the warden's own. */
static int prepare_own(struct preparation *p, char *path, unsigned flags, int *ret, struct hutch_error *err) {
        const struct step directory = {.kind = STEP_BIND,
                                       .flags = STEP_GRANTED | flags,
                                       .owner = geteuid(),
                                       .group = getegid(),
                                       .source = path};

        return prepare(p, &directory, ret, err);
}

static int prepare_layer(struct preparation *p, const char *layers, const struct step *s, int *ret, int *ret_below,
                         struct hutch_error *err) {
        char path[PATH_MAX];
        int r = 0;

        if (layers) {
                snprintf(path, sizeof(path), "%s/%u", layers, s->layer);
                r = prepare_own(p, path, STEP_WRITABLE, ret, err);
                if (r == -EINVAL) /* no id-mapped mounts there: init goes on without */
                        r = 0;
        }
        for (size_t i = 0; r >= 0 && s->below && s->below[i]; i++)
                r = prepare_own(p, s->below[i], 0, &ret_below[i], err);
        return r;
}

size_t idmap_count(const struct plan *plan) {
        return 2 * plan->n_steps + plan_n_below(plan, NULL);
}

int idmap_prepare(const struct plan *plan, const struct host_facts *facts, const char *layers, int **ret,
                  struct hutch_error *err) {
        struct preparation p = {.plan = plan, .facts = facts};
        size_t n = plan->n_steps, all = idmap_count(plan);
        int *mounts = calloc(all + 1, sizeof(int));
        int r = 0;

        if (!mounts)
                return error_oom(err);
        for (size_t i = 0; i < all; i++)
                mounts[i] = -1;
        for (size_t i = 0; r >= 0 && i < n; i++) {
                const struct step *s = &plan->steps[i];

                if (s->kind == STEP_BIND || (s->kind == STEP_COW && !s->text))
                        r = prepare(&p, s, &mounts[i], err);
                if (r >= 0 && s->kind == STEP_COW && !s->text)
                        r = prepare_layer(&p, layers, s, &mounts[n + i], mounts + 2 * n + plan_n_below(plan, s), err);
        }
        while (p.n_owners > 0)
                close(p.owners[--p.n_owners].namespace);
        if (r < 0) {
                idmap_free(mounts, all);
                return r;
        }
        *ret = mounts;
        return 0;
}

void idmap_free(int *mounts, size_t n) {
        for (size_t i = 0; mounts && i < n; i++)
                closep(&mounts[i]);
        free(mounts);
}
