/* See change.h. What reads and copies trees is a process of its own, so that the warden waits for no disk. */
#include "change.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/macro.h"
#include "../host/children.h"
#include "../host/sys.h"
#include "../layer/frozen.h"
#include "../layer/private.h"
#include "../layer/snapshot.h"
#include "../layer/stack.h"

/* ---- the process ---- */

struct answer {
        bool given;
        int r;
        struct hutch_error err;
};

struct copying {
        pid_t pid;
        int pidfd;
        struct watch *on_end;
        struct answer *answer; /* shared with it */
        void (*done)(void *user, int r, const struct hutch_error *err);
        void *user;
};

static void reap(struct copying *c) {
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        children_forget(c->pid);
        c->pid = -1;
}

void copying_free(struct copying *c) {
        if (!c)
                return;
        watch_remove(&c->on_end);
        if (c->pid > 0) {
                kill(c->pid, SIGKILL);
                reap(c);
        }
        closep(&c->pidfd);
        munmap(c->answer, sizeof(*c->answer));
        free(c);
}

static void on_end(void *data, uint32_t events _unused_) {
        struct copying *c = data;

        watch_remove(&c->on_end);
        reap(c);
        if (!c->answer->given)
                c->answer->r = error_set(&c->answer->err, HUTCH_E_IO, EIO, "the session's files could not be copied");
        c->done(c->user, c->answer->r, &c->answer->err);
}

static int copying_start(struct loop *loop, int (*work)(void *user, struct hutch_error *err),
                         void (*done)(void *user, int r, const struct hutch_error *err), void *user,
                         struct copying **ret, struct hutch_error *err) {
        struct answer *answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct copying *c = calloc(1, sizeof(*c));

        if (answer == MAP_FAILED || !c) {
                if (answer != MAP_FAILED)
                        munmap(answer, sizeof(*answer));
                free(c);
                return error_oom(err);
        }
        *c = (struct copying){.pidfd = -1, .answer = answer, .done = done, .user = user, .pid = fork()};
        if (c->pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                answer->r = work(user, &answer->err);
                answer->given = true;
                _exit(0);
        }
        children_note(c->pid);
        c->pidfd = c->pid < 0 ? -1 : sys_pidfd_open(c->pid);
        if (c->pidfd < 0 || loop_watch(loop, c->pidfd, EPOLLIN, on_end, c, &c->on_end) < 0) {
                copying_free(c);
                return error_set(err, HUTCH_E_IO, EAGAIN, "cannot start a process to copy the session's files");
        }
        *ret = c;
        return 0;
}

/* ---- what it does ---- */

static int copies_prepare(struct layer_box *box, const struct layer_meta *next, const struct plan *plan,
                          struct hutch_error *err) {
        struct layer_box fresh = *box;
        int r;

        fresh.meta = *next;
        fresh.next = true;
        trash_empty(box->state);
        r = stack_make_next(box, next);
        if (r < 0)
                stack_error(err, r, box, "replace");
        for (const struct step *s = plan->steps; r >= 0 && s < plan->steps + plan->n_steps; s++) {
                _cleanup_(freep) char *path = NULL;
                struct mirror cost;

                if (s->kind == STEP_COW)
                        r = layer_make_copy(&fresh, s->layer, plan->copy_limit, &path, &cost, err);
        }
        return r;
}

/* ---- the changes ---- */

static int fill_layer(void *user, struct hutch_error *err) {
        struct change *g = user;

        return layer_freeze_copies(g->layers, g->layer, err);
}

static void on_filled(void *user, int r, const struct hutch_error *err) {
        struct change *g = user;

        if (r < 0)
                g->err = *err;
        timer_set(g->v->all->loop, &g->later, 0);
}

static int copy_snapshot(struct change *g, const char *state, size_t len) {
        int r = state ? change_check_alone(g)
                      : error_set(&g->err, HUTCH_E_IO, EIO, "the shell could not report its state");

        if (r >= 0)
                r = snapshot_prepare_copy(g->layers, &g->made, &g->layer, &g->err);
        if (r >= 0)
                r = change_keep_shell(g, state, len);
        return r < 0 ? r : copying_start(g->v->all->loop, fill_layer, on_filled, g, &g->copying, &g->err);
}

static void on_entered(void *user, const struct outcome *why) {
        struct change *g = user;

        if (why && g->err.code == HUTCH_OK)
                g->err = why->error;
        timer_set(g->v->all->loop, &g->later, 0);
}

/* The box has ended: renames put the new layers in the place of its own, or it continues with those. */
static void on_left(void *user) {
        struct change *g = user;
        struct served *v = g->v;
        struct hutch_error failed;
        size_t len = 0;
        const char *state;
        int r;

        g->leaves = false;
        if (g->over) {
                change_finish(g);
                served_box_gone(v);
                return;
        }
        change_release(g);
        r = stack_commit(g->layers, &g->next);
        if (r < 0)
                stack_error(&g->err, r, g->layers, "replace");
        state = r < 0 ? session_state(v->session, &len) : g->shell;
        if (session_enter_box(v->session, state, r < 0 ? len : g->shell_len, on_entered, g, &failed) < 0)
                on_entered(g, &(struct outcome){.error = failed});
}

static void on_prepared(void *user, int r, const struct hutch_error *err) {
        struct change *g = user;

        if (r < 0) {
                stack_drop_next(g->layers, &g->next);
                on_filled(g, r, err);
                return;
        }
        g->leaves = true;
        session_leave_box(g->v->session, on_left, g);
}

static int prepare_copies(void *user, struct hutch_error *err) {
        struct change *g = user;

        return copies_prepare(g->layers, &g->next, g->v->plan, err);
}

static int copy_back(struct change *g) {
        char *const none[] = {NULL};
        int r = g->target ? snapshot_get_shell(g->target, &g->shell, &g->shell_len, &g->err) : 0;

        if (r >= 0 && g->shell) {
                r = layer_name_copies(g->layers, g->shell, g->shell_len);
                if (r < 0)
                        error_set(&g->err, HUTCH_E_IO, r, "cannot find the copy of the workspace: %s", errno_text(-r));
        }
        if (r >= 0)
                r = change_reserve(g);
        if (r < 0)
                return r;
        r = stack_begin_chain(g->layers, g->target ? g->target->meta.chain : none, &g->next);
        if (r < 0)
                stack_error(&g->err, r, g->layers, "replace");
        else
                r = copying_start(g->v->all->loop, prepare_copies, on_prepared, g, &g->copying, &g->err);
        if (r < 0)
                stack_drop_next(g->layers, &g->next);
        return r;
}

int change_begin_in_copies(struct change *g, const char *state, size_t len) {
        int r;

        if (g->request.what == CHANGE_SNAPSHOT)
                return copy_snapshot(g, state, len);
        r = g->request.what == CHANGE_RESTORE ? change_find_target(g, &g->target) : 0;
        return r < 0 ? r : copy_back(g);
}
