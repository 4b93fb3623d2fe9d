/* A plan and the layers of a box: where writes to copy-on-write directories go, and what is below. A plan is never
 * changed; the one with the layers is a new one. */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"

/* Puts a frozen layer right above the source of each step of that layer, beneath those that were put there before. */
static int add_below(struct plan *plan, unsigned layer, const char *directory) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                struct step *s = &plan->steps[i];
                size_t n = strv_length(s->below);

                if (s->kind != STEP_COW || s->layer != layer || s->text)
                        continue;
                r = strv_push(&s->below, directory);
                /* The skeleton of a system directory stays next to the directory that it replaces. */
                if (r >= 0 && s->flags & STEP_SYSTEM && n > 0) {
                        char *skeleton = s->below[n - 1];

                        s->below[n - 1] = s->below[n];
                        s->below[n] = skeleton;
                }
        }
        return r;
}

static void drop_below(struct plan *plan, const char *dir) {
        for (size_t i = 0; i < plan->n_steps; i++) {
                char **to = plan->steps[i].below;

                for (char **from = to; from && *from; from++)
                        if (path_is_beneath(*from, dir))
                                free(*from);
                        else
                                *to++ = *from;
                if (to)
                        *to = NULL;
        }
}

static void renumber(struct plan *plan, const unsigned *numbers, unsigned n) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW)
                        plan->steps[i].layer = numbers[plan->steps[i].layer];
        plan->n_layers = n;
}

static int copy(const struct plan *plan, struct plan **ret) {
        _cleanup_(buf_done) struct buf encoded = {0};
        int r = plan_encode(plan, &encoded);

        return r < 0 ? r : plan_decode(encoded.data, encoded.len, ret);
}

static int put_layers(struct plan *plan, const struct plan_layers *layers) {
        if (layers->numbers)
                renumber(plan, layers->numbers, layers->n);
        if (layers->instead)
                drop_below(plan, layers->instead);
        for (unsigned n = 0; layers->below && n < layers->n; n++)
                for (char **one = layers->below[n]; one && *one; one++)
                        if (add_below(plan, n, *one) < 0)
                                return -ENOMEM;
        if (!layers->in_memory)
                return 0;
        plan->ephemeral = true;
        return events_note(&plan->events, NOTICE_COW_IN_MEMORY, NULL, NULL,
                           "changes in copy-on-write directories are kept in memory and lost with the box: the file "
                           "system of the state directory cannot hold layers (%s)",
                           layers->in_memory);
}

bool plan_has_copies(const struct plan *plan) {
        return plan->n_layers > 0 && !(plan->traits & TRAIT_OWN_ROOT);
}

static int move_path(char **text, const char *from, const char *to) {
        char *at = *text ? strstr(*text, from) : NULL, *moved;
        size_t n = strlen(from);

        if (!at || (at[n] && at[n] != '/'))
                return 0;
        if (asprintf(&moved, "%.*s%s%s", (int) (at - *text), *text, to, at + n) < 0)
                return -ENOMEM;
        free(*text);
        *text = moved;
        return 0;
}

int plan_move(struct plan *plan, const char *from, const char *to) {
        int r = move_path(&plan->cwd, from, to);

        for (char **e = plan->env; r >= 0 && e && *e; e++)
                r = move_path(e, from, to);
        for (char **dir = plan->search; r >= 0 && dir && *dir; dir++)
                r = move_path(dir, from, to);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                r = move_path(&plan->steps[i].dest, from, to);
        return r;
}

int plan_with_layers(const struct plan *plan, const struct plan_layers *layers, struct plan **ret) {
        _cleanup_(plan_freep) struct plan *made = NULL;
        int r = copy(plan, &made);

        if (r < 0)
                return r;
        r = put_layers(made, layers);
        if (r < 0)
                return r;
        *ret = take_ptr(made);
        return 0;
}
