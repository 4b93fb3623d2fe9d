/* The layers that runs of a box write in. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/private.h"
#include "../layer/stack.h"
#include "../tree/tree.h"
#include "changes.h"

extern char **environ;

int layers_find_newest(const char *root, const char *workspace, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        char real[PATH_MAX];
        int r;

        if (!realpath(workspace ? workspace : ".", real))
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "%s: %s", workspace ? workspace : ".",
                                 errno_text(errno));
        r = layer_list(root, &ids, err);
        if (r < 0)
                return r;
        for (char **id = ids; id && *id; id++) {
                _cleanup_(layer_freep) struct layer_box *box = NULL;

                if (layer_open(root, *id, &box, NULL) >= 0 && streq(box->meta.workspace, real)) {
                        *ret = take_ptr(box);
                        return 0;
                }
        }
        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                         "no box has changes for %s (see 'hutch boxes' for other directories)", real);
}

/* The directory that a layer is about. That of a system's may be the skeleton's, which comes and goes; its place does
 * not.
 */
static const char *lower_of(const struct step *s) {
        return s->flags & STEP_SYSTEM && !(s->flags & STEP_OWN) ? s->dest : s->source;
}

/* And where the box sees it. A private copy has another place each time. */
static const char *dest_of(const struct plan *plan, const struct step *s) {
        return plan_has_copies(plan) ? s->source : s->dest;
}

#define COMMAND_MOST 200

/* What is run, in a line for `hutch boxes`: the text of a shell, or the words of a command. */
static int describe_command(const struct plan *plan, char **ret) {
        _cleanup_(buf_done) struct buf b = {0};
        size_t n = strv_length(plan->argv);
        bool text = n >= 3 && streq(plan->argv[n - 2], "-c");

        if (text)
                buf_puts(&b, plan->argv[n - 1]);
        for (size_t i = 0; !text && i < n; i++) {
                buf_puts(&b, i ? " " : "");
                buf_puts(&b, plan->argv[i]);
        }
        if (b.len > COMMAND_MOST)
                b.len = COMMAND_MOST;
        *ret = buf_take_string(&b);
        return *ret ? 0 : -ENOMEM;
}

/* needed by the first run */
static int make_layers(hutch_box *box, const struct plan *plan, struct hutch_error *err) {
        _cleanup_(freep) char *command = NULL;
        struct layer_meta meta = {0};
        _cleanup_(freep) char *root = NULL;
        char real[PATH_MAX] = "";
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (s->kind != STEP_COW || s->text)
                        continue;
                r = strv_push(&meta.lowers, lower_of(s));
                if (r >= 0)
                        r = strv_push(&meta.dests, dest_of(plan, s));
                if (r >= 0 && s->flags & STEP_SYSTEM)
                        r = strv_push(&meta.system, s->dest);
        }
        if (r >= 0)
                r = describe_command(plan, &command);
        if (r >= 0)
                r = strv_copy(box->policy ? policy_list(box->policy, KEY_PROTECT) : box->protect, &meta.protect);
        if (r >= 0)
                r = strv_copy(box->policy ? policy_list(box->policy, KEY_UNPROTECT) : box->unprotect, &meta.unprotect);
        meta.command = command;
        meta.workspace = box->workspace ? box->workspace : real;
        if (!box->workspace && !realpath(policy_dir(box->policy), real))
                meta.workspace = meta.lowers ? meta.lowers[0] : real;
        if (r < 0)
                r = error_oom(err);
        else
                r = layer_root(environ, &root, err);
        if (r >= 0)
                r = layer_new(root, &meta, &box->layers, err);
        strv_free(meta.lowers);
        strv_free(meta.dests);
        strv_free(meta.system);
        strv_free(meta.protect);
        strv_free(meta.unprotect);
        return r;
}

