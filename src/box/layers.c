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

static void forget_since(hutch_box *box) {
        for (size_t i = 0; i < box->n_since; i++)
                index_done(&box->since[i]);
        free(take_ptr(box->since));
        box->n_since = 0;
}

void layers_free(hutch_box *box) {
        forget_since(box);
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

        forget_since(box);
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
                forget_since(box);
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

/* The place at which the command saw the layer: the last one that shows it. A layer inside another is shown wherever
 * that is, and only the other has steps for all its places. */
static int place_of(const hutch_box *box, const struct plan *plan, size_t layer, char **ret) {
        const struct step *own = NULL, *outer = NULL, *shown = NULL;

        for (const struct step *s = plan->steps; s < plan->steps + plan->n_steps; s++) {
                if (s->kind != STEP_COW)
                        continue;
                if (s->layer == layer && !s->text)
                        own = s;
                if (s->layer == layer && (!shown || path_is_beneath(plan->cwd, s->dest)))
                        shown = s;
        }
        for (const struct step *s = plan->steps; own && s < own; s++)
                if (s->kind == STEP_COW && !s->text && !outer && path_is_beneath(own->dest, s->dest) &&
                    path_is_beneath(own->source, s->source))
                        outer = s;
        for (const struct step *s = plan->steps; outer && s < plan->steps + plan->n_steps; s++)
                if (s->kind == STEP_COW && s->layer == outer->layer && path_is_beneath(plan->cwd, s->dest))
                        return asprintf(ret, "%s%s", s->dest, path_tail(own->dest, outer->dest)) < 0 ? -ENOMEM : 0;
        /* The plan of a session that another process started names no copies yet. */
        if (shown && startswith(shown->dest, PLAN_COPY))
                return layer_copy_path(box->layers, layer, ret);
        *ret = strdup(shown ? shown->dest : box->layers->meta.dests[layer]);
        return *ret ? 0 : -ENOMEM;
}

int tracked_add(struct tracked *t, const char *place, const struct change_list *list) {
        char ***lists[] = {
                [CHANGE_CREATED] = &t->created, [CHANGE_MODIFIED] = &t->modified, [CHANGE_DELETED] = &t->deleted};
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                if (!*lists[i])
                        *lists[i] = calloc(1, sizeof(char *));
                if (!*lists[i])
                        return -ENOMEM;
        }
        for (size_t i = 0; r >= 0 && i < list->n; i++)
                r = strv_pushf(lists[list->items[i].kind], "%s/%s", place, list->items[i].path);
        return r;
}

static int put_changes(const hutch_box *box, const struct plan *plan, size_t layer, const struct change_list *list,
                       struct tracked *t, struct hutch_error *err) {
        _cleanup_(freep) char *place = NULL;

        return place_of(box, plan, layer, &place) < 0 || tracked_add(t, place, list) < 0 ? error_oom(err) : 0;
}

/* Whether a change is a file that init put there for the box, and that is as it was. */
static bool is_seed(const struct plan *plan, const char *place, const struct layer_pair *layer,
                    const struct change *change) {
        for (const struct step *s = plan->steps; s < plan->steps + plan->n_steps; s++) {
                _cleanup_(freep) char *text = NULL;
                _cleanup_(closep) int fd = -1;
                size_t len;

                if (s->kind != STEP_FILE || !(s->flags & STEP_SEED) || !s->text || !path_is_beneath(s->dest, place) ||
                    !streq(path_tail(s->dest, place) + 1, change->path))
                        continue;
                fd = tree_open_file(layer->pair.upper, change->path);
                return fd >= 0 && read_whole_fd(fd, 1 << 20, &text, &len) >= 0 && len == strlen(s->text) &&
                       memcmp(text, s->text, len) == 0;
        }
        return false;
}

static int drop_seeds(const hutch_box *box, const struct plan *plan, size_t i, struct layer_pair *layer) {
        _cleanup_(freep) char *place = NULL;
        size_t kept = 0;

        if (place_of(box, plan, i, &place) < 0)
                return -ENOMEM;
        for (size_t n = 0; n < layer->list.n; n++) {
                struct change *c = &layer->list.items[n];

                if (is_seed(plan, place, layer, c)) {
                        free(c->path);
                        free(c->note);
                } else
                        layer->list.items[kept++] = *c;
        }
        layer->list.n = kept;
        return 0;
}

