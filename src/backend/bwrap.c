/* bubblewrap: the plan's steps as its arguments, in their order, and init by exec in what it built.
 *
 * Arguments are passed by a descriptor (--args), so that no other process sees them; texts of files by separate
 * descriptors; the environment not at all: init gets it in the plan. init is pid 1 and inherits its socket, and its
 * program is a descriptor too, so no file of hutch is mounted in the box.
 *
 * bubblewrap creates missing mount points, even on the host, in a directory that is attached writable. So every
 * destination inside an attached directory is checked here first. It cannot bind a path of the box onto itself: what
 * the plan seals or pins there is bound from the host's path behind it.
 *
 * Its mount of devices comes as a whole (--dev), with the same entries that the plan lists one by one. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "backend.h"

#define PROGRAM_FD "/proc/self/fd/4" /* HANDOVER_PROGRAM of src/init/handover.h */

struct compiling {
        const struct plan *plan;
        struct launch_spec *spec;
        struct buf args; /* each ends with NUL */
        bool has_dev;
};

static void put(struct compiling *c, const char *arg) {
        buf_put(&c->args, arg, strlen(arg) + 1);
}

static void put3(struct compiling *c, const char *a, const char *b, const char *d) {
        put(c, a);
        put(c, b);
        put(c, d);
}

static void put_number(struct compiling *c, const char *option, const char *format, unsigned long long value) {
        char text[32];

        snprintf(text, sizeof(text), format[0] == 'o' ? "%llo" : "%llu", value);
        put(c, option);
        put(c, text);
}

/* What the devices that bubblewrap brings have anyway. */
static bool comes_with_dev(const struct step *s) {
        static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty",
                                            "pts",  "ptmx", "fd",   "stdin",  "stdout",  "stderr"};

        if (s->flags & STEP_GRANTED || !startswith(s->dest, "/dev/") || (s->origin && !streq(s->origin, "default")))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(s->dest + strlen("/dev/"), names[i]))
                        return true;
        return false;
}

/* The host's path behind a destination, according to the steps before step `n`: *ret is NULL if it is in something
 * private to the box. */
static int path_behind(const struct plan *plan, size_t n, const char *dest, char **ret) {
        const struct step *last = NULL;

        for (size_t i = 0; i < n; i++) {
                const struct step *s = &plan->steps[i];

                if (path_is_beneath(dest, s->dest) && s->kind != STEP_PIN && s->kind != STEP_SEAL &&
                    s->kind != STEP_SYMLINK)
                        last = s;
        }
        *ret = NULL;
        if (!last || last->kind != STEP_BIND)
                return 0;
        return asprintf(ret, "%s%s", last->source, path_tail(dest, last->dest)) < 0 ? -ENOMEM : 0;
}

static int refuse_place(struct hutch_error *err, const char *dest, const char *why) {
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP, "cannot attach anything at %s on 'bwrap': %s",
                         dest, why);
}

/* 1: the destination exists or is the box's own to make; 0: it does not exist, and need not. */
static int check_place(struct compiling *c, size_t n, bool directory, char **ret_behind, struct hutch_error *err) {
        const struct step *s = &c->plan->steps[n];
        char real[PATH_MAX];
        struct stat st;
        int r = path_behind(c->plan, n, s->dest, ret_behind);

        if (r < 0)
                return error_oom(err);
        if (!*ret_behind || startswith(*ret_behind, "/proc/"))
                return 1;
        if (lstat(*ret_behind, &st) < 0)
                return s->flags & STEP_REPLACE
                               ? 0
                               : refuse_place(err, s->dest, "it does not exist, and hutch creates nothing on the host");
        if (!realpath(*ret_behind, real) || !streq(real, *ret_behind))
                return s->flags & STEP_REPLACE ? 0 : refuse_place(err, s->dest, "a symbolic link leads to it");
        if (s->kind != STEP_SEAL && s->kind != STEP_HIDE && S_ISDIR(st.st_mode) != directory)
                return refuse_place(err, s->dest, directory ? "it is a file" : "it is a directory");
        return 1;
}

