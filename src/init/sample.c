/* What the whole box uses, seen from inside: its own /proc lists only its processes. Numbers that no control group
 * provides (all of them if it has no group) are collected this way: init samples a few times a second, and reports to
 * the warden, which ends the box. */
#include "sample.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "../base/io.h"

struct usage {
        uint64_t pids, cpu_ticks, memory;
};

/* /proc/PID/stat behind the name: utime, stime, cutime, cstime are fields 14 to 17, threads 20. */
static void add_process(int proc, const char *pid, struct usage *u) {
        char path[64], text[1024], *field;
        unsigned long long values[24] = {0};
        unsigned long resident = 0, shared = 0;
        _cleanup_(closep) int stat = -1, statm = -1;
        ssize_t n;

        snprintf(path, sizeof(path), "%.20s/stat", pid);
        stat = openat(proc, path, O_RDONLY | O_CLOEXEC);
        n = stat < 0 ? -1 : read(stat, text, sizeof(text) - 1);
        if (n <= 0)
                return;
        text[n] = 0;
        field = strrchr(text, ')');
        if (!field || !field[1])
                return;
        field += 3; /* the state, field 3 */
        for (int i = 3; field && i < 24; i++) {
                values[i] = strtoull(field, NULL, 10);
                field = strchr(field, ' ');
                field = field ? field + 1 : NULL;
        }
        u->cpu_ticks += values[14] + values[15] + values[16] + values[17];
        u->pids += values[20] ? values[20] : 1;

        snprintf(path, sizeof(path), "%.20s/statm", pid);
        statm = openat(proc, path, O_RDONLY | O_CLOEXEC);
        n = statm < 0 ? -1 : read(statm, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        if (sscanf(text, "%*u %lu %lu", &resident, &shared) == 2 && resident > shared)
                u->memory += (uint64_t) (resident - shared) * (uint64_t) getpagesize();
}

static struct usage look(void) {
        struct usage u = {0};
        DIR *dir = opendir("/proc");
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (isdigit((unsigned char) entry->d_name[0]))
                        add_process(dirfd(dir), entry->d_name, &u);
        if (dir)
                closedir(dir);
        if (u.pids > 0)
                u.pids--; /* init itself */
        return u;
}

bool sample_wanted(const struct plan *plan) {
        return plan->traits & TRAIT_OWN_PIDS &&
               (plan->pids || plan->cpu_time_ms || plan->disk || (plan->memory && !plan->memory_by_group));
}

/* The number behind the word that the file begins with; NULL: the number is all there is. */
static bool read_number(int fd, const char *word, uint64_t *ret) {
        char text[512], *end;
        size_t skip = word ? strlen(word) : 0;
        ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

        if (n <= 0)
                return false;
        text[n] = 0;
        if (skip > 0 && !startswith(text, word))
                return false;
        *ret = strtoull(text + skip, &end, 10);
        return end > text + skip;
}

bool meter_cpu(const struct meter *meter, uint64_t *ret_us) {
        if (!read_number(meter->cpu, meter->nanoseconds ? NULL : "usage_usec ", ret_us))
                return false;
        if (meter->nanoseconds)
                *ret_us /= 1000;
        *ret_us -= *ret_us > meter->start_us ? meter->start_us : *ret_us;
        return true;
}

bool meter_peak_memory(const struct meter *meter, uint64_t *ret) {
        return read_number(meter->memory, NULL, ret);
}

/* Whichever shows more. */
static uint64_t cpu_ms(const struct usage *u, const struct meter *meter) {
        uint64_t seen = u->cpu_ticks * 1000 / (uint64_t) sysconf(_SC_CLK_TCK), us;

        return meter_cpu(meter, &us) && us / 1000 > seen ? us / 1000 : seen;
}

/* What a file system of the box's own holds; an overlay answers for its layer. */
static void add_stored(const char *path, uint64_t *stored, bool *full) {
        struct statfs own;

        if (statfs(path, &own) < 0)
                return;
        *stored += (uint64_t) (own.f_blocks - own.f_bfree) * (uint64_t) own.f_bsize;
        *full = *full || own.f_ffree == 0;
}

enum hutch_kill_reason sample_check(const struct plan *plan, const struct meter *meter, uint64_t *peak_memory) {
        struct usage u = look();
        uint64_t stored = 0;
        bool full = false;

        if (!(plan->traits & TRAIT_IMAGE)) /* whose root is on a disk of the host */
                add_stored("/", &stored, &full);
        for (size_t i = 0; plan->traits & TRAIT_IMAGE && i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_TMPFS)
                        add_stored(plan->steps[i].dest, &stored, &full);
        for (size_t i = 0; plan->ephemeral && i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW && !plan->steps[i].text)
                        add_stored(plan->steps[i].dest, &stored, &full);
        u.memory += stored; /* the box's own files live in memory */
        if (u.memory > *peak_memory)
                *peak_memory = u.memory;
        if (plan->memory && !plan->memory_by_group && u.memory > plan->memory)
                return HUTCH_KILLED_MEMORY;
        if (plan->pids && u.pids > plan->pids)
                return HUTCH_KILLED_PIDS;
        if (plan->cpu_time_ms && cpu_ms(&u, meter) >= plan->cpu_time_ms)
                return HUTCH_KILLED_CPU;
        if (plan->disk && (stored > plan->disk || full))
                return HUTCH_KILLED_DISK;
        return HUTCH_NOT_KILLED;
}
