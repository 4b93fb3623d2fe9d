/* See cgroup.h. */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "../base/io.h"

static const char top[] = "/sys/fs/cgroup";

static bool is_type(const char *path, long magic) {
        struct statfs fs;

        return statfs(path, &fs) == 0 && fs.f_type == magic;
}

/* A line of /proc/self/cgroup is ID:CONTROLLERS:PATH; the unified hierarchy has no controllers there. */
static bool names_controller(const char *list, const char *controller) {
        size_t n = strlen(controller);

        for (; *list; list += strcspn(list, ",")) {
                list += *list == ',';
                if (strncmp(list, controller, n) == 0 && (list[n] == ',' || list[n] == 0))
                        return true;
        }
        return false;
}

int cgroup_own_folder(const char *controller, char *ret, size_t room) {
        _cleanup_(freep) char *text = NULL;
        int r;

        r = read_whole_file(AT_FDCWD, "/proc/self/cgroup", 65536, &text, NULL);
        if (r < 0)
                return r;
        for (char *next = text, *line; (line = strsep(&next, "\n"));) {
                char *id = strsep(&line, ":"), *list = line ? strsep(&line, ":") : NULL;

                if (!list || !line || (controller ? !names_controller(list, controller) : !streq(id, "0")))
                        continue;
                if ((size_t) snprintf(ret, room, "%s%s%s%s", top, controller ? "/" : "", controller ? controller : "",
                                      streq(line, "/") ? "" : line) >= room)
                        return -ENAMETOOLONG;
                return 0;
        }
        return -ENOENT;
}

static bool may_use_v1(const char *controller) {
        char path[4096];

        return cgroup_own_folder(controller, path, sizeof(path)) >= 0 && is_type(path, CGROUP_SUPER_MAGIC) &&
               access(path, W_OK | X_OK) == 0;
}

bool host_has_manager(void) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        char path[4096];

        if (access("/usr/bin/busctl", X_OK) < 0)
                return false;
        if (geteuid() == 0)
                return access("/run/systemd/system", F_OK) == 0;
        /* The library's warden has no environment: the usual place then. */
        if (runtime && runtime[0] == '/')
                snprintf(path, sizeof(path), "%s/systemd/private", runtime);
        else
                snprintf(path, sizeof(path), "/run/user/%u/systemd/private", geteuid());
        return access(path, W_OK) == 0;
}

static bool has_word(const char *text, const char *word) {
        size_t n = strlen(word);

        for (const char *at = text; (at = strstr(at, word)); at += n)
                if ((at == text || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\n' || at[n] == 0))
                        return true;
        return false;
}

static struct cgroup_facts read_v2(void) {
        struct cgroup_facts f = {.kind = CGROUP_V2};
        _cleanup_(freep) char *text = NULL;
        char path[4096], file[4200];

        if (cgroup_own_folder(NULL, path, sizeof(path)) < 0)
                return (struct cgroup_facts){0};
        snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
        if (host_has_manager()) {
                /* Only the manager's own group shows what it delegates; the scope is checked once it exists. */
                f.by_manager = f.memory = f.cpu = f.pids = true;
                return f;
        }
        if (access(path, W_OK | X_OK) < 0 || read_whole_file(AT_FDCWD, file, 4096, &text, NULL) < 0)
                return (struct cgroup_facts){0};
        f.memory = has_word(text, "memory");
        f.cpu = has_word(text, "cpu");
        f.pids = has_word(text, "pids");
        return f;
}

struct cgroup_facts host_cgroups_read(void) {
        struct cgroup_facts f = {0};

        if (is_type(top, CGROUP2_SUPER_MAGIC))
                return read_v2();
        f.memory = may_use_v1("memory");
        f.cpu = may_use_v1("cpu");
        f.pids = may_use_v1("pids");
        if (f.memory || f.cpu || f.pids)
                f.kind = CGROUP_V1;
        return f;
}
