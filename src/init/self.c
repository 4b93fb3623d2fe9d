/* What init does to itself before it builds the box: descriptors, arguments, ids. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../base/io.h"

static int compare(const void *a, const void *b) {
        return *(const int *) a - *(const int *) b;
}

static void close_between(unsigned first, unsigned last) {
        if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
                return;
        if (last > 65535)
                last = 65535;
        for (unsigned fd = first; fd <= last; fd++)
                close((int) fd);
}

int init_tidy_fds(const struct init_input *in, struct hutch_error *err) {
        size_t n_mounts = in->mounts ? 2 * in->plan->n_steps + plan_n_below(in->plan, NULL) : 0, n = 0;
        _cleanup_(freep) int *keep = calloc(n_mounts + 5, sizeof(int));
        int null = open("/dev/null", O_RDWR | O_CLOEXEC), next = 3;

        if (null < 0 || !keep)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot open /dev/null: %s", errno_text(errno));
        for (int i = 0; i < 3; i++)
                if (null != i && dup3(null, i, O_CLOEXEC) < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot set up fd %d: %s", i,
                                         errno_text(errno));
        for (int i = 0; i < 3; i++)
                keep[n++] = in->streams[i];
        keep[n++] = in->control;
        keep[n++] = in->warden;
        for (size_t i = 0; i < n_mounts; i++)
                keep[n++] = in->mounts[i];
        qsort(keep, n, sizeof(int), compare);
        for (size_t i = 0; i < n; i++) {
                if (keep[i] < next)
                        continue;
                close_between((unsigned) next, (unsigned) keep[i] - 1);
                next = keep[i] + 1;
        }
        close_between((unsigned) next, ~0u);
        return 0;
}

int init_hide_arguments(struct hutch_error *err) {
        static const char name[] = "hutch-init";
        char *start = program_invocation_name, *end = (char *) getauxval(AT_EXECFN);

        if (!start || !end || end <= start || end - start > 8 << 20)
                return error_set(err, HUTCH_E_SETUP_FAILED, EPROTO, "cannot find init's arguments");
        memset(start, 0, (size_t) (end - start));
        if ((size_t) (end - start) >= sizeof(name))
                memcpy(start, name, sizeof(name));
        prctl(PR_SET_NAME, name);
        return 0;
}

static int write_file(int self, const char *name, const char *text, struct hutch_error *err) {
        _cleanup_(closep) int fd = openat(self, name, O_WRONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : write_all(fd, text, strlen(text));

        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot write /proc/self/%s: %s", name, errno_text(-r));
        return 0;
}

int init_take_ids(const struct init_input *in, struct hutch_error *err) {
        const struct plan *plan = in->plan;
        _cleanup_(closep) int self = -1;
        char line[64];
        int r;

        if (plan->map_by_parent) {
                if (setgroups(0, NULL) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
                    setresuid(plan->uid, plan->uid, plan->uid) < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot take on uid %u: %s", plan->uid,
                                         errno_text(errno));
                return 0;
        }
        self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (self < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot open /proc/self: %s", errno_text(errno));
        r = write_file(self, "setgroups", "deny", err);
        snprintf(line, sizeof(line), "%u %u 1", plan->uid, plan->host_uid);
        if (r < 0)
                return r;
        r = write_file(self, "uid_map", line, err);
        if (r < 0)
                return r;
        snprintf(line, sizeof(line), "%u %u 1", plan->gid, plan->host_gid);
        return write_file(self, "gid_map", line, err);
}
