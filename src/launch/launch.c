/* See launch.h. The warden clones itself into the namespaces; the copy is init and never returns. There is no exec in
 * between: it would cost a tenth of a start, and a process that never executed anything keeps its memory closed to
 * everybody in the box, because the kernel judges access to it by the user namespace that the memory was made in. */
#include "launch.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../host/children.h"
#include "../host/memory.h"
#include "../host/sys.h"
#include "../backend/backend.h"
#include "engine.h"
#include "idmap.h"

/* A group of version 1 is joined after the clone, and a cgroup namespace shows the group that it was made in. */
static bool joins_late(const struct launch_input *in) {
        return in->group && group_fd(in->group) < 0;
}

static unsigned long clone_flags_of(const struct launch_input *in, const struct launch_spec *spec) {
        return joins_late(in) ? spec->clone_flags & ~(unsigned long) CLONE_NEWCGROUP : spec->clone_flags;
}

static int clone_error(const struct plan *plan, int errnum, struct hutch_error *err) {
        if (!plan->traits || errnum == EAGAIN || errnum == ENOMEM)
                return error_set(err, HUTCH_E_SETUP_FAILED, errnum, "cannot start the box: %s", errno_text(errnum));
        return error_set(
                err, HUTCH_E_BACKEND_UNAVAILABLE, errnum, "cannot make the box's namespaces: %s%s", errno_text(errnum),
                errnum == ENOSPC ? " (the limit in /proc/sys/user/max_*_namespaces is reached)"
                                 : ": this host does not allow user namespaces: run 'hutch doctor' for the remedy");
}

static void forget(struct launched *box) {
        if (box->pid > 0) {
                kill(box->pid, SIGKILL);
                waitpid(box->pid, NULL, 0);
                children_forget(box->pid);
        }
        closep(&box->pidfd);
        closep(&box->control);
        engine_free(take_ptr(box->engine));
}

/* A limit of 1 keeps a crash in the box from a core pattern that is a program of the host's; 0 does not. Only the
 * warden of root can raise a hard limit that is lower. */
static void allow_core_limit(pid_t pid) {
        const struct rlimit one = {1, 1};
        struct rlimit core;

        if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max < 1)
                prlimit(pid, RLIMIT_CORE, &one, NULL);
}

static int hand_over(const struct launch_input *in, const struct launch_spec *spec, const int *mounts,
                     struct launched *box, struct hutch_error *err) {
        _cleanup_(closep) int theirs = -1, warden = sys_pidfd_open(getpid());
        struct warden_message go = {.order = ORDER_GO};
        int ends[2], r;

        if (!(in->plan->traits & TRAIT_OWN_PIDS) && children_adopt() < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot become a subreaper: %s", errno_text(errno));
        if (warden < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a channel to the box: %s",
                                 errno_text(errno));
        box->control = ends[0];
        theirs = ends[1];
        box->pid = sys_clone_fork_into(clone_flags_of(in, spec), group_fd(in->group));
        children_note(box->pid);
        if (box->pid < 0)
                return clone_error(in->plan, errno, err);
        if (box->pid == 0) {
                struct init_input input = {.plan = in->plan,
                                           .facts = in->facts,
                                           .mounts = mounts,
                                           .layers = in->layers,
                                           .kept = in->kept,
                                           .streams = {in->streams[0], in->streams[1], in->streams[2]},
                                           .answers = -1,
                                           .modes = in->modes,
                                           .size = in->size,
                                           .foreground = in->foreground,
                                           .control = theirs,
                                           .warden = warden,
                                           .wait = in->plan->map_by_parent || joins_late(in),
                                           .own_cgroups_late = joins_late(in) && spec->clone_flags & CLONE_NEWCGROUP};
                memory_unbound();
                init_run(&input);
        }
        box->pidfd = sys_pidfd_open(box->pid);
        if (box->pidfd < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot watch the box: %s", errno_text(errno));
        allow_core_limit(box->pid);
        if (!in->plan->map_by_parent && !joins_late(in))
                return 0;
        r = group_add(in->group, box->pid, err);
        if (r < 0)
                return r;
        if (in->plan->map_by_parent)
                r = idmap_write(box->pid, in->plan->uid, in->plan->host_uid, in->plan->gid, in->plan->host_gid, err);
        if (r < 0)
                return r;
        if (message_send(box->control, &go, sizeof(go), NULL, 0) < 0)
                r = error_set(err, HUTCH_E_SETUP_FAILED, EPIPE, "the box ended before it began");
        return r;
}

int launch(const struct launch_input *in, struct launched *ret, struct hutch_error *err) {
        struct launched box = {.pid = -1, .pidfd = -1, .control = -1};
        _cleanup_(launch_spec_done) struct launch_spec spec = {0};
        const struct backend *backend = backend_of(in->plan->backend);
        int *mounts = NULL;
        int r;

        if (!backend)
                return error_set(err, HUTCH_E_INTERNAL, EINVAL, "no backend '%s'", in->plan->backend);
        if (in->runner && !(backend->traits & TRAIT_DELEGATED))
                r = error_set(err, HUTCH_E_USAGE, ENOTSUP,
                              "a runner is not supported on '%s': hutch starts init itself there", backend->name);
        else if (backend->traits & TRAIT_DELEGATED)
                r = engine_start(in, backend, &box, err);
        else {
                r = backend->compile(in->plan, NULL, &spec, err);
                if (r >= 0 && in->plan->map_by_parent)
                        r = idmap_prepare(in->plan, in->facts, in->layers, &mounts, err);
                if (r >= 0)
                        r = hand_over(in, &spec, mounts, &box, err);
                idmap_free(mounts, idmap_count(in->plan));
        }
        if (r < 0) {
                forget(&box);
                error_stage(err, "launch");
                return r;
        }
        *ret = box;
        return 0;
}
