/* Copy-on-write directories as steps: one overlay for each, and one more for each file system that is mounted inside.
 *
 * Only root can copy a directory without the file systems mounted in it (survey/mounts.c). For other users such a
 * directory is split: each directory in it that has no mounts inside is an overlay as it is; of the directories on the
 * way to a mount, only the files belong to the overlay (init/standin.c). The restrictions are reported: directories
 * that are layers by themselves cannot be renamed or removed, and nothing can be renamed from one to another. */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"

#define PARTS_MOST 250 /* each is some mounts and descriptors */

bool plan_has_too_many_parts(const struct plan_input *in, const struct path_fact *fact) {
        return !in->facts->privileged && fact->n_mounts > PARTS_MOST;
}

static bool is_split(const struct plan *plan, const struct path_fact *fact) {
        return !plan->map_by_parent && fact->n_mounts > 0;
}

/* A file that something is mounted on. A process that can connect to a socket acts outside of the box. */
static int add_file(struct plan *plan, const struct mount_fact *part, struct step s) {
        int r = 0;

        s.kind = part->special ? STEP_HIDE : STEP_BIND;
        if (part->special)
                r = events_note(&plan->events, NOTICE_MOUNT_HIDDEN, part->path, NULL,
                                "%s is hidden: it is mounted inside a copy-on-write directory and is neither a file "
                                "nor a directory",
                                part->path);
        else if (!(s.flags & STEP_SYSTEM))
                r = events_note(&plan->events, NOTICE_MOUNT_READ_ONLY, part->path, NULL,
                                "%s is read-only: it is a separate mount inside a copy-on-write directory", part->path);
        s.flags = part->special ? 0 : s.flags & ~(unsigned) STEP_SYSTEM;
        if (part->special)
                s.source = NULL;
        return r < 0 ? r : plan_add_step(plan, s);
}

/* Where some of the parts are directories that could be renamed otherwise. */
static int tell_split(struct plan *plan, const struct path_fact *fact) {
        return !is_split(plan, fact) ? 0
                                     : events_note(&plan->events, NOTICE_COW_SPLIT, fact->real, NULL,
                                                   "%s has other file systems mounted inside, so each directory in it "
                                                   "is copy-on-write by itself: these cannot be renamed or removed, "
                                                   "and files are moved between them by copying",
                                                   fact->real);
}

/* One group is mapped into a box of an ordinary user's, and an overlay gives what it copies the group that it had. */
static int tell_group(struct plan *plan, const struct path_fact *fact) {
        if (plan->map_by_parent || fact->gid == plan->host_gid)
                return 0;
        return events_note(&plan->events, NOTICE_COW_FOREIGN_GROUP, fact->real, NULL,
                           "%s belongs to group %u, which the box does not have: files of another group than yours "
                           "cannot be changed in it (\"Value too large for defined data type\")",
                           fact->real, (unsigned) fact->gid);
}

/* A layer's flags and what is below it, by what it is about. */
struct kind {
        unsigned flags;
        const char *skeleton; /* or NULL */
        const char *origin;
};

static int add_layer(struct plan *plan, const struct kind *kind, struct step s) {
        _cleanup_(freep) char *directory = NULL;
        char *below[] = {NULL, NULL};

        if (kind->skeleton) {
                if (asprintf(&directory, "%s%s", kind->skeleton, s.source) < 0)
                        return -ENOMEM;
                below[0] = directory;
                s.below = below;
        }
        s.kind = STEP_COW;
        s.flags |= STEP_WRITABLE;
        s.layer = plan->n_layers++;
        return plan_add_step(plan, s);
}

static int add_parts(struct plan *plan, const struct kind *kind, const struct path_fact *fact, const char *dest) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < fact->n_mounts; i++) {
                const struct mount_fact *part = &fact->mounts[i];
                _cleanup_(freep) char *place = NULL;
                struct step s = {.kind = STEP_BIND,
                                 .flags = kind->flags,
                                 .owner = part->uid,
                                 .group = part->gid,
                                 .dev = part->dev,
                                 .ino = part->ino,
                                 .source = part->path,
                                 .origin = (char *) kind->origin};

                if (!part->mounted && plan->map_by_parent)
                        continue;
                if (asprintf(&place, "%s%s", dest, path_tail(part->path, fact->real)) < 0)
                        return -ENOMEM;
                s.dest = place;
                if (!part->directory) {
                        r = add_file(plan, part, s);
                        continue;
                }
                s.flags |=
                        (part->mounted ? STEP_SUBMOUNT : 0u) | (part->split && !plan->map_by_parent ? STEP_SPLIT : 0u);
                r = add_layer(plan, kind, s);
        }
        return r;
}

static int add_whole(struct plan *plan, const struct kind *kind, const struct path_fact *fact, const char *dest) {
        int r = add_layer(plan, kind,
                          (struct step){.flags = kind->flags | (is_split(plan, fact) ? STEP_SPLIT : 0u),
                                        .owner = fact->uid,
                                        .group = fact->gid,
                                        .dev = kind->flags & STEP_SYSTEM ? 0 : fact->dev,
                                        .ino = kind->flags & STEP_SYSTEM ? 0 : fact->ino,
                                        .source = fact->real,
                                        .dest = (char *) dest,
                                        .origin = (char *) kind->origin});
        if (r < 0)
                return r;
        r = tell_split(plan, fact);
        return r < 0 ? r : add_parts(plan, kind, fact, dest);
}

/* Not a user's path: if root started the box, root's files in it belong to no user of the box. */
int plan_add_cow_system(struct plan *plan, const struct path_fact *fact, const char *skeleton) {
        return add_whole(plan, &(struct kind){.flags = STEP_SYSTEM, .skeleton = skeleton, .origin = "--cow"}, fact,
                         fact->real);
}

static const struct step *layer_at(const struct plan *plan, const char *dest) {
        const struct step *found = NULL;

        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW && streq(plan->steps[i].dest, dest))
                        found = &plan->steps[i];
        return found;
}

/* A part that a rule names once more, and nothing was put over it since. */
static bool is_there_already(const struct plan *plan, const struct path_fact *fact, const char *dest) {
        const struct step *s = layer_at(plan, dest);

        if (!s || s->text || !streq(s->source, fact->real))
                return false;
        for (const struct step *later = s + 1; later < plan->steps + plan->n_steps; later++)
                if (path_is_beneath(dest, later->dest) && later->kind != STEP_PIN)
                        return false;
        return true;
}

int plan_add_cow(struct plan *plan, const struct path_fact *fact, const char *dest, const char *same,
                 const char *origin) {
        const struct step *shown = same ? layer_at(plan, same) : NULL;

        int r;

        if (!same && is_there_already(plan, fact, dest))
                return 0;
        if (!same) {
                r = add_whole(plan, &(struct kind){.flags = STEP_GRANTED, .origin = origin}, fact, dest);
                return r < 0 ? r : tell_group(plan, fact);
        }
        return plan_add_step(plan, (struct step){.kind = STEP_COW,
                                                 .flags = STEP_GRANTED | STEP_WRITABLE,
                                                 .layer = shown ? shown->layer : 0,
                                                 .owner = fact->uid,
                                                 .group = fact->gid,
                                                 .dev = fact->dev,
                                                 .ino = fact->ino,
                                                 .source = fact->real,
                                                 .dest = (char *) dest,
                                                 .text = (char *) same,
                                                 .origin = (char *) origin});
}