/* What was changed in a layer since it was remembered; what could not be remembered was empty. 1 if anything was. */
static int track_layer(const hutch_box *box, const struct plan *plan, size_t i, struct tracked *t,
                       struct hutch_error *err) {
        struct layer_pair layer = {.pair = {.lower = -1, .upper = -1}, .directory = -1};
        struct index none = {0};
        int r = changes_since(box->layers, i, i < box->n_since ? &box->since[i] : &none, &layer, err);
        bool any;

        if (r >= 0 && i >= box->n_since)
                r = drop_seeds(box, plan, i, &layer);
        any = r >= 0 && layer.list.n > 0;
        if (r >= 0 && layer.directory >= 0)
                r = put_changes(box, plan, i, &layer.list, t, err);
        change_list_done(&layer.list);
        changes_close_layer(&layer);
        return r < 0 ? r : any;
}

/* The system's directories, and others that are dropped with the box: reported after what can be reviewed, and never a
 * cause of failure. */
static void track_system(const hutch_box *box, const struct plan *plan, struct tracked *t) {
        const struct layer_meta *m = &box->layers->meta;
        struct hutch_error untold;

        for (size_t i = 0; m->lowers[i]; i++)
                if (layer_is_system(m, i))
                        (void) track_layer(box, plan, i, t, &untold);
}

/* The first run of a box: whatever differs from the host is its change. */
static int track_first(const hutch_box *box, const struct plan *plan, struct tracked *t, bool *ret_any,
                       struct hutch_error *err) {
        struct changes changes = {0};
        int r = changes_record(box->layers, &changes, err);

        for (size_t i = 0; r >= 0 && i < changes.n_layers; i++)
                if (changes.layers[i].directory >= 0)
                        r = put_changes(box, plan, i, &changes.layers[i].list, t, err);
        *ret_any = changes.n > 0;
        t->n_reviewable = changes.n;
        changes_done(&changes);
        if (r < 0)
                return r;
        track_system(box, plan, t);
        return r;
}

static size_t count_tracked(const struct tracked *t) {
        return strv_length(t->created) + strv_length(t->modified) + strv_length(t->deleted);
}

/* A further run: only its changes are reported. A layer that came with it had nothing before. */
static int track_further(hutch_box *box, const struct plan *plan, struct tracked *t, bool *ret_any,
                         struct hutch_error *err) {
        const struct layer_meta *m = &box->layers->meta;
        bool any = false;
        int r = 0;

        for (size_t i = 0; r >= 0 && m->lowers[i]; i++) {
                if (layer_is_system(m, i))
                        continue;
                r = track_layer(box, plan, i, t, err);
                any = any || r > 0;
        }
        t->n_reviewable = count_tracked(t);
        if (r >= 0)
                track_system(box, plan, t);
        forget_since(box);
        /* It had changes before, or it would be gone; they may have been undone. */
        *ret_any = true;
        if (r < 0)
                return r;
        if (any && box->keep_changes && !box_is_session(box) && strv_length(m->chain) == 0) {
                r = changes_any(box->layers, err);
                *ret_any = r != 0;
        }
        return r < 0 ? r : 0;
}

/* What the run changed in its layers. A kept box with nothing to keep is removed at once; one with frozen layers has a
 * history, and stays. */
int layers_track(hutch_box *box, const struct plan *plan, struct tracked *ret, struct hutch_error *err) {
        struct tracked t = {0};
        bool any = true;
        int r;

        if (!box->layers)
                return 0;
        r = box->n_since > 0 ? track_further(box, plan, &t, &any, err) : track_first(box, plan, &t, &any, err);
        if (r >= 0 && !box_is_session(box))
                layer_drop_copies(box->layers);
        if (r >= 0 && box->keep_changes && !box_is_session(box) && !any && strv_length(box->layers->meta.chain) == 0) {
                layer_remove(box->layers, NULL);
                layers_free(box);
        }
        t.box_id = box->layers && box->keep_changes ? box->layers->meta.id : NULL;
        *ret = t;
        return r;
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
