/* What a run changed in its layers; see apart.h for the process that finds it out. */
#include <errno.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/private.h"
#include "../layer/stack.h"
#include "../tree/tree.h"
#include "apart.h"
#include "changes.h"

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
        size_t n[ARRAY_SIZE(lists)], more[ARRAY_SIZE(lists)] = {0};

        for (size_t i = 0; i < list->n; i++)
                more[list->items[i].kind]++;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                char **grown;

                n[i] = strv_length(*lists[i]);
                grown = reallocarray(*lists[i], n[i] + more[i] + 1, sizeof(char *));
                if (!grown)
                        return -ENOMEM;
                memset(grown + n[i], 0, (more[i] + 1) * sizeof(char *));
                *lists[i] = grown;
        }
        for (size_t i = 0; i < list->n; i++) {
                enum change_kind kind = list->items[i].kind;

                if (asprintf(&(*lists[kind])[n[kind]], "%s/%s", place, list->items[i].path) < 0) {
                        (*lists[kind])[n[kind]] = NULL;
                        return -ENOMEM;
                }
                n[kind]++;
        }
        return 0;
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
static int track_further(const hutch_box *box, const struct plan *plan, struct tracked *t, bool *ret_any,
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

int layers_list(const hutch_box *box, const struct plan *plan, struct listed *ret, struct hutch_error *err) {
        ret->any = true;
        return box->n_since > 0 ? track_further(box, plan, &ret->tracked, &ret->any, err)
                                : track_first(box, plan, &ret->tracked, &ret->any, err);
}

/* Where a box is started by this process it is alone with what the box left; a client of a
 * session confines itself. */
static bool is_apart(const hutch_box *box) {
        return !box_is_session(box) && box->context->kind == HUTCH_WARDEN_SELF;
}

/* A first run that left no name in any layer: nothing is to be listed, or recorded for a further run. What was done in
 * a private copy becomes names of the layer with the listing. */
static bool is_bare(const hutch_box *box) {
        return box->n_since == 0 && box->keep_changes && !box_is_session(box) &&
               strv_length(box->layers->meta.chain) == 0 && !layer_has_copies(box->layers) &&
               !stack_is_touched(box->layers);
}

/* A kept box with nothing to keep is removed at once; one with frozen layers has a history, and stays. */
int layers_track(hutch_box *box, const struct plan *plan, struct tracked *ret, struct hutch_error *err) {
        struct listed found = {.any = true};
        int r;

        if (!box->layers)
                return 0;
        if (is_bare(box)) {
                static const struct change_list none = {0};

                found.any = false;
                r = tracked_add(&found.tracked, "", &none) < 0 ? error_oom(err) : 0;
        } else
                r = is_apart(box) ? layers_list_apart(box, plan, &found, err) : layers_list(box, plan, &found, err);
        layers_forget_since(box);
        if (r >= 0 && !box_is_session(box))
                layer_drop_copies(box->layers);
        if (r >= 0 && box->keep_changes && !box_is_session(box) && !found.any &&
            strv_length(box->layers->meta.chain) == 0) {
                layer_remove(box->layers, NULL);
                layers_free(box);
        }
        found.tracked.box_id = box->layers && box->keep_changes ? box->layers->meta.id : NULL;
        *ret = found.tracked;
        return r;
}
