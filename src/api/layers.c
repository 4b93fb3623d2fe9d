/* The layers that runs of a box write in. */
#include <errno.h>
#include <limits.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/stack.h"
#include "changes.h"

extern char **environ;

/* The first run wants them. */
static int make_layers(hutch_box *box, const struct plan *plan, struct hutch_error *err) {
        struct layer_meta meta = {.command = plan->argv[0]};
        _cleanup_(freep) char *root = NULL;
        char real[PATH_MAX] = "";
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (s->kind != STEP_COW || s->text)
                        continue;
                r = strv_push(&meta.lowers, s->source);
                if (r >= 0)
                        r = strv_push(&meta.dests, s->dest);
                if (r >= 0 && s->flags & STEP_SYSTEM)
                        r = strv_push(&meta.system, s->dest);
        }
        meta.workspace = real;
        if (!realpath(box->policy->workspace_dir ? box->policy->workspace_dir : box->policy->base_dir, real))
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
        return r;
}

static int find_layer(struct layer_box *layers, const struct step *s, unsigned *ret, struct hutch_error *err) {
        /* What lies beneath a system folder's layer may change with the host; its place does not. */
        for (unsigned n = 0; layers->meta.lowers[n]; n++)
                if (s->flags & STEP_SYSTEM ? streq(layers->meta.dests[n], s->dest)
                                           : streq(layers->meta.lowers[n], s->source)) {
                        *ret = n;
                        return 0;
                }
        *ret = (unsigned) strv_length(layers->meta.lowers);
        return layer_add(layers, s->source, s->dest, err);
}

/* The plan's folders get the layers that the box has for them, by the folder and not by their order. */
static int match_layers(struct layer_box *layers, struct plan *plan, struct hutch_error *err) {
        _cleanup_(freep) unsigned *numbers = calloc(plan->n_layers + 1, sizeof(*numbers));
        int r = numbers ? 0 : error_oom(err);

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW && !plan->steps[i].text)
                        r = find_layer(layers, &plan->steps[i], &numbers[plan->steps[i].layer], err);
        if (r >= 0)
                plan_renumber_layers(plan, numbers, (unsigned) strv_length(layers->meta.lowers));
        return r;
}

int layers_prepare(hutch_box *box, struct plan *plan, struct hutch_error *err) {
        int r;

        if (plan->n_layers == 0 || plan->ephemeral)
                return 0;
        if (!box->layers)
                return make_layers(box, plan, err);
        r = match_layers(box->layers, plan, err);
        if (r >= 0)
                r = layer_renew(box->layers, err);
        for (unsigned n = 0; r >= 0 && n < plan->n_layers; n++) {
                _cleanup_(strv_freep) char **below = NULL;

                r = stack_list_below(box->layers, n, &below);
                for (char **folder = below; r >= 0 && folder && *folder; folder++)
                        r = plan_add_below(plan, n, *folder);
                if (r < 0)
                        r = error_oom(err);
        }
        return r;
}

/* The place at which the command saw the layer: the last one of those that show it. */
static const char *place_of(const hutch_box *box, const struct plan *plan, size_t layer) {
        const char *place = NULL;

        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW && plan->steps[i].layer == layer &&
                    (!place || path_is_beneath(plan->cwd, plan->steps[i].dest)))
                        place = plan->steps[i].dest;
        return place ? place : box->layers->meta.dests[layer];
}

static int sort_changes(const hutch_box *box, const struct plan *plan, const struct changes *changes,
                        struct tracked *t) {
        char ***lists[] = {
                [CHANGE_CREATED] = &t->created, [CHANGE_MODIFIED] = &t->modified, [CHANGE_DELETED] = &t->deleted};
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                *lists[i] = calloc(1, sizeof(char *));
                if (!*lists[i])
                        return -ENOMEM;
        }
        for (size_t i = 0; r >= 0 && i < changes->n; i++) {
                const struct changed *one = &changes->items[i];

                r = strv_pushf(lists[one->change->kind], "%s/%s", place_of(box, plan, one->layer), one->change->path);
        }
        return r;
}

/* What the run changed in its layers. A box that is kept and has nothing to keep is gone at once. */
int layers_track(hutch_box *box, const struct plan *plan, struct tracked *ret, struct hutch_error *err) {
        struct changes changes = {0};
        struct tracked t = {0};
        size_t n;
        int r;

        if (!box->layers)
                return 0;
        r = changes_read(box->layers, &changes, err);
        if (r >= 0)
                r = changes_record_base(&changes, err);
        if (r >= 0 && sort_changes(box, plan, &changes, &t) < 0)
                r = error_oom(err);
        n = changes.n;
        changes_done(&changes);
        if (r >= 0 && box->keep_changes && n == 0) {
                layer_remove(box->layers, NULL);
                layer_free(take_ptr(box->layers));
        }
        t.box_id = box->layers && box->keep_changes ? box->layers->meta.id : NULL;
        *ret = t;
        return r;
}

void layers_forget(hutch_box *box) {
        struct changes changes = {0};
        size_t n;

        if (!box->layers || !box->keep_changes || changes_read(box->layers, &changes, NULL) < 0)
                return;
        n = changes.n;
        changes_done(&changes);
        if (n == 0) {
                layer_remove(box->layers, NULL);
                layer_free(take_ptr(box->layers));
        }
}
