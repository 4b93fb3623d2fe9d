/* Changes of a session's files as a whole: a snapshot, going back to one, going back to the beginning.
 *
 * They wait for their turn among the commands. Then the stack of layers is changed, which costs the same however much
 * the layers hold, and a second box is started over the new stack with the state that the shell is to continue with.
 * When its shell runs, it replaces the first, which is ended: a moment later if nothing but a shell waits there,
 * because the kernel takes as long to remove a box as to make one, and the client waits for neither. Until then the
 * first one continues unchanged: it writes into the layers that it has mounted, wherever they were moved to, and a
 * change that fails puts the stack back so that it still lists them. So nothing is lost if the client is gone, the disk
 * is full or the box does not start.
 *
 * Where the box works in private copies, a snapshot is a copy of what differs, and the box goes on. For going back
 * a process of the warden's makes other copies beside them; then the box ends, renames put these in their place, and it
 * is started again.
 *
 * A snapshot is handed over by the descriptor of its directory. Until the client has finished it, it is removed when
 * the last process with this descriptor exits. */
#include "change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/frozen.h"
#include "../layer/snapshot.h"
#include "../layer/stack.h"
#include "../session/dialect.h"

#define CHANGES_MOST 16 /* that wait for a session */
#define START_MS 20000  /* for the second box; it is given up then */
#define END_MS 15       /* after which the first box ends, if only its shell waits there: a client goes on before */
#define SPARE 65536     /* bytes */

static const char *verb_of(const struct change *g) {
        if (g->request.what == CHANGE_SNAPSHOT)
                return g->request.whole ? "fork" : "snapshot";
        return g->request.what == CHANGE_RESTORE ? "restore" : "reset";
}

static bool has_layers(const struct served *v) {
        return v->layers[0] && !v->plan->ephemeral;
}

/* ---- its end ---- */

static void change_free(struct change *g) {
        struct change **at = &g->v->changes;

        while (*at && *at != g)
                at = &(*at)->next_of_all;
        if (*at)
                *at = g->next_of_all;
        timer_clear(g->v->all->loop, &g->later);
        timer_clear(g->v->all->loop, &g->limit);
        watch_remove(&g->on_socket);
        closep(&g->socket);
        copying_free(g->copying);
        snapshot_free(g->made);
        snapshot_free(g->undo);
        snapshot_free(g->target);
        layer_meta_done(&g->next);
        free(g->shell);
        layer_free(g->layers);
        plan_free(g->plan);
        free(g);
}