static int refuse_other_mounts(const struct layer_box *layers, const char *directory, struct hutch_error *err) {
        return error_set(err, HUTCH_E_POLICY_REFUSED, EBUSY,
                         "box %s was started with other mounts or --cow paths and has changes in %s that it would not "
                         "see now: apply or discard them first",
                         layers->meta.id, directory);
}

/* A directory that is now a separate layer and was part of another before: the box would no longer see what it changed
 * there. */
static int check_new(const struct layer_box *layers, const char *lower, struct hutch_error *err) {
        for (size_t n = 0; layers->meta.lowers[n]; n++) {
                bool any = false;

                if (!path_is_beneath(lower, layers->meta.lowers[n]))
                        continue;
                if (stack_has(layers, n, path_tail(lower, layers->meta.lowers[n]) + 1, &any) < 0)
                        return error_oom(err);
                if (any)
                        return refuse_other_mounts(layers, lower, err);
        }
        return 0;
}

/* The reverse: a directory that is no longer a layer. A session's system, home and /tmp are not reviewed, and wait for
 * the next session. */
static int check_old(const struct layer_box *layers, const struct plan *plan, const unsigned *numbers,
                     struct hutch_error *err) {
        for (size_t n = 0; layers->meta.lowers[n]; n++) {
                bool used = layer_is_system(&layers->meta, n), any = false;

                for (size_t i = 0; !used && i < plan->n_steps; i++)
                        used = plan->steps[i].kind == STEP_COW && numbers[plan->steps[i].layer] == n;
                if (!used && stack_has(layers, n, "", &any) < 0)
                        return error_oom(err);
                if (any)
                        return refuse_other_mounts(layers, layers->meta.lowers[n], err);
        }
        return 0;
}

static int find_layer(struct layer_box *layers, const struct plan *plan, const struct step *s, unsigned *ret,
                      struct hutch_error *err) {
        int r;

        for (unsigned n = 0; layers->meta.lowers[n]; n++)
                if (streq(layers->meta.lowers[n], lower_of(s))) {
                        *ret = n;
                        return 0;
                }
        r = check_new(layers, lower_of(s), err);
        if (r < 0)
                return r;
        *ret = (unsigned) strv_length(layers->meta.lowers);
        if (s->flags & STEP_SYSTEM && strv_push(&layers->meta.system, s->dest) < 0)
                return error_oom(err);
        return layer_add(layers, lower_of(s), dest_of(plan, s), err);
}

/* The plan's directories get the layers that the box has for them, by the directory and not by their order. */
static int match_layers(struct layer_box *layers, const struct plan *plan, unsigned *numbers, struct hutch_error *err) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW && !plan->steps[i].text)
                        r = find_layer(layers, plan, &plan->steps[i], &numbers[plan->steps[i].layer], err);
        return r < 0 ? r : check_old(layers, plan, numbers, err);
}

void layers_forget_since(hutch_box *box) {
        for (size_t i = 0; i < box->n_since; i++)
                index_done(&box->since[i]);
        free(take_ptr(box->since));
        box->n_since = 0;
}

void layers_free(hutch_box *box) {
        layers_forget_since(box);
        layer_free(take_ptr(box->layers));
}

/* What the last run recorded, if nothing ran since. */
static int remember_layer(const struct layer_box *layers, size_t i, struct index *ret, struct hutch_error *err) {
        struct layer_pair layer = {.pair = {.lower = -1, .upper = -1}, .directory = -1};
        _cleanup_(below_done) struct below below = {.host = -1};
        _cleanup_(index_done) struct index old = {0};
        int r = changes_open_top(layers, i, &layer, &below, err);

        if (r >= 0 && layer.directory >= 0) {
                r = index_load(layer.directory, &old);
                if (r > 0)
                        *ret = take_struct(old);
                else if (r == 0)
                        r = index_take(layer.pair.upper, &old, INDEX_BUDGET, ret);
                index_expire(layer.directory);
                if (r < 0)
                        error_set(err, HUTCH_E_IO, r, "cannot read the layer of %s: %s", layer.pair.host_path,
                                  errno_text(-r));
                else if (!ret->fresh)
                        r = changes_record_missed(layers, i, &layer, ret, err);
        }
        changes_close_layer(&layer);
        return r < 0 ? r : 0;
}

