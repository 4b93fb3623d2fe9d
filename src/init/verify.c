/* Checks from inside the isolation that another program built; see handover.h.
 *
 * The program may be another version than hutch was tested with, ignore an option silently (systemd's user manager
 * does), or be an imitation. So the options passed to it do not count; what the kernel shows here does: namespaces
 * other than the warden's, the mounts' flags, only the files that the plan names in directories that are otherwise
 * empty in the plan, no network interface but `lo`. */
#include "handover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "../base/path.h"
#include "../base/strv.h"

const char *const handover_namespaces[N_NAMESPACES] = {"mnt", "pid", "net", "ipc", "user"};

static const enum trait namespace_traits[N_NAMESPACES] = {TRAIT_OWN_ROOT, TRAIT_OWN_PIDS, TRAIT_OWN_NET, TRAIT_OWN_IPC,
                                                          TRAIT_OWN_IDS};

void handover_read_namespaces(uint64_t ret[N_NAMESPACES]) {
        for (size_t i = 0; i < N_NAMESPACES; i++) {
                char path[32];
                struct stat st;

                snprintf(path, sizeof(path), "/proc/self/ns/%s", handover_namespaces[i]);
                ret[i] = stat(path, &st) < 0 ? 0 : st.st_ino;
        }
}

static int fault(struct hutch_error *err, const struct plan *plan, const char *what, const char *path) {
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EPERM,
                         "'%s' did not build the walls that were asked for: %s %s", plan->backend, path, what);
}

/* Where the plan uses the host's paths, the program still has separate mounts and users to enforce them. */
static bool is_of_unit(size_t i) {
        return streq(handover_namespaces[i], "mnt") || streq(handover_namespaces[i], "user");
}

static int check_namespaces(const struct init_input *in, struct hutch_error *err) {
        uint64_t own[N_NAMESPACES];

        handover_read_namespaces(own);
        for (size_t i = 0; i < N_NAMESPACES; i++)
                if ((in->plan->traits & namespace_traits[i] ||
                     (!(in->plan->traits & TRAIT_OWN_ROOT) && is_of_unit(i))) &&
                    (own[i] == 0 || in->outside[i] == 0 || own[i] == in->outside[i]))
                        return fault(err, in->plan, "namespace is not the box's own", handover_namespaces[i]);
        if (in->plan->traits & TRAIT_OWN_PIDS && getpid() != 1)
                return fault(err, in->plan, "is not pid 1", "init");
        return 0;
}

static int check_network(const struct plan *plan, struct hutch_error *err) {
        struct if_nameindex *list;
        char foreign[IF_NAMESIZE] = "";

        if (!(plan->traits & TRAIT_OWN_NET))
                return 0;
        list = if_nameindex();
        if (!list)
                return fault(err, plan, "cannot be listed", "network interfaces");
        for (struct if_nameindex *at = list; at->if_index; at++)
                if (!streq(at->if_name, "lo"))
                        snprintf(foreign, sizeof(foreign), "%s", at->if_name);
        if_freenameindex(list);
        return foreign[0] ? fault(err, plan, "is a network interface in the box", foreign) : 0;
}

/* Whether a later step is mounted over this one's place. */
static bool is_covered(const struct plan *plan, size_t i) {
        for (size_t k = i + 1; k < plan->n_steps; k++)
                if (plan->steps[k].kind != STEP_PIN && plan->steps[k].kind != STEP_SYMLINK &&
                    path_is_beneath(plan->steps[i].dest, plan->steps[k].dest))
                        return true;
        return false;
}

/* Only what the plan puts there exists there. */
static int check_entries(const struct plan *plan, const char *path, struct hutch_error *err) {
        DIR *dir = opendir(path);
        struct dirent *entry;
        int r = 0;

        if (!dir)
                return fault(err, plan, "cannot be listed", path);
        while (r >= 0 && (entry = readdir(dir))) {
                char inner[4096];
                bool known = false;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                snprintf(inner, sizeof(inner), "%s/%s", streq(path, "/") ? "" : path, entry->d_name);
                for (size_t i = 0; !known && i < plan->n_steps; i++)
                        known = path_is_beneath(plan->steps[i].dest, inner);
                if (!known)
                        r = fault(err, plan, "is in the box, and not in its plan", inner);
        }
        closedir(dir);
        return r;
}