static int put_text(struct compiling *c, const char *option, unsigned mode, const char *text, const char *dest,
                    struct hutch_error *err) {
        int number = launch_spec_add_text(c->spec, text, strlen(text));

        if (number == -E2BIG)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, E2BIG,
                                 "too many hidden files and files of the box's own for 'bwrap' (%d at most)",
                                 LAUNCH_FDS);
        if (number < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, number, "cannot pass files to bwrap: %s",
                                 errno_text(-number));
        put_number(c, "--perms", "o", mode);
        put_number(c, option, "u", (unsigned long long) number);
        put(c, dest);
        return 0;
}

static int put_bind(struct compiling *c, size_t n, struct hutch_error *err) {
        const struct step *s = &c->plan->steps[n];
        _cleanup_(freep) char *behind = NULL;
        struct stat st;
        int r;

        if (stat(s->source, &st) < 0)
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "cannot attach %s: %s", s->source,
                                 errno_text(errno));
        r = check_place(c, n, S_ISDIR(st.st_mode), &behind, err);
        if (r <= 0)
                return r;
        put3(c,
             s->flags & STEP_DEVICES    ? "--dev-bind"
             : s->flags & STEP_WRITABLE ? "--bind"
                                        : "--ro-bind",
             s->source, s->dest);
        return 0;
}

static int put_tmpfs(struct compiling *c, size_t n, struct hutch_error *err) {
        const struct step *s = &c->plan->steps[n];
        _cleanup_(freep) char *behind = NULL;
        int r = check_place(c, n, true, &behind, err);

        if (r <= 0)
                return r;
        put_number(c, "--perms", "o", s->mode);
        if (c->plan->disk)
                put_number(c, "--size", "u", c->plan->disk);
        put(c, "--tmpfs");
        put(c, s->dest);
        return 0;
}

static int put_file(struct compiling *c, size_t n, struct hutch_error *err) {
        const struct step *s = &c->plan->steps[n];
        _cleanup_(freep) char *behind = NULL;
        int r = check_place(c, n, false, &behind, err);

        if (r <= 0)
                return r;
        return put_text(c, s->flags & STEP_SEED ? "--file" : "--ro-bind-data", s->mode, s->text, s->dest, err);
}

static void put_read_only(struct compiling *c, const char *dest) {
        put(c, "--remount-ro");
        put(c, dest);
}

static int put_hidden(struct compiling *c, size_t n, struct hutch_error *err) {
        const struct step *s = &c->plan->steps[n];
        _cleanup_(freep) char *behind = NULL;
        struct stat st;
        int r = check_place(c, n, false, &behind, err);

        if (r <= 0)
                return r;
        if (stat(behind ? behind : s->dest, &st) < 0) /* of /proc, the host's shows what the box's will have */
                return s->flags & STEP_REPLACE ? 0 : refuse_place(err, s->dest, "it does not exist");
        if (!S_ISDIR(st.st_mode))
                return put_text(c, "--ro-bind-data", 0, "", s->dest, err);
        put_number(c, "--perms", "o", 0555);
        put(c, "--tmpfs");
        put(c, s->dest);
        if (!plan_attaches_inside(c->plan, n)) /* bwrap has places to make in it first */
                put_read_only(c, s->dest);
        return 0;
}

/* Bound once more from the host: read-only, or so that it cannot be renamed away. */
static int put_again(struct compiling *c, size_t n, const char *option, struct hutch_error *err) {
        const struct step *s = &c->plan->steps[n];
        _cleanup_(freep) char *behind = NULL;
        int r;

        /* The kernel's own answers there depend on the reading process, whichever mount shows them. */
        if (path_is_beneath(s->dest, "/proc")) {
                put3(c, option, s->dest, s->dest);
                return 0;
        }
        r = check_place(c, n, true, &behind, err);
        if (r > 0 && behind)
                put3(c, option, behind, s->dest);
        return r < 0 ? r : 0;
}

