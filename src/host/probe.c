/* See probe.h. A trial that changes the process (a namespace, a filter) happens in a child; its errno is the exit
 * status. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "sys.h"

/* Runs a trial in a child; 0 or the errno that it ended with. */
static int in_child(int (*trial)(void)) {
        int status = 0;
        pid_t pid = (pid_t) syscall(SYS_clone, 0, NULL, NULL, NULL,
                                    0); /* without SIGCHLD: the host process never sees it */

        if (pid < 0)
                return errno;
        if (pid == 0)
                _exit(trial());
        while (waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR)
                ;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static int write_text(const char *path, const char *text) {
        _cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd < 0 ? -errno : write_all(fd, text, strlen(text));
}

/* Into a user namespace in which the caller's id is its own. */
static int enter_userns(void) {
        uid_t uid = geteuid();
        gid_t gid = getegid();
        char line[64];

        if (unshare(CLONE_NEWUSER) < 0)
                return errno;
        snprintf(line, sizeof(line), "%u %u 1", uid, uid);
        if (write_text("/proc/self/setgroups", "deny") < 0 || write_text("/proc/self/uid_map", line) < 0)
                return EPERM;
        snprintf(line, sizeof(line), "%u %u 1", gid, gid);
        return write_text("/proc/self/gid_map", line) < 0 ? EPERM : 0;
}

static int try_userns(void) {
        return enter_userns();
}

static int enter_all(void) {
        int r = enter_userns();

        if (r == 0 &&
            unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
                r = errno;
        return r;
}

static int try_namespaces(void) {
        return enter_all();
}

static int enter_mounts(void) {
        int r = enter_all();

        if (r == 0 &&
            (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0))
                r = errno;
        return r;
}

static int try_mount(void) {
        return enter_mounts();
}

static int mount_proc(void) {
        return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? errno : 0;
}

static int try_proc(void) {
        int r = enter_mounts();

        return r ? r : in_child(mount_proc); /* the first child is in the new pid namespace */
}

static int try_overlay(void) {
        int r = enter_mounts();

        if (r)
                return r;
        if (mkdir("/tmp/l", 0755) < 0 || mkdir("/tmp/u", 0755) < 0 || mkdir("/tmp/w", 0755) < 0 ||
            mkdir("/tmp/m", 0755) < 0 ||
            mount("overlay", "/tmp/m", "overlay", 0, "lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w,userxattr") < 0)
                return errno;
        return 0;
}

static int try_seccomp(void) {
        struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct sock_fprog program = {.len = 1, .filter = allow};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return errno;
        return 0;
}

/* An id-mapped copy of a directory's tree, never attached anywhere. */
static int try_idmap_of(const char *directory) {
        int fd = open(directory, O_PATH | O_CLOEXEC), tree, ns, ends[2];
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP};
        char path[64];
        pid_t pid;

        if (fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
                return errno;
        pid = sys_clone_fork(CLONE_NEWUSER);
        if (pid < 0)
                return errno;
        if (pid == 0) {
                char c;

                close(ends[1]);
                _exit(read(ends[0], &c, 1) < 0); /* until the parent has what it needs, or is gone */
        }
        snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
        if (write_text(path, "0 65534 1") < 0)
                return EPERM;
        snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
        if (write_text(path, "0 65534 1") < 0)
                return EPERM;
        snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        ns = open(path, O_RDONLY | O_CLOEXEC);
        tree = sys_open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
        if (ns < 0 || tree < 0)
                return errno;
        attr.userns_fd = (__u64) ns;
        return sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0 ? errno : 0;
}

/* A container's root is often an overlay, which cannot be mapped; what is attached seldom is. */
static int try_idmap(void) {
        int r = try_idmap_of("/");

        if (r == EINVAL)
                r = try_idmap_of(".");
        return r == EINVAL ? try_idmap_of("/dev/shm") : r;
}

static void record(struct probe *p, int errnum) {
        p->tried = true;
        p->works = errnum == 0;
        p->errnum = errnum;
        if (errnum)
                snprintf(p->detail, sizeof(p->detail), "%s", errno_text(errnum));
}

static bool file_says(const char *path, const char *what) {
        _cleanup_(freep) char *text = NULL;

        return read_whole_file(AT_FDCWD, path, 65536, &text, NULL) >= 0 && startswith(text, what);
}

/* Whether an AppArmor profile confines this process: the kernel has the module, and the label is not "unconfined". */
static bool has_apparmor_profile(void) {
        _cleanup_(freep) char *label = NULL;

        return read_whole_file(AT_FDCWD, "/proc/self/attr/apparmor/current", 4096, &label, NULL) >= 0 && label[0] &&
               !startswith(label, "unconfined");
}

static void look_around(struct probes *p) {
        _cleanup_(freep) char *status = NULL;
        struct utsname names;
        const char *line;

        if (uname(&names) == 0)
                snprintf(p->kernel, sizeof(p->kernel), "%.63s", names.release);
        p->debian_switch = file_says("/proc/sys/kernel/unprivileged_userns_clone", "0");
        p->apparmor =
                file_says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") || has_apparmor_profile();
        p->no_namespaces = file_says("/proc/sys/user/max_user_namespaces", "0\n");
        p->in_container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
                          access("/var/run/secrets/kubernetes.io", F_OK) == 0;
        if (read_whole_file(AT_FDCWD, "/proc/self/status", 65536, &status, NULL) >= 0) {
                line = strstr(status, "\nSeccomp:");
                p->filtered = line && strchr(line + 1, '2') == line + 1 + strlen("Seccomp:\t");
        }
}

static void probe_cgroups(struct probe *p) {
        static const char *const kinds[] = {"none", "version 1", "version 2"};
        struct cgroup_facts c = host_cgroups_read();

        p->tried = true;
        p->works = c.memory && c.cpu && c.pids;
        if (c.kind == CGROUP_NONE)
                snprintf(p->detail, sizeof(p->detail), "no group that we may write to");
        else
                snprintf(p->detail, sizeof(p->detail), "%s%s%s%s%s", kinds[c.kind], c.memory ? ", memory" : "",
                         c.cpu ? ", cpu" : "", c.pids ? ", pids" : "", c.by_manager ? ", through systemd" : "");
}

int host_try_namespaces(const char **ret_step) {
        static const struct {
                const char *step;
                int (*trial)(void);
        } trials[] = {{"making a user namespace", try_userns}, {"mounting in it", try_proc}};

        for (size_t i = 0; i < ARRAY_SIZE(trials); i++) {
                int errnum = in_child(trials[i].trial);

                *ret_step = trials[i].step;
                if (errnum)
                        return errnum;
        }
        return 0;
}

int host_probe(struct probes *ret, struct hutch_error *err) {
        struct probes p = {0};
        struct host_facts facts;
        int r, fd;

        r = host_facts_read(&facts, err);
        if (r < 0)
                return r;
        look_around(&p);
        record(&p.of[PROBE_USERNS], in_child(try_userns));
        record(&p.of[PROBE_NAMESPACES], in_child(try_namespaces));
        record(&p.of[PROBE_MOUNT], in_child(try_mount));
        record(&p.of[PROBE_PROC], in_child(try_proc));
        record(&p.of[PROBE_OVERLAY], in_child(try_overlay));
        record(&p.of[PROBE_NEW_MOUNTS], facts.mount_api ? 0 : ENOSYS);
        record(&p.of[PROBE_OPENAT2], facts.openat2 ? 0 : ENOSYS);
        record(&p.of[PROBE_SECCOMP], in_child(try_seccomp));
        record(&p.of[PROBE_LANDLOCK], facts.landlock_abi >= 2 ? 0 : ENOSYS);
        if (facts.landlock_abi > 0)
                snprintf(p.of[PROBE_LANDLOCK].detail, sizeof(p.of[PROBE_LANDLOCK].detail), "ABI %d",
                         facts.landlock_abi);
        fd = sys_pidfd_open(getpid());
        record(&p.of[PROBE_PIDFD], fd < 0 ? errno : 0);
        closep(&fd);
        if (facts.privileged)
                record(&p.of[PROBE_IDMAP], facts.box_uid ? in_child(try_idmap) : EPERM);
        probe_cgroups(&p.of[PROBE_CGROUPS]);
        *ret = p;
        return 0;
}
