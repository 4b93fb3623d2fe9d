/* The system's directories: read-only as the host has them, or, with --cow /, each under a private layer of the box.
 *
 * Between such a layer and the host's directory is the skeleton (src/layer/skeleton.h), which makes the directories the
 * box's. It shows no directory of the host that the plain box does not, except the package database: nothing else of
 * /var, where people keep data. The lowest layer of the box's /var is the skeleton itself. */
#include "plan.h"

#include "../policy/commands.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"

/* Stores that are read-only by their nature, and as large as they like to be. */
static bool stays_read_only(const char *path) {
        return streq(path, "/nix") || streq(path, "/snap");
}

static int add_var(struct plan *plan, const struct plan_input *in) {
        const struct survey *survey = in->survey;
        _cleanup_(freep) char *var = NULL;
        int r;

        if (asprintf(&var, "%s/var", survey->skeleton) < 0)
                return -ENOMEM;
        r = plan_add_step(plan, (struct step){.kind = STEP_COW,
                                              .flags = STEP_WRITABLE | STEP_SYSTEM | STEP_GRANTED,
                                              .layer = plan->n_layers++,
                                              .owner = in->facts->uid,
                                              .group = in->facts->gid,
                                              .source = var,
                                              .dest = (char *) "/var",
                                              .origin = (char *) "--cow"});
        if (r < 0)
                return r;
        if (survey->has_dpkg && !survey->database_mounted)
                r = plan_add_cow_system(plan, &(struct path_fact){.real = (char *) "/var/lib/dpkg"}, survey->skeleton);
        if (r < 0)
                return r;
        if (survey->has_apt && !survey->database_mounted)
                r = plan_add_cow_system(plan, &(struct path_fact){.real = (char *) "/var/lib/apt"}, survey->skeleton);
        return r;
}

/* hutch's own tools in the box, for package managers that require root. */
int plan_add_tools(struct plan *plan, const struct plan_input *in) {
        if (!plan->open_root || !in->survey->has_dpkg)
                return 0;
        if (!in->survey->tools)
                return events_note(&plan->events, NOTICE_TOOLS_MISSING, NULL, NULL,
                                   "hutch's tools for package managers are not installed: apt-get and dpkg will not "
                                   "work in the box");
        return plan_add_step(
                plan, (struct step){.kind = STEP_BIND, .source = in->survey->tools, .dest = (char *) "/run/hutch"});
}

int plan_add_system(struct plan *plan, const struct plan_input *in) {
        const struct survey *survey = in->survey;
        /* A program that the box could rewrite cannot be controlled by a list of commands. */
        bool fixed = policy_number(in->policy, KEY_COW_SYSTEM) == COW_SYSTEM_TRY && policy_has_commands(in->policy);
        bool bare = policy_flag(in->policy, KEY_BARE);
        bool cow = policy_number(in->policy, KEY_COW_SYSTEM) && survey->skeleton && !fixed && !bare &&
                   !(in->traits & TRAIT_DELEGATED);
        int r = 0;

        plan->open_root = cow;
        if (policy_number(in->policy, KEY_COW_SYSTEM) == COW_SYSTEM_TRY && !cow && !fixed && !bare &&
            !(in->traits & TRAIT_DELEGATED))
                r = events_note(&plan->events, NOTICE_SYSTEM_READ_ONLY, NULL, NULL,
                                "the system's directories are read-only: there is no place for a skeleton of them");
        for (size_t i = 0; r >= 0 && i < survey->n_system; i++) {
                const struct system_fact *f = &survey->system[i];
                bool too_many = plan_has_too_many_parts(in, &f->tree);

                if (f->link)
                        r = plan_add_step(
                                plan, (struct step){.kind = STEP_SYMLINK, .dest = (char *) f->path, .text = f->link});
                else if (cow && !too_many && !stays_read_only(f->path))
                        r = plan_add_cow_system(plan, &f->tree, survey->skeleton);
                else
                        r = plan_add_step(
                                plan,
                                (struct step){.kind = STEP_BIND, .source = (char *) f->path, .dest = (char *) f->path});
                if (r >= 0 && cow && too_many && !stays_read_only(f->path))
                        r = events_note(&plan->events, NOTICE_SYSTEM_READ_ONLY, f->path, NULL,
                                        "%s stays read-only: other file systems are mounted inside it, in directories "
                                        "with too many others",
                                        f->path);
        }
        if (r < 0)
                return r;
        if (cow)
                r = add_var(plan, in);
        return r;
}