static int check_tmpfs(const struct plan *plan, const struct step *s, struct hutch_error *err) {
        struct statfs fs;

        if (statfs(s->dest, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
                return fault(err, plan, "is not a file system of the box's own", s->dest);
        return check_entries(plan, s->dest, err);
}

static int check_read_only(const struct plan *plan, const struct step *s, struct hutch_error *err) {
        struct statvfs fs;

        if (statvfs(s->dest, &fs) < 0)
                return errno == ENOENT && s->flags & STEP_REPLACE ? 0 : fault(err, plan, "is missing", s->dest);
        return fs.f_flag & ST_RDONLY ? 0 : fault(err, plan, "is writable", s->dest);
}

static int check_bind(const struct plan *plan, const struct step *s, struct hutch_error *err) {
        struct stat st;

        if (stat(s->dest, &st) < 0)
                return fault(err, plan, "is missing", s->dest);
        if (s->ino && (st.st_ino != s->ino || st.st_dev != s->dev))
                return fault(err, plan, "is not what the plan attaches there", s->dest);
        return s->flags & STEP_WRITABLE ? 0 : check_read_only(plan, s, err);
}

static int check_hidden(const struct plan *plan, const struct step *s, struct hutch_error *err) {
        struct stat st;
        struct statfs fs;

        if (stat(s->dest, &st) < 0)
                return errno == ENOENT || errno == EACCES ? 0 : fault(err, plan, "cannot be looked at", s->dest);
        if (S_ISDIR(st.st_mode))
                return statfs(s->dest, &fs) == 0 && fs.f_type == TMPFS_MAGIC
                               ? check_entries(plan, s->dest, err)
                               : fault(err, plan, "is not hidden", s->dest);
        return st.st_size == 0 && (statfs(s->dest, &fs) < 0 || fs.f_type == TMPFS_MAGIC)
                       ? 0
                       : fault(err, plan, "is not hidden", s->dest);
}

static int check_step(const struct plan *plan, size_t i, struct hutch_error *err) {
        const struct step *s = &plan->steps[i];

        if (is_covered(plan, i))
                return 0;
        /* With the host's root the kernel's own files are as they are, and Landlock keeps them. */
        if (!(plan->traits & TRAIT_OWN_ROOT) && (s->kind == STEP_TMPFS || path_is_beneath(s->dest, "/proc") ||
                                                 path_is_beneath(s->dest, "/sys") || path_is_beneath(s->dest, "/dev")))
                return 0;
        switch (s->kind) {
        case STEP_BIND:
                return check_bind(plan, s, err);
        case STEP_TMPFS:
                return check_tmpfs(plan, s, err);
        case STEP_HIDE:
                return check_hidden(plan, s, err);
        case STEP_SEAL:
                return check_read_only(plan, s, err);
        case STEP_FILE:
                return s->flags & STEP_WRITABLE ? 0 : check_read_only(plan, s, err);
        default:
                return 0;
        }
}

/* The caller's home: an empty file system but for what the plan attaches. */
static int check_home(const struct plan *plan, struct hutch_error *err) {
        const char *home = strv_find_assignment(plan->engine_env, "HOME");
        const struct step own = {.kind = STEP_TMPFS, .dest = (char *) home};

        return home ? check_tmpfs(plan, &own, err) : 0;
}

/* The root shows what the plan names, unless it is one that the plan takes as it is. */
static int check_root(const struct plan *plan, struct hutch_error *err) {
        const struct step root = {.kind = STEP_SEAL, .dest = (char *) "/"};
        int r;

        r = check_read_only(plan, &root, err);
        if (!(plan->traits & TRAIT_OWN_ROOT))
                return r < 0 ? r : check_home(plan, err);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                if (streq(plan->steps[i].dest, "/"))
                        return 0;
        return r < 0 ? r : check_entries(plan, "/", err);
}

int init_verify(const struct init_input *in, struct hutch_error *err) {
        int r;

        r = check_namespaces(in, err);
        if (r < 0)
                return r;
        r = check_network(in->plan, err);
        if (r < 0)
                return r;
        r = check_root(in->plan, err);
        for (size_t i = 0; r >= 0 && i < in->plan->n_steps; i++)
                r = check_step(in->plan, i, err);
        return r < 0 ? r : init_verify_limits(in, err);
}