int layers_remember(hutch_box *box, struct hutch_error *err) {
        size_t n = strv_length(box->layers->meta.lowers);
        int r = 0;

        layers_forget_since(box);
        box->since = calloc(n + 1, sizeof(*box->since));
        if (!box->since)
                return error_oom(err);
        for (; r >= 0 && box->n_since < n; box->n_since++) {
                bool system = layer_is_system(&box->layers->meta, box->n_since);

                r = remember_layer(box->layers, box->n_since, &box->since[box->n_since], system ? NULL : err);
                if (system && r < 0)
                        r = 0; /* its changes are only reported */
        }
        if (r < 0)
                layers_forget_since(box);
        return r;
}

void layers_expire(const hutch_box *box) {
        _cleanup_(freep) char *root = NULL, *path = NULL;
        struct hutch_error untold;

        if (box->layers)
                changes_expire(box->layers->path);
        else if (box->box_id && layer_root(environ, &root, &untold) >= 0 &&
                 asprintf(&path, "%s/%s", root, box->box_id) >= 0)
                changes_expire(path);
}

static int with_layers(const struct plan *plan, const struct plan_layers *layers, struct plan **ret,
                       struct hutch_error *err) {
        return plan_with_layers(plan, layers, ret) < 0 ? error_oom(err) : 0;
}

/* The box's first layers; where none can be kept on disk, they are in memory. */
static int make_first(hutch_box *box, const struct plan *plan, struct plan **ret, struct hutch_error *err) {
        struct plan_layers layers = {0};
        int r, can;

        r = make_layers(box, plan, err);
        if (r < 0)
                return r;
        can = plan_has_copies(plan) ? 0 : layer_can_hold(box->layers);
        if (can < 0) {
                layer_remove(box->layers, NULL);
                layers_free(box);
                layers.in_memory = errno_text(-can);
        }
        return with_layers(plan, &layers, ret, err);
}

static void free_below(char ***below, unsigned n) {
        for (unsigned i = 0; below && i < n; i++)
                strv_free(below[i]);
        free(below);
}

/* Those that it has already, found by the directory and not by their order. */
static int use_layers(hutch_box *box, const struct plan *plan, struct plan **ret, struct hutch_error *err) {
        _cleanup_(freep) unsigned *numbers = calloc(plan->n_layers + 1, sizeof(*numbers));
        struct plan_layers layers = {.numbers = numbers};
        int r;

        if (!numbers)
                return error_oom(err);
        r = layer_settle_copies(box->layers, err);
        if (r >= 0 && !box_is_session(box)) /* there each run does */
                r = layers_remember(box, err);
        if (r < 0)
                return r;
        r = match_layers(box->layers, plan, numbers, err);
        if (r < 0)
                return r;
        r = layer_renew(box->layers, err);
        if (r < 0)
                return r;
        layers.n = (unsigned) strv_length(box->layers->meta.lowers);
        layers.below = calloc(layers.n + 1, sizeof(*layers.below));
        for (unsigned n = 0; r >= 0 && layers.below && n < layers.n; n++)
                r = stack_list_below(box->layers, n, &layers.below[n]);
        r = r < 0 || !layers.below ? error_oom(err) : with_layers(plan, &layers, ret, err);
        free_below(layers.below, layers.n);
        return r;
}

static int note_left_out(struct plan *plan, const struct mirror *copy) {
        if (copy->left_out == 0)
                return 0;
        return events_note(&plan->events, NOTICE_COW_LEFT_OUT, copy->first_left_out, NULL,
                           "the private copy of the workspace is without %llu of its files, which you may not read, or "
                           "which are devices or sockets (%s)",
                           (unsigned long long) copy->left_out, copy->first_left_out);
}

