/* Overlays of many directories, really mounted, in namespaces of a child: by the new calls and by mount(2). */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "init/mount.h"
#include "unit.h"

static const struct way {
        const char *name;
        const struct mount_ops *ops;
        size_t lowers;
} ways[] = {
        {"one lower, by the new calls", &mount_ops_new, 1},    {"one lower, by mount(2)", &mount_ops_old, 1},
        {"two lowers, by the new calls", &mount_ops_new, 2},   {"two lowers, by mount(2)", &mount_ops_old, 2},
        {"120 lowers, by the new calls", &mount_ops_new, 120}, {"120 lowers, by mount(2)", &mount_ops_old, 120},
};

static void put(const char *path, const char *text) {
        _cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0 || write_all(fd, text, strlen(text)) < 0)
                _exit(10);
}

static bool holds(const char *path, const char *want) {
        char text[64] = "";
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && strcmp(text, want) == 0;
}

static void enter(void) {
        unsigned uid = geteuid(), gid = getegid();
        char line[64];

        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                _exit(11);
        put("/proc/self/setgroups", "deny");
        snprintf(line, sizeof(line), "%u %u 1", uid, uid);
        put("/proc/self/uid_map", line);
        snprintf(line, sizeof(line), "%u %u 1", gid, gid);
        put("/proc/self/gid_map", line);
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                _exit(12);
}

static int directory(const char *name) {
        int fd;

        if (mkdir(name, 0755) < 0 && errno != EEXIST)
                _exit(13);
        fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                _exit(14);
        return fd;
}

/* Each lower has a file of its own and one that all have; the topmost wins. */
static void _noreturn_ in_child(const struct way *way, const char *place) {
        int lowers[128], upper, work, dest, r;
        char name[64], path[4200];

        enter();
        if (chdir(place) < 0)
                _exit(15);
        for (size_t i = 0; i < way->lowers; i++) {
                snprintf(name, sizeof(name), "lower-%zu", i);
                lowers[i] = directory(name);
                snprintf(path, sizeof(path), "lower-%zu/shared", i);
                put(path, name);
                snprintf(path, sizeof(path), "lower-%zu/own-%zu", i, i);
                put(path, name);
        }
        upper = directory("upper");
        work = directory("work");
        dest = directory("dest");
        r = way->ops->attach_overlay(lowers, way->lowers, upper, work, dest, MOUNT_NODEV);
        if (r < 0)
                _exit(-r);
        snprintf(path, sizeof(path), "%s/dest", place);
        if (chdir(path) < 0)
                _exit(16);
        for (size_t i = 0; i < way->lowers; i++) {
                snprintf(name, sizeof(name), "lower-%zu", i);
                snprintf(path, sizeof(path), "own-%zu", i);
                if (!holds(path, name))
                        _exit(17);
        }
        if (!holds("shared", "lower-0"))
                _exit(18);
        put("shared", "box");
        snprintf(path, sizeof(path), "%s/upper/shared", place);
        if (!holds(path, "box"))
                _exit(19);
        snprintf(path, sizeof(path), "%s/lower-0/shared", place);
        if (!holds(path, "lower-0"))
                _exit(20);
        _exit(0);
}

static void test(void **state) {
        const struct way *way = *state;
        char place[4000];
        int status;
        pid_t pid;

        snprintf(place, sizeof(place), "%s/%zu-%d", unit_folder(), way->lowers, way->ops == &mount_ops_new);
        assert_int_equal(mkdir(place, 0755), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                in_child(way, place);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 11) {
                print_message("no user namespaces here\n");
                skip();
        }
        unit_check(status == 0, "ended with status %#x", status);
}

int main(void) {
        unit_add_rows(ways, test);
        return unit_run("init/overlay");
}
