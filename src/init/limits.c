/* Checks of the limits that another program was to keep: what the kernel's files say of init's own control group.
 *
 * An engine may leave a limit out and only print a warning (rootless podman with control groups of version 1 does), and
 * a user's manager has only the controllers that were delegated to it. A limit of a group above holds as well, so the
 * smallest of those that can be seen counts. */
#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"

#define FILE_MOST 65536

enum limit_kind { LIMIT_NUMBER, LIMIT_QUOTA };

struct limit {
        enum hutch_guarantee guarantee;
        enum limit_kind kind;
        const char *controller, *v2, *v1, *v1_period;
        double most; /* 0: not requested */
};

/* ---- where the group is ---- */

/* The path of the own group in the controller's hierarchy; NULL: the unified one. From /proc/self/cgroup, whose lines
 * are ID:CONTROLLERS:PATH. */
static bool find_group(char *text, const char *controller, const char **ret) {
        for (char *next = text, *line; (line = strsep(&next, "\n"));) {
                char *id = strsep(&line, ":"), *list = line ? strsep(&line, ":") : NULL, *name;

                if (!list || !line)
                        continue;
                *ret = line;
                if (!controller && streq(id, "0") && !list[0])
                        return true;
                while (controller && (name = strsep(&list, ",")))
                        if (streq(name, controller))
                                return true;
        }
        return false;
}

/* Whether the option list after " - TYPE SOURCE " has the controller. */
static bool has_option(char *options, const char *controller) {
        char *name;

        while ((name = strsep(&options, ",")))
                if (streq(name, controller))
                        return true;
        return false;
}

/* Where that hierarchy is mounted, and which group of it is seen there; from a line of /proc/self/mountinfo. */
static bool parse_mount(char *line, const char *controller, char **ret_root, char **ret_place) {
        char *rest = strstr(line, " - "), *type, *options;

        if (!rest)
                return false;
        *rest = 0;
        rest += 3;
        type = strsep(&rest, " ");
        if (!rest || !streq(type, controller ? "cgroup" : "cgroup2"))
                return false;
        strsep(&rest, " ");
        options = rest;
        if (controller && (!options || !has_option(options, controller)))
                return false;
        for (int i = 0; i < 3; i++)
                strsep(&line, " ");
        *ret_root = strsep(&line, " ");
        *ret_place = strsep(&line, " ");
        return *ret_root && *ret_place;
}

/* The directory of the own group, and how much of it is the place of the mount: no group above that is visible. */
static int find_directory(const char *controller, char ret[PATH_MAX], size_t *ret_top) {
        _cleanup_(freep) char *groups = NULL, *mounts = NULL;
        const char *group;
        int r;

        r = read_whole_file(AT_FDCWD, "/proc/self/cgroup", FILE_MOST, &groups, NULL);
        if (r < 0)
                return r;
        r = read_whole_file(AT_FDCWD, "/proc/self/mountinfo", 16 * FILE_MOST, &mounts, NULL);
        if (r < 0)
                return r;
        if (!find_group(groups, controller, &group))
                return -ENOENT;
        for (char *next = mounts, *line; (line = strsep(&next, "\n"));) {
                char *root, *place;

                if (!parse_mount(line, controller, &root, &place) || !path_is_beneath(group, root))
                        continue;
                if ((size_t) snprintf(ret, PATH_MAX, "%s%s", place, path_tail(group, root)) >= PATH_MAX)
                        return -ENAMETOOLONG;
                if (access(ret, F_OK) < 0) /* something else is mounted over it */
                        continue;
                *ret_top = strlen(place);
                return 0;
        }
        return -ENOENT;
}

/* ---- what it says ---- */

static double read_value(const char *dir, const char *file) {
        _cleanup_(freep) char *text = NULL;
        char path[PATH_MAX];
        double value;

        if ((size_t) snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path) ||
            read_whole_file(AT_FDCWD, path, 4096, &text, NULL) < 0 || sscanf(text, "%lf", &value) != 1 || value < 0)
                return INFINITY; /* "max", or -1, or a group without the controller */
        return value;
}

/* Percent of one processor. */
static double read_quota(const char *dir, const struct limit *l, bool unified) {
        _cleanup_(freep) char *text = NULL;
        double quota, period;
        char path[PATH_MAX];

        if (!unified) {
                quota = read_value(dir, l->v1);
                period = read_value(dir, l->v1_period);
        } else if ((size_t) snprintf(path, sizeof(path), "%s/%s", dir, l->v2) >= sizeof(path) ||
                   read_whole_file(AT_FDCWD, path, 4096, &text, NULL) < 0 ||
                   sscanf(text, "%lf %lf", &quota, &period) != 2)
                return INFINITY;
        return isfinite(quota) && isfinite(period) && period > 0 ? quota * 100 / period : INFINITY;
}

