/* Finding out what the host can do; see facts.h. Decides nothing. */
#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/parse.h"
#include "probe.h"
#include "sys.h"

/* Boxes of root run under this host id. It is above the ranges that distributions, systemd and container engines
 * assign, so that nothing on the host belongs to it. In a container with fewer ids the highest one is used. */
#define BOX_UID 0x7fff0000u
#define BOX_UID_FALLBACK 65534u

/* Whether `id` is mapped in this user namespace, from the text of /proc/self/uid_map; *ret_total counts all mapped ids.
 * *ret_real_root is set if an id outside of them is 0.
 */
static bool id_is_mapped(const char *map, uid_t id, bool *ret_real_root, unsigned long long *ret_total) {
        unsigned long long inside, outside, count, total = 0;
        bool found = false;
        int n;

        while (sscanf(map, " %llu %llu %llu%n", &inside, &outside, &count, &n) == 3) {
                if (id >= inside && id - inside < count)
                        found = true;
                if (outside == 0)
                        *ret_real_root = true;
                total += count;
                map += n;
        }
        *ret_total = total;
        return found;
}

static int read_identity(struct host_facts *f, struct hutch_error *err) {
        _cleanup_(freep) char *map = NULL;
        unsigned long long total;
        bool real_root = false;
        gid_t groups[64];
        int n, r;

        f->uid = geteuid();
        f->gid = getegid();
        n = getgroups(ARRAY_SIZE(groups), groups);
        if (n < 0)
                f->n_groups = (size_t) getgroups(0, NULL);
        for (int i = 0; i < n; i++)
                if (groups[i] != f->gid)
                        f->n_groups++;
        if (f->uid != 0)
                return 0;

        /* uid 0 in a namespace that maps only that id is an ordinary user; with more ids it is a root, and a box that
         * ran under its id would own what root owns. */
        r = read_whole_file(AT_FDCWD, "/proc/self/uid_map", 65536, &map, NULL);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot read /proc/self/uid_map: %s", errno_text(-r));
        if (id_is_mapped(map, BOX_UID, &real_root, &total))
                f->box_uid = BOX_UID;
        else if (id_is_mapped(map, BOX_UID_FALLBACK, &real_root, &total))
                f->box_uid = BOX_UID_FALLBACK;
        f->privileged = total > 1 || real_root;
        return 0;
}

/* The others of the family look at rights first; but a filter that has them fail with ENOSYS shows. */
static bool has_older_calls(void) {
        bool has = sys_fsopen("") >= 0 || errno != ENOSYS;

        has = (sys_open_tree(-1, "", ~0u) >= 0 || errno != ENOSYS) && has;
        return (sys_move_mount(-1, "", -1, "", ~0u) >= 0 || errno != ENOSYS) && has;
}

/* For tests: an older Landlock than the kernel's. It can only be less. */
static int cap_abi(int abi) {
        const char *text = getenv("HUTCH_LANDLOCK_ABI");
        int most = text && text[0] >= '0' && text[0] <= '9' ? atoi(text) : abi;

        return most < abi ? most : abi;
}

static bool reads_as(const char *path, char digit) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        char first = 0;

        return fd >= 0 && read(fd, &first, 1) == 1 && first == digit;
}

static bool is_read_only(const char *path) {
        struct statvfs fs;

        return statvfs(path, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

/* Signs that user namespaces may be refused, or, with a /proc that a container engine covered in part, a new /proc in
 * one. Without such signs the launch is the trial; with them, namespaces are tried before a backend is chosen. */
static bool doubts_namespaces(void) {
        return prctl(PR_GET_SECCOMP) > 0 || is_read_only("/proc/sys") ||
               reads_as("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1') ||
               reads_as("/proc/sys/kernel/unprivileged_userns_clone", '0') ||
               reads_as("/proc/sys/user/max_user_namespaces", '0');
}

static void try_namespaces(struct host_facts *f) {
        const char *step;
        int errnum;

        if (!doubts_namespaces())
                return;
        errnum = host_try_namespaces(&step);
        f->namespaces = errnum ? NO : YES;
        if (errnum)
                snprintf(f->namespaces_reason, sizeof(f->namespaces_reason), "%s: %s", step, errno_text(errnum));
}

int host_facts_read(struct host_facts *ret, struct hutch_error *err) {
        struct host_facts f = {0};
        int r;

        r = read_identity(&f, err);
        if (r < 0)
                return r;
        r = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        f.landlock_abi = cap_abi(r > 0 ? r : 0);
        /* Called with flags that do not exist the kernel returns EINVAL, before it checks rights; if it lacks the call,
         * or a container's filter denies it, another error. mount_setattr is the newest of its family. */
        f.mount_api =
                sys_mount_setattr(-1, "", ~0u, &(struct mount_attr){0}) < 0 && errno == EINVAL && has_older_calls();
        f.openat2 = sys_openat2(-1, "", ~0u, 0) < 0 && errno == EINVAL;
        try_namespaces(&f);
        *ret = f;
        return 0;
}
