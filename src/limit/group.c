/* See group.h. Version 2 has one directory for all controllers, version 1 one for each. */
#include "group.h"

#include <errno.h>
#include <stdio.h>

#include "../base/io.h"

enum { MEMORY, CPU, PIDS, N_FOLDERS };

struct group {
        enum cgroup_kind kind;
        struct group_folder directories[N_FOLDERS]; /* v2: the first alone */
        struct group_folder accounting;             /* v1: cpuacct, if it is a separate hierarchy */
};

#define PERIOD_US 100000

static int limit_error(struct hutch_error *err, int r, const char *limit) {
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r, "cannot set the %s limit: %s", limit, errno_text(-r));
}

static int set_up_v2(struct group *g, const struct plan *plan, const struct cgroup_facts *facts,
                     struct hutch_error *err) {
        struct group_folder *f = &g->directories[0];
        char parent[3072];
        int r;

        r = scope_enter(facts, parent, sizeof(parent), err);
        if (r < 0)
                return r;
        r = group_folder_make(f, parent, err);
        if (r < 0)
                return r;
        if (plan->memory) {
                r = group_write(f, "memory.max", "%llu", (unsigned long long) plan->memory);
                if (r >= 0)
                        r = group_write(f, "memory.oom.group", "1");
                if (r < 0)
                        return limit_error(err, r, "memory");
                group_write(f, "memory.swap.max", "0"); /* missing where there is no swap */
        }
        if (plan->cpu_percent) {
                r = group_write(f, "cpu.max", "%llu %d", (unsigned long long) plan->cpu_percent * PERIOD_US / 100,
                                PERIOD_US);
                if (r < 0)
                        return limit_error(err, r, "cpu");
        }
        if (plan->pids) {
                r = group_write(f, "pids.max", "%llu", (unsigned long long) plan->pids + 1); /* and init */
                if (r < 0)
                        return limit_error(err, r, "pids");
        }
        return 0;
}

static int make_v1(struct group_folder *f, const char *controller, struct hutch_error *err) {
        char parent[3072];
        int r;

        r = cgroup_own_folder(controller, parent, sizeof(parent));
        if (r < 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r, "limits: no %s controller", controller);
        return group_folder_make(f, parent, err);
}

static int set_up_v1(struct group *g, const struct plan *plan, const struct cgroup_facts *facts,
                     struct hutch_error *err) {
        unsigned long long bytes = plan->memory;
        int r = 0;

        if (facts->memory)
                r = make_v1(&g->directories[MEMORY], "memory", err);
        if (r < 0)
                return r;
        if (facts->cpu && plan->cpu_percent)
                r = make_v1(&g->directories[CPU], "cpu", err);
        if (r < 0)
                return r;
        if (facts->pids && plan->pids)
                r = make_v1(&g->directories[PIDS], "pids", err);
        if (r < 0)
                return r;
        if (make_v1(&g->accounting, "cpuacct", NULL) < 0)
                g->accounting.fd = -1;
        if (plan->cpu_time_ms && g->accounting.fd < 0 && plan->enforced[HUTCH_G_CPU] == HUTCH_ENFORCED)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "limits: no cpuacct controller to count processor time by");
        if (bytes && facts->memory) {
                r = group_write(&g->directories[MEMORY], "memory.limit_in_bytes", "%llu", bytes);
                if (r < 0)
                        return limit_error(err, r, "memory");
                group_write(&g->directories[MEMORY], "memory.memsw.limit_in_bytes", "%llu",
                            bytes); /* missing without swap */
        }
        if (g->directories[CPU].fd >= 0) {
                r = group_write(&g->directories[CPU], "cpu.cfs_period_us", "%d", PERIOD_US);
                if (r >= 0)
                        r = group_write(&g->directories[CPU], "cpu.cfs_quota_us", "%llu",
                                        (unsigned long long) plan->cpu_percent * PERIOD_US / 100);
                if (r < 0)
                        return limit_error(err, r, "cpu");
        }
        if (g->directories[PIDS].fd >= 0) {
                r = group_write(&g->directories[PIDS], "pids.max", "%llu", (unsigned long long) plan->pids + 1);
                if (r < 0)
                        return limit_error(err, r, "pids");
        }
        return 0;
}