/* Where the box has no overlays it works in copies, and the plan gets their paths. */
static int make_copies(const hutch_box *box, struct plan *plan, struct hutch_error *err) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                _cleanup_(freep) char *from = NULL, *to = NULL;
                struct step *s = &plan->steps[i];
                struct mirror copy;

                if (s->kind != STEP_COW)
                        continue;
                r = layer_make_copy(box->layers, s->layer, plan->copy_limit, &to, &copy, err);
                if (r < 0)
                        break;
                from = strdup(s->dest);
                if (!from || plan_move(plan, from, to) < 0 || note_left_out(plan, &copy) < 0)
                        r = error_oom(err);
        }
        return r;
}

int layers_prepare(hutch_box *box, struct plan **plan, struct hutch_error *err) {
        _cleanup_(plan_freep) struct plan *made = NULL;
        int r;

        r = box_prepare_skeleton(box, *plan, err);
        if (r < 0 || (*plan)->n_layers == 0 || (*plan)->ephemeral)
                return r;
        r = box->layers ? use_layers(box, *plan, &made, err) : make_first(box, *plan, &made, err);
        if (r < 0 || !made)
                return r;
        if (plan_has_copies(made))
                r = make_copies(box, made, err);
        if (r < 0)
                return r;
        plan_free(*plan);
        *plan = take_ptr(made);
        return 0;
}

static bool lies_in_another(char *const *lowers, const char *path) {
        for (; *lowers; lowers++)
                if (!streq(*lowers, path) && path_is_beneath(path, *lowers))
                        return true;
        return false;
}

static bool has_rule(const struct hutch_policy *policy, const char *path) {
        char real[PATH_MAX];

        for (size_t i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].access == HUTCH_COW && realpath(policy->paths[i].path, real) && streq(real, path))
                        return true;
        return false;
}

/* The directories of the kept box are copy-on-write again, whatever the policy sets for them. */
static int adopt(hutch_box *box, struct hutch_error *err) {
        const struct layer_meta *m = &box->layers->meta;
        int r = 0;

        for (size_t n = 0; r >= 0 && m->lowers[n]; n++) {
                if (layer_is_system(m, n)) {
                        r = policy_set_number(box->policy, KEY_COW_SYSTEM, COW_SYSTEM_ASKED, "--box", err);
                } else if (streq(m->lowers[n], m->workspace)) {
                        r = policy_set_number(box->policy, KEY_WORKSPACE_MODE, HUTCH_WORKSPACE_COW, "--box", err);
                        if (r >= 0)
                                r = policy_set(box->policy, KEY_WORKSPACE_DIR, m->workspace, "--box", err);
                } else if (!lies_in_another(m->lowers, m->lowers[n]) && !has_rule(box->policy, m->lowers[n]))
                        r = policy_add_path(box->policy, HUTCH_COW, m->lowers[n],
                                            streq(m->lowers[n], m->dests[n]) ? NULL : m->dests[n], "--box", err);
        }
        return r;
}

int layers_open(hutch_box *box, const char *id, struct hutch_error *err) {
        const struct hutch_policy *p = box->policy;
        _cleanup_(freep) char *root = NULL;
        int r = layer_root(environ, &root, err);

        if (r < 0)
                return r;
        if (policy_flag(p, KEY_EPHEMERAL))
                r = error_set(err, HUTCH_E_USAGE, EINVAL, "--box and --ephemeral exclude each other");
        if (r < 0)
                return r;
        r = id[0] ? layer_open(root, id, &box->layers, err)
                  : layers_find_newest(root, policy_dir(p), &box->layers, err);
        return r < 0 ? r : adopt(box, err);
}

void layers_forget(hutch_box *box) {
        if (!box->layers || !box->keep_changes)
                return;
        if (strv_length(box->layers->meta.chain) == 0 && changes_any(box->layers, NULL) == 0) {
                layer_remove(box->layers, NULL);
                layers_free(box);
        } else
                (void) layer_settle_copies(box->layers, NULL);
}