static double read_smallest(const struct limit *l) {
        double smallest = INFINITY;
        char dir[PATH_MAX];
        bool unified = false;
        size_t top;

        if (find_directory(l->controller, dir, &top) < 0) {
                unified = true;
                if (find_directory(NULL, dir, &top) < 0)
                        return INFINITY;
        }
        for (char *slash;; *slash = 0) {
                double here =
                        l->kind == LIMIT_QUOTA ? read_quota(dir, l, unified) : read_value(dir, unified ? l->v2 : l->v1);

                smallest = fmin(smallest, here);
                slash = strrchr(dir, '/');
                if (!slash || (size_t) (slash - dir) < top)
                        return smallest;
        }
}

/* A limit that does not hold: an error, or a notice where the plan can do without. */
static int lacks(const struct init_input *in, enum hutch_guarantee guarantee, const char *why,
                 struct hutch_error *err) {
        const struct plan *plan = in->plan;
        const char *name = hutch_guarantee_name(guarantee);

        if (plan->enforced[guarantee] != HUTCH_ENFORCED)
                return 0;
        if (!(plan->may_degrade & 1u << guarantee))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EPERM,
                                 "cannot enforce %s on '%s': %s (--allow-degraded runs without)", name, plan->backend,
                                 why);
        init_note(in, NOTICE_GUARANTEE_DEGRADED, name, "%s is degraded on '%s': %s", name, plan->backend, why);
        return 0;
}

int init_verify_limits(const struct init_input *in, struct hutch_error *err) {
        const struct plan *plan = in->plan;
        const struct limit limits[] = {
                {HUTCH_G_MEMORY, LIMIT_NUMBER, "memory", "memory.max", "memory.limit_in_bytes", NULL,
                 (double) plan->memory},
                {HUTCH_G_CPU, LIMIT_QUOTA, "cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us",
                 /* engines round the quota to whole microseconds */
                 plan->cpu_percent > 0 ? (double) plan->cpu_percent + 0.5 : 0},
                /* init, and one more by which it sees that the limit was reached */
                {HUTCH_G_PIDS, LIMIT_NUMBER, "pids", "pids.max", "pids.max", NULL,
                 plan->pids > 0 ? (double) plan->pids + 2 : 0},
        };
        int r = 0;

        if (!(plan->traits & TRAIT_OWN_LIMITS))
                return 0;
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(limits); i++)
                if (limits[i].most > 0 && read_smallest(&limits[i]) > limits[i].most)
                        r = lacks(in, limits[i].guarantee, "the limit is not set in the box's control group", err);
        return r;
}

/* ---- what the box uses ---- */

/* A group that holds more than init counts what others use. */
static bool is_alone_in_group(void) {
        char dir[PATH_MAX];
        size_t top;

        return (find_directory("pids", dir, &top) >= 0 || find_directory(NULL, dir, &top) >= 0) &&
               read_value(dir, "pids.current") == 1;
}

static int open_in_group(const char *controller, const char *name) {
        char dir[PATH_MAX], path[PATH_MAX];
        size_t top;

        if (find_directory(controller, dir, &top) < 0 ||
            (size_t) snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
                return -1;
        return open(path, O_RDONLY | O_CLOEXEC);
}

static void open_meter(struct meter *meter) {
        meter->cpu = open_in_group("cpuacct", "cpuacct.usage");
        meter->nanoseconds = meter->cpu >= 0;
        if (meter->cpu < 0)
                meter->cpu = open_in_group(NULL, "cpu.stat");
        if (!meter_cpu(meter, &meter->start_us))
                closep(&meter->cpu);
        meter->memory = open_in_group("memory", "memory.max_usage_in_bytes");
        if (meter->memory < 0)
                meter->memory = open_in_group(NULL, "memory.peak");
}

int init_open_meter(const struct init_input *in, struct meter *meter, struct hutch_error *err) {
        if (!(in->plan->traits & TRAIT_OWN_LIMITS))
                return 0;
        if (is_alone_in_group())
                open_meter(meter);
        return !in->plan->cpu_time_ms || meter->cpu >= 0
                       ? 0
                       : lacks(in, HUTCH_G_CPU, "the box's control group does not count its processor time", err);
}
