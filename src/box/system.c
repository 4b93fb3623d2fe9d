/* What a box needs of the host's system beside its plan: the skeleton of its folders, and a word where the network is
 * missing. */
#include <errno.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/skeleton.h"
#include "box.h"

/* The skeleton of the system's folders, which lives at least as long as the box. */
int box_prepare_skeleton(hutch_box *box, const struct plan *plan, struct hutch_error *err) {
        _cleanup_(strv_freep) char **tops = NULL;
        _cleanup_(freep) char *path = NULL;
        int r = 0, hold;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];
                size_t n = strv_length(s->below);
                bool inside = false;

                if (s->kind != STEP_COW || !(s->flags & STEP_SYSTEM) || s->flags & STEP_GRANTED || n == 0)
                        continue;
                for (char **top = tops; top && *top; top++)
                        inside = inside || path_is_beneath(s->source, *top);
                r = inside ? 0 : strv_push(&tops, s->source);
                if (r >= 0 && !path) {
                        path = strndup(s->below[n - 1], strlen(s->below[n - 1]) - strlen(s->source));
                        r = path ? 0 : -ENOMEM;
                }
        }
        if (r < 0)
                return error_oom(err);
        if (!path)
                return 0;
        r = skeleton_hold(path, tops, plan->map_by_parent, &hold, err);
        if (r < 0)
                return r;
        closep(&box->skeleton);
        box->skeleton = hold;
        return 0;
}

bool box_does_without_system(hutch_box *box, struct hutch_error *err) {
        if (policy_number(box->policy, KEY_COW_SYSTEM) != COW_SYSTEM_TRY || box->skeleton >= 0)
                return false;
        if (policy_set_number(box->policy, KEY_COW_SYSTEM, COW_SYSTEM_NO, "default", NULL) < 0)
                return false;
        if (err)
                *err = (struct hutch_error){0};
        return true;
}

/* Tools that fetch things, and say little of use where there is no network. */
static bool mentions_fetching(const char *const *argv) {
        static const char *const tools[] = {"pip", "pip3", "npm",  "npx",   "apt-get",
                                            "apt", "yarn", "pnpm", "cargo", "gem"};
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

        for (; argv && *argv; argv++)
                for (const char *word = *argv; *word; word += strcspn(word, letters)) {
                        size_t n = strspn(word, letters);

                        for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
                                if (strlen(tools[i]) == n && strncmp(word, tools[i], n) == 0)
                                        return true;
                        word += n;
                        if (!*word)
                                break;
                }
        return false;
}

void box_hint_at_network(const hutch_box *box, const struct plan *plan, const struct outcome *outcome,
                         struct report *report) {
        const char *const text[] = {report->request->command, NULL};
        struct hutch_event event;

        if (outcome->exit_code == 0 || outcome->exit_code == 124 || outcome->reason != HUTCH_NOT_KILLED ||
            outcome->error.code != HUTCH_OK || !(plan->traits & TRAIT_OWN_NET) ||
            (box->policy && policy_network(box->policy) == HUTCH_NET_ALLOWLIST) ||
            !mentions_fetching(text[0] ? text : report->request->argv))
                return;
        event = event_notice(NOTICE_NETWORK_MISSING, NULL,
                             box_is_session(box) ? "hutch session start --net open" : "--net open",
                             "the command failed, and the box has no network");
        report_event(report, &event);
}
