/* See landlock.h; also the second barrier beneath the mounts of a box with a separate root. */
#include "landlock.h"

#include <errno.h>
#include <sys/stat.h>

#include "init.h"

#define LANDLOCK_OF_FILES                                                                                              \
        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |                   \
         LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV)

uint64_t landlock_handled(int abi) {
        uint64_t rights = (1ULL << 13) - 1;

        if (abi >= 2)
                rights |= LANDLOCK_ACCESS_FS_REFER;
        if (abi >= 3)
                rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
        if (abi >= 5)
                rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
        return rights;
}

int landlock_allow(int ruleset, const char *path, uint64_t rights, struct hutch_error *err) {
        _cleanup_(closep) int fd = open(path, O_PATH | O_CLOEXEC);
        struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};
        struct stat st;

        /* Covered by a later step: nothing there has to be allowed. The root always exists. */
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

int landlock_new(int abi, uint64_t net, uint64_t scoped, int *ret, struct hutch_error *err) {
        struct sys_landlock_ruleset_attr attr = {.handled_access_fs = landlock_handled(abi)};
        size_t size = sizeof(attr.handled_access_fs);
        int fd;

        if (abi >= 4) {
                attr.handled_access_net = net;
                size += sizeof(attr.handled_access_net);
        }
        if (abi >= 6) {
                attr.scoped = scoped;
                size = sizeof(attr);
        }
        fd = sys_landlock_create_ruleset(&attr, size, 0);
        if (fd < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a Landlock ruleset: %s",
                                 errno_text(errno));
        *ret = fd;
        return 0;
}

/* Reading and executing everywhere (the mounts determine what exists), writing where a step allows it. */
int init_make_landlock(const struct init_input *in, int *ret, struct hutch_error *err) {
        const struct plan *plan = in->plan;
        uint64_t handled = landlock_handled(in->facts->landlock_abi);
        _cleanup_(closep) int ruleset = -1;
        int r;

        r = landlock_new(in->facts->landlock_abi, 0, HUTCH_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, &ruleset, err);
        if (r < 0)
                return r;
        if (plan->commands) {
                r = init_allow_commands(in, ruleset, handled, err);
                if (r < 0)
                        return r;
                *ret = take_fd(&ruleset);
                return 0;
        }
        /* Rules apply to everything beneath: in a box whose root is open, the mounts determine what is read-only. */
        r = landlock_allow(ruleset, "/", plan->open_root ? handled : LANDLOCK_READ, err);
        if (r < 0)
                return r;
        r = landlock_allow(ruleset, "/dev", handled, err);
        if (r < 0)
                return r;
        /* FIFOs are written to; nothing is made or removed. */
        if (plan->session && plan->traits & TRAIT_DELEGATED)
                r = landlock_allow(ruleset, plan->channel, LANDLOCK_READ | LANDLOCK_ACCESS_FS_WRITE_FILE, err);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (s->flags & STEP_WRITABLE && s->kind != STEP_FILE && !startswith(s->dest, "/dev/"))
                        r = landlock_allow(ruleset, s->dest, handled, err);
        }
        if (r < 0)
                return r;
        *ret = take_fd(&ruleset);
        return 0;
}
