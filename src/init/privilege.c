/* Giving up what was needed to build the box: capabilities of every set, and the ways to get them back; and Landlock,
 * the second wall under the mounts. */
#include "init.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "../host/sys.h"

int init_drop_privileges(struct hutch_error *err) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[2] = {0};
        const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
        const char *what = "securebits";
        bool ok;

        ok = prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0;
        if (ok) {
                what = "the bounding set";
                unsigned long cap = 0;

                while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
                        cap++;
                /* Past the last one that this kernel knows; one that it knows would be told. */
                ok = errno == EINVAL && cap > CAP_AUDIT_READ && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0;
        }
        if (ok) {
                what = "the ambient set";
                ok = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0;
        }
        if (ok) {
                what = "the other sets";
                ok = syscall(SYS_capset, &header, none) == 0;
        }
        if (!ok)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot drop capabilities (%s): %s", what,
                                 errno_text(errno));
        return 0;
}

#define LANDLOCK_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_OF_FILES                                                                                              \
        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |                   \
         LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV)

static uint64_t handled_rights(int abi) {
        uint64_t rights = (1ULL << 13) - 1;

        if (abi >= 2)
                rights |= LANDLOCK_ACCESS_FS_REFER;
        if (abi >= 3)
                rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
        if (abi >= 5)
                rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
        return rights;
}

static int allow(int ruleset, const char *path, uint64_t rights, struct hutch_error *err) {
        _cleanup_(closep) int fd = open(path, O_PATH | O_CLOEXEC);
        struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};
        struct stat st;

        /* Covered by a later step: nothing is there to be allowed. The root is always there. */
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES) && !streq(path, "/"))
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "Landlock: cannot open %s: %s", path,
                                 errno_text(errno));
        if (!S_ISDIR(st.st_mode))
                rule.allowed_access &= LANDLOCK_OF_FILES;
        if (sys_landlock_add_path(ruleset, &rule) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "Landlock: cannot add a rule for %s: %s", path,
                                 errno_text(errno));
        return 0;
}

/* Reading and executing everywhere (the mounts decide what there is), writing where a step says so. */
int init_make_landlock(const struct init_input *in, int *ret, struct hutch_error *err) {
        const struct plan *plan = in->plan;
        uint64_t handled = handled_rights(in->facts->landlock_abi);
        struct sys_landlock_ruleset_attr attr = {.handled_access_fs = handled};
        _cleanup_(closep) int ruleset = -1;
        size_t size = sizeof(attr.handled_access_fs);
        int r;

        if (in->facts->landlock_abi >= 6) {
                attr.scoped = HUTCH_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET;
                size = sizeof(attr);
        }
        ruleset = sys_landlock_create_ruleset(&attr, size, 0);
        if (ruleset < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a Landlock ruleset: %s",
                                 errno_text(errno));
        /* Rules hold for everything beneath: in a box whose root is open it is the mounts that say what is read-only.
         */
        r = allow(ruleset, "/", plan->open_root ? handled : LANDLOCK_READ, err);
        if (r >= 0)
                r = allow(ruleset, "/dev", handled, err);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (s->flags & STEP_WRITABLE && s->kind != STEP_FILE && !startswith(s->dest, "/dev/"))
                        r = allow(ruleset, s->dest, handled, err);
        }
        if (r < 0)
                return r;
        *ret = take_fd(&ruleset);
        return 0;
}
