/* A limit of memory that another program keeps by a control group: the kernel ends processes, and init reports it. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/io.h"

/* A file of the version 2 control group that init is in, where it has no separate namespace. */
static void own_group_file(const char *name, char *ret, size_t room) {
        _cleanup_(freep) char *text = NULL;
        char *line;

        ret[0] = 0;
        if (read_whole_file(AT_FDCWD, "/proc/self/cgroup", 65536, &text, NULL) < 0)
                return;
        line = strstr(text, "0::/");
        if (!line || (line > text && line[-1] != '\n'))
                return;
        line[strcspn(line, "\n")] = 0;
        snprintf(ret, room, "/sys/fs/cgroup%s/%s", line + 3, name);
}

bool init_was_out_of_memory(const struct plan *plan) {
        static const char *const files[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};

        char own[512];

        if (!(plan->traits & TRAIT_OWN_LIMITS) || !plan->memory)
                return false;
        own_group_file("memory.events", own, sizeof(own));
        for (size_t i = 0; i < ARRAY_SIZE(files) + 1; i++) {
                _cleanup_(freep) char *text = NULL;
                const char *count;

                if (read_whole_file(AT_FDCWD, i < ARRAY_SIZE(files) ? files[i] : own, 4096, &text, NULL) < 0)
                        continue;
                count = strstr(text, "oom_kill ");
                if (count && atoi(count + strlen("oom_kill ")) > 0)
                        return true;
        }
        return false;
}

void init_offer_to_oom(const struct plan *plan, pid_t target) {
        char path[64];
        _cleanup_(closep) int fd = -1;

        if (!(plan->traits & TRAIT_OWN_LIMITS) || target <= 0)
                return;
        snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", target);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
                write_all(fd, "1000", 4);
}