/* Room on the disk for going back, taken before the change and given back before it is undone. */
int change_reserve(struct change *g) {
        _cleanup_(closep) int fd =
                openat(g->layers->fd, "spare", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        static const char nothing_much[SPARE];
        int r = fd < 0 ? -errno : write_all(fd, nothing_much, sizeof(nothing_much));

        return r < 0 ? error_set(&g->err, HUTCH_E_IO, r, "cannot change the layers of box %s: %s", g->layers->meta.id,
                                 errno_text(-r))
                     : 0;
}

void change_release(struct change *g) {
        if (g->layers)
                (void) unlinkat(g->layers->fd, "spare", 0);
}

/* False: no client has it. */
static bool hand_over(struct change *g) {
        struct warden_changed answer = {.reply = WARDEN_CHANGED};

        if (g->socket < 0)
                return false;
        if (g->err.code != HUTCH_OK) {
                served_send_error(g->socket, &g->err);
                return false;
        }
        snprintf(answer.id, sizeof(answer.id), "%s", g->made ? g->made->meta.id : "");
        return message_send(g->socket, &answer, sizeof(answer), g->made ? &g->made->fd : NULL, g->made != NULL) >= 0;
}

static void answer(struct change *g) {
        if (!g->answered && !hand_over(g) && g->made)
                snapshot_drop(g->made);
        g->answered = true;
}

void change_finish(struct change *g) {
        answer(g);
        change_release(g);
        if (g->undo)
                snapshot_drop(g->undo);
        change_free(g);
}

static void nothing(void *user _unused_) {
}

/* A plan of the layers that the box has now; the one before it may still be in use. */
static int renew_plan(struct change *g, struct hutch_error *err) {
        _cleanup_(freep) char *boxes = NULL, *state = NULL, *frozen = NULL;
        struct plan_layers layers = {.n = g->v->plan->n_layers};
        int r;

        if (!g->layers) /* all of them are in memory */
                return plan_with_layers(g->v->plan, &(struct plan_layers){0}, &g->plan) < 0 ? error_oom(err) : 0;
        r = path_dirname(g->layers->path, &boxes);
        if (r >= 0)
                r = path_dirname(boxes, &state);
        if (r < 0 || asprintf(&frozen, "%s/layers", state) < 0)
                return error_oom(err);
        layers.instead = frozen;
        layers.below = calloc(layers.n + 1, sizeof(*layers.below));
        r = layers.below ? 0 : -ENOMEM;
        for (unsigned n = 0; r >= 0 && n < layers.n; n++)
                r = stack_list_below(g->layers, n, &layers.below[n]);
        plan_free(take_ptr(g->plan));
        if (r >= 0)
                r = plan_with_layers(g->v->plan, &layers, &g->plan);
        for (unsigned n = 0; layers.below && n < layers.n; n++)
                strv_free(layers.below[n]);
        free(layers.below);
        return r < 0 ? error_oom(err) : 0;
}

/* The plan becomes the session's. The one before it may be in use. */
static int use_plan(struct change *g) {
        struct served *v = g->v;
        struct plan **grown = reallocarray(v->retired, v->n_retired + 1, sizeof(*grown));

        if (!grown)
                return error_oom(&g->err);
        v->retired = grown;
        v->retired[v->n_retired++] = v->plan;
        v->plan = take_ptr(g->plan);
        return 0;
}

/* Back to the layers that the box has mounted. Where that fails, they are kept as a snapshot. */
static void undo(struct change *g) {
        struct hutch_error ignored;

        change_release(g);
        if (g->replaced && stack_replace(g->layers, g->undo->meta.chain, &ignored) < 0 &&
            snapshot_finish(g->undo, &ignored) >= 0) {
                error_set(&g->err, HUTCH_E_IO, EIO,
                          "the session's layers could not be put back: they are kept in snapshot %s", g->undo->meta.id);
                snapshot_free(take_ptr(g->undo));
        }
        trash_empty(g->layers->state); /* the disk may be full */
        if (renew_plan(g, &ignored) >= 0 && use_plan(g) >= 0)
                session_use_plan(g->v->session, g->v->plan);
}

/* The session continues in its present box, over a stack that lists that box's layers. */
static void fail(struct change *g) {
        struct served *v = g->v;

        if (g->fresh)
                served_end_box(v, take_ptr(g->fresh), nothing, NULL);
        if (g->layers && v->displaced)
                undo(g);
        if (g->command) {
                g->command = NULL;
                session_performed(v->session);
        }
        change_finish(g);
}

/* ---- the second box ---- */

static void on_first_ended(void *user) {
        struct change *g = user;

        if (g->layers)
                stack_unmounted(g->layers);
        change_finish(g);
}

/* The client waits until the kernel has removed the first box only if something runs there that it wants to be gone. */
static void take_over(struct change *g) {
        _cleanup_(buf_done) struct buf names = {0};
        struct served *v = g->v;
        struct session *old = v->session;
        bool alone = session_list_others(old, &names) == 0;

        if (use_plan(g) < 0) {
                fail(g);
                return;
        }
        g->command = NULL; /* it ends with the old session */
        v->session = take_ptr(g->fresh);
        v->displaced = false;
        g->done = true;
        v->holder.session = v->holder.session == old ? v->session : v->holder.session;
        callers_move(v->all->callers, old, v->session);
        session_take_over(v->session, old, g->request.what == CHANGE_SNAPSHOT);
        g->first = old;
        v->boxes++;        /* its plan is in use until it ends, however many other boxes end before */
        change_release(g); /* the next change may reserve the same */
        if (alone)
                answer(g);
        timer_set(v->all->loop, &g->later, alone ? END_MS : 0);
}

static void end_first(struct change *g) {
        struct served *v = g->v;

        timer_clear(v->all->loop, &g->later);
        if (!g->first)
                return;
        served_end_box(v, take_ptr(g->first), on_first_ended, g);
        served_box_gone(v); /* it counts as one that is ending from here on */
}

static void on_later(void *data) {
        struct change *g = data;

        timer_clear(g->v->all->loop, &g->limit);
        if (g->done)
                end_first(g);
        else if (g->stands && !g->failed)
                take_over(g);
        else
                fail(g);
}

static void on_opened(void *user) {
        struct change *g = user;

        g->stands = true;
        timer_set(g->v->all->loop, &g->later, 0); /* not within a call of what may be ended */
}

static void on_ended(void *user, const struct outcome *why) {
        struct change *g = user;

        g->failed = true;
        g->err = why->error;
        if (g->err.code == HUTCH_OK)
                error_set(&g->err, HUTCH_E_IO, EIO, "the session's new box ended at once");
        timer_set(g->v->all->loop, &g->later, 0);
}

static void on_limit(void *data) {
        struct change *g = data;

        g->failed = true;
        error_set(&g->err, HUTCH_E_IO, ETIMEDOUT, "the session's new box did not start in time");
        on_later(g);
}

static int start_second(struct change *g, const char *state, size_t len) {
        struct session_input input = {.facts = g->v->all->facts,
                                      .layers = g->v->layers,
                                      .state = state,
                                      .state_len = len,
                                      .credentials = g->v->credentials > 0 ? g->v->credentials : 0,
                                      .opened = on_opened,
                                      .ended = on_ended,
                                      .user = g};
        int r = renew_plan(g, &g->err);

        if (r < 0)
                return r;
        input.plan = g->plan;
        timer_set(g->v->all->loop, &g->limit, START_MS);
        return session_new(g->v->all->loop, &input, &g->fresh, &g->err);
}

/* ---- the changes ---- */

/* A process in the background writes to files that are about to be frozen. */
int change_check_alone(struct change *g) {
        _cleanup_(buf_done) struct buf names = {0};
        size_t n = session_list_others(g->v->session, &names);

        if (n == 0)
                return 0;
        for (size_t i = 0; i < names.len; i++)
                if (names.data[i] == '\n')
                        names.data[i] = ',';
        return error_set(&g->err, HUTCH_E_IO, EBUSY,
                         "%zu process%s beside the session's shell: %.*s: end them first, use --stop, or copy the "
                         "files as they are with --copy",
                         n, n == 1 ? " runs" : "es run", (int) (names.len ? names.len - 1 : 0),
                         (const char *) names.data);
}

int change_keep_shell(struct change *g, const char *state, size_t len) {
        _cleanup_(buf_done) struct buf text = {0};

        if (g->request.whole)
                return snapshot_put_shell(g->made, state, len, &g->err);
        dialect_put_without(&text, state, len, g->v->plan->env_block); /* secrets stay behind */
        return text.oom ? error_oom(&g->err) : snapshot_put_shell(g->made, (const char *) text.data, text.len, &g->err);
}

/* 1: the snapshot is of what the box has mounted already. */
static int make_snapshot(struct change *g, const char *state, size_t len) {
        bool touched = stack_is_touched(g->layers), move = g->v->displaced || touched;
        int r = 0;

        if (!state)
                return error_set(&g->err, HUTCH_E_IO, EIO, "the shell could not report its state");
        r = change_check_alone(g);
        if (r >= 0 && touched) {
                r = stack_freeze_mounted(g->layers, &g->err);
                g->v->displaced = g->v->displaced || r >= 0;
        }
        if (r >= 0 && strv_length(g->layers->meta.chain) > STACK_MOST) {
                r = change_reserve(g);
                if (r >= 0)
                        r = snapshot_prepare(g->layers, &g->undo, &g->err);
                if (r >= 0)
                        r = stack_compact(g->layers, &g->err);
                g->replaced = r >= 0;
        }
        if (r >= 0)
                r = snapshot_prepare(g->layers, &g->made, &g->err);
        if (r >= 0)
                r = change_keep_shell(g, state, len);
        return r < 0 ? r : !move;
}

/* The present state is frozen, and kept until the second box is up. */
static int go_back(struct change *g, char *const *chain) {
        int r = g->v->displaced && !stack_is_touched(g->layers) ? 0 : stack_freeze_mounted(g->layers, &g->err);

        if (r < 0)
                return r;
        g->v->displaced = true;
        r = change_reserve(g);
        if (r >= 0)
                r = snapshot_prepare(g->layers, &g->undo, &g->err);
        if (r >= 0)
                r = stack_replace(g->layers, chain, &g->err);
        g->replaced = r >= 0;
        return r;
}

int change_find_target(struct change *g, struct layer_snapshot **ret) {
        _cleanup_(freep) char *root = NULL;
        int r = path_dirname(g->v->layers, &root) < 0 ? error_oom(&g->err) : 0;

        if (r >= 0)
                r = snapshot_open(root, g->request.snapshot, NULL, ret, &g->err);
        return r < 0 ? r : snapshot_check(g->layers, *ret, &g->err);
}

static int begin(struct change *g) {
        _cleanup_(snapshot_freep) struct layer_snapshot *snapshot = NULL;
        _cleanup_(freep) char *shell = NULL;
        char *const none[] = {NULL};
        size_t len = 0;
        const char *state = session_state(g->v->session, &len);
        int r = has_layers(g->v) ? layer_open_held(g->v->layers, &g->layers, &g->err) : 0;

        if (r < 0)
                return r;
        if (g->request.what == CHANGE_SNAPSHOT && !g->layers)
                return error_set(
                        &g->err, HUTCH_E_USAGE, EINVAL,
                        "the session has no copy-on-write directory that is kept: there is nothing to snapshot");
        if (g->layers && plan_has_copies(g->v->plan))
                return change_begin_in_copies(g, state, len);
        if (g->request.what == CHANGE_SNAPSHOT) {
                r = make_snapshot(g, state, len);
                return r != 0 ? r : start_second(g, state, len);
        }
        if (g->request.what == CHANGE_RESET) {
                r = g->layers ? go_back(g, none) : 0;
                return r < 0 ? r : start_second(g, NULL, 0);
        }
        r = change_find_target(g, &snapshot);
        if (r >= 0)
                r = snapshot_get_shell(snapshot, &shell, &len, &g->err);
        if (r >= 0)
                r = go_back(g, snapshot->meta.chain);
        return r < 0 ? r : start_second(g, shell, len);
}

static void perform(void *user) {
        struct change *g = user;
        int r = begin(g);

        if (r == 0)
                return;
        g->failed = true; /* or nothing remains to be done */
        timer_set(g->v->all->loop, &g->later, 0);
}

static void on_lost(void *user) {
        struct change *g = user;

        g->command = NULL;
        g->failed = true;
        error_set(&g->err, HUTCH_E_SESSION_CLOSED, EPIPE, "the session was closed");
        timer_set(g->v->all->loop, &g->later, 0);
}

/* The client is gone, or sent an invalid message. A waiting change is taken out of the queue; one that has begun
 * continues. */
static void on_client(void *data, uint32_t events _unused_) {
        struct change *g = data;

        watch_remove(&g->on_socket);
        closep(&g->socket);
        if (g->command)
                session_cancel(g->v->session, g->command, HUTCH_KILLED_CANCELLED);
}

static size_t count(const struct served *v) {
        size_t n = 0;

        for (const struct change *g = v->changes; g; g = g->next_of_all)
                n++;
        return n;
}

void change_add(struct served *v, const struct warden_change *request, int fds[8]) {
        struct change *g = calloc(1, sizeof(*g));
        struct hutch_error err;
        int r = 0;

        if (!g)
                return;
        *g = (struct change){.v = v, .request = *request, .socket = take_fd(&fds[0])};
        g->request.snapshot[sizeof(g->request.snapshot) - 1] = 0;
        g->later = (struct timer){.fire = on_later, .data = g};
        g->limit = (struct timer){.fire = on_limit, .data = g};
        if (!has_layers(v) && request->what != CHANGE_RESET)
                r = error_set(&err, HUTCH_E_USAGE, EINVAL,
                              "the session keeps its files in memory: there is nothing to %s", verb_of(g));
        else if (count(v) >= CHANGES_MOST)
                r = error_set(&err, HUTCH_E_IO, EBUSY,
                              "%d other requests for the session's files are waiting: try again later", CHANGES_MOST);
        else if (loop_watch(v->all->loop, g->socket, EPOLLIN | EPOLLRDHUP, on_client, g, &g->on_socket) < 0)
                r = error_oom(&err);
        if (r < 0)
                served_send_error(g->socket, &err);
        g->next_of_all = v->changes;
        v->changes = g;
        if (r < 0) {
                change_free(g);
                return;
        }
        if (session_perform(v->session, perform, on_lost, g, &g->command, &g->err) < 0)
                change_finish(g);
}

void changes_free(struct served *v) {
        struct change *next;

        for (struct change *g = v->changes; g; g = next) {
                next = g->next_of_all;
                if (g->done) { /* it is over with the first box */
                        end_first(g);
                        continue;
                }
                if (g->err.code == HUTCH_OK)
                        error_set(&g->err, HUTCH_E_SESSION_CLOSED, EPIPE, "the session was closed");
                if (g->fresh)
                        served_end_box(v, take_ptr(g->fresh), nothing, NULL);
                g->over = g->leaves;
                if (g->over)
                        v->boxes++; /* until that box is gone */
                else
                        change_finish(g);
        }
}