int group_new(const struct plan *plan, struct group **ret, struct hutch_error *err) {
        const struct cgroup_facts facts = host_cgroups_read();
        struct group *g = calloc(1, sizeof(*g));
        int r;

        if (!g)
                return error_oom(err);
        g->kind = facts.kind;
        for (int i = 0; i < N_FOLDERS; i++)
                g->directories[i].fd = -1;
        g->accounting.fd = -1;
        r = g->kind == CGROUP_V2 ? set_up_v2(g, plan, &facts, err) : set_up_v1(g, plan, &facts, err);
        if (r < 0) {
                error_stage(err, "limits");
                group_free(g);
                return r;
        }
        *ret = g;
        return 0;
}

int group_fd(const struct group *g) {
        return g && g->kind == CGROUP_V2 ? g->directories[0].fd : -1;
}

int group_add(struct group *g, pid_t pid, struct hutch_error *err) {
        int r = 0;

        if (!g || g->kind == CGROUP_V2)
                return 0;
        for (int i = 0; r >= 0 && i < N_FOLDERS; i++)
                if (g->directories[i].fd >= 0)
                        r = group_write(&g->directories[i], "cgroup.procs", "%d", pid);
        if (r >= 0 && g->accounting.fd >= 0)
                r = group_write(&g->accounting, "cgroup.procs", "%d", pid);
        if (r < 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r, "cannot put the box into its control group: %s",
                                 errno_text(-r));
        return 0;
}

enum hutch_kill_reason group_check(struct group *g) {
        uint64_t n;

        if (!g)
                return HUTCH_NOT_KILLED;
        if (group_read(&g->directories[MEMORY], g->kind == CGROUP_V2 ? "memory.events" : "memory.oom_control",
                       "oom_kill", &n) &&
            n > 0)
                return HUTCH_KILLED_MEMORY;
        if (group_read(&g->directories[g->kind == CGROUP_V2 ? 0 : PIDS], "pids.events", "max", &n) && n > 0)
                return HUTCH_KILLED_PIDS;
        return HUTCH_NOT_KILLED;
}

void group_usage(struct group *g, double *ret_cpu_ms, uint64_t *ret_peak_memory) {
        uint64_t n;

        if (!g)
                return;
        if (g->kind == CGROUP_V2) {
                if (group_read(&g->directories[0], "cpu.stat", "usage_usec", &n))
                        *ret_cpu_ms = (double) n / 1000;
                if (group_read(&g->directories[0], "memory.peak", NULL, &n))
                        *ret_peak_memory = n;
                return;
        }
        if (group_read(&g->accounting, "cpuacct.usage", NULL, &n))
                *ret_cpu_ms = (double) n / 1000000;
        if (group_read(&g->directories[MEMORY], "memory.max_usage_in_bytes", NULL, &n))
                *ret_peak_memory = n;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS" */
static uint64_t read_pressure(const struct group_folder *f, const char *file) {
        _cleanup_(freep) char *text = NULL;
        char *total;

        if (f->fd < 0 || read_whole_file(f->fd, file, 4096, &text, NULL) < 0 || !startswith(text, "some "))
                return 0;
        total = strstr(text, "total=");
        return total ? strtoull(total + strlen("total="), NULL, 10) / 1000 : 0;
}

void group_waits(struct group *g, uint64_t *ret_memory_ms, uint64_t *ret_cpu_ms) {
        if (!g || g->kind != CGROUP_V2)
                return;
        *ret_memory_ms = read_pressure(&g->directories[0], "memory.pressure");
        *ret_cpu_ms = read_pressure(&g->directories[0], "cpu.pressure");
}

void group_free(struct group *g) {
        if (!g)
                return;
        for (int i = 0; i < N_FOLDERS; i++)
                group_folder_remove(&g->directories[i]);
        group_folder_remove(&g->accounting);
        free(g);
}