static int put_step(struct compiling *c, size_t n, struct hutch_error *err) {
        const struct step *s = &c->plan->steps[n];

        if (comes_with_dev(s)) {
                if (!c->has_dev)
                        put(c, "--dev"), put(c, "/dev");
                c->has_dev = true;
                return 0;
        }
        switch (s->kind) {
        case STEP_BIND:
                return put_bind(c, n, err);
        case STEP_TMPFS:
                return put_tmpfs(c, n, err);
        case STEP_SYMLINK:
                put3(c, "--symlink", s->text, s->dest);
                return 0;
        case STEP_FILE:
                return put_file(c, n, err);
        case STEP_PROC:
                put(c, "--proc");
                put(c, s->dest);
                return 0;
        case STEP_HIDE:
                return put_hidden(c, n, err);
        case STEP_SEAL:
                return put_again(c, n, "--ro-bind", err);
        case STEP_PIN:
                return put_again(c, n, "--bind", err);
        default:
                return error_set(err, HUTCH_E_INTERNAL, EINVAL, "unknown step %d", (int) s->kind);
        }
}

static void put_namespaces(struct compiling *c) {
        const struct plan *plan = c->plan;

        put(c, "--unshare-user");
        put(c, "--unshare-ipc");
        put(c, "--unshare-pid");
        put(c, "--unshare-uts");
        put(c, "--unshare-cgroup-try");
        if (plan->traits & TRAIT_OWN_NET)
                put(c, "--unshare-net");
        put_number(c, "--uid", "u", plan->uid);
        put_number(c, "--gid", "u", plan->gid);
        if (plan->host_name) {
                put(c, "--hostname");
                put(c, plan->host_name);
        }
        put(c, "--as-pid-1");
        put(c, "--die-with-parent");
        put(c, "--clearenv");
}

static int not_installed(struct hutch_error *err) {
        return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ENOENT,
                         "bwrap is not installed (Debian, Ubuntu, Fedora: the package 'bubblewrap')");
}

static int compile(const struct plan *plan, const struct init_place *place _unused_, struct launch_spec *ret,
                   struct hutch_error *err) {
        struct compiling c = {.plan = plan, .spec = ret};
        char program[PATH_MAX], number[16];
        int r = backend_find_program("bwrap", strv_find_assignment(plan->engine_env, "PATH"), true, program);

        if (r < 0)
                return not_installed(err);
        put_namespaces(&c);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                r = put_step(&c, i, err);
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_HIDE && plan_attaches_inside(plan, i))
                        put_read_only(&c, plan->steps[i].dest);
        put_read_only(&c, "/dev");
        put_read_only(&c, "/");
        if (r >= 0 && c.args.oom)
                r = error_oom(err);
        if (r >= 0) {
                r = launch_spec_add_text(ret, c.args.data, c.args.len);
                if (r < 0)
                        error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot pass arguments to bwrap: %s", errno_text(-r));
        }
        buf_done(&c.args);
        if (r < 0)
                return r;
        snprintf(number, sizeof(number), "%d", r);
        r = strv_push(&ret->argv, program);
        for (const char *const *arg = (const char *const[]){"--args", number, PROGRAM_FD, "fd", NULL}; r >= 0 && *arg;
             arg++)
                r = strv_push(&ret->argv, *arg);
        return r < 0 ? error_oom(err) : 0;
}

static int check(const struct host_facts *facts, struct hutch_error *err) {
        char program[PATH_MAX];
        int r = backend_find_program("bwrap", getenv("PATH"), true, program);

        if (r == -EPERM)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, EPERM,
                                 "%s is setuid root, which is not supported: 'chmod u-s' it, or take another backend",
                                 program);
        if (r < 0)
                return not_installed(err);
        if (facts->privileged)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, EPERM,
                                 "a box built by bwrap for root would run as root: run hutch as an ordinary user");
        return 0;
}

static void offer(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret) {
        backend_namespace.offer(policy, facts, ret);
        ret->have[HUTCH_G_DISK] = STRENGTH_NONE;
        ret->lack[HUTCH_G_DISK] = "each of the box's own directories would have the limit for itself";
}

const struct backend backend_bwrap = {.name = "bwrap",
                                      .inherits = true,
                                      .traits = TRAIT_OWN_ROOT | TRAIT_OWN_PIDS | TRAIT_OWN_NET | TRAIT_OWN_IDS |
                                                TRAIT_OWN_IPC | TRAIT_FILTER | TRAIT_LANDLOCK | TRAIT_DELEGATED,
                                      .check = check,
                                      .offer = offer,
                                      .compile = compile};
