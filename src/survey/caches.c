/* The caches of package managers, so that a project builds in a box without a network at the first try; data/caches.
 *
 * A file in the workspace is enough for it, which a box can have made: what it gets is what the person's programs have
 * downloaded, read-only, and no more. --profile none leaves it out. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "toolchain.h"

static const char *const lines[] = {
#include "caches.h" /* made from data/caches */
};

enum { FILES, MANAGER, VARIABLE, DIRECTORY, FIRST_PART, WORDS_MOST = 8 };

static bool has_file(const struct survey *s, char *files) {
        const char *const places[] = {s->workspace.real, s->git_root.real};

        for (char *next = files, *file; (file = strsep(&next, ","));)
                for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                        _cleanup_(freep) char *path = NULL;

                        if (places[i] && asprintf(&path, "%s/%s", places[i], file) >= 0 && access(path, F_OK) == 0)
                                return true;
                }
        return false;
}

/* The registry behind it, as src/plan/online.c knows it; it lives as long as the program. */
static const char *manager_of(const char *word) {
        static const char *const known[] = {"go", "cargo", "npm"};

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (streq(word, known[i]))
                        return known[i];
        return NULL;
}

static int add(struct survey *s, const char *path, const char *manager, bool moved) {
        size_t n = s->n_toolchains;
        int r = toolchain_add(s, path);

        if (s->n_toolchains > n) {
                s->toolchains[n].cache = true;
                s->toolchains[n].with_home = !moved;
                s->toolchains[n].manager = manager;
        }
        return r;
}

static int add_line(struct survey *s, char *const *words, size_t n, const char *manager) {
        const char *set = strv_find_assignment(s->env, words[VARIABLE]);
        bool moved = set && path_is_beneath(set, s->home) && !streq(set, s->home);
        _cleanup_(freep) char *directory = NULL;
        size_t before = s->n_toolchains;
        int r = 0;

        if (moved ? path_make_absolute(set, NULL, &directory) < 0
                  : asprintf(&directory, "%s/%s", s->home, words[DIRECTORY]) < 0)
                return -ENOMEM;
        if (n == FIRST_PART)
                r = add(s, directory, manager, moved);
        for (size_t i = FIRST_PART; r >= 0 && i < n; i++) {
                _cleanup_(freep) char *part = NULL;

                r = asprintf(&part, "%s/%s", directory, words[i]) < 0 ? -ENOMEM : add(s, part, manager, moved);
        }
        return r >= 0 && moved && s->n_toolchains > before ? strv_set_assignment(&s->tool_env, words[VARIABLE], set)
                                                           : r;
}

int survey_look_at_caches(struct survey *s, const struct hutch_policy *policy) {
        const char *profile = policy_text(policy, KEY_PROFILE);
        int r = 0;

        if ((profile && streq(profile, "none")) || policy_number(policy, KEY_IDENTITY) == HUTCH_AS_ROOT)
                return 0;
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(lines); i++) {
                _cleanup_(freep) char *text = strdup(lines[i]);
                char *words[WORDS_MOST];
                size_t n = 0;

                if (!text)
                        return -ENOMEM;
                for (char *next = text; next && n < WORDS_MOST;)
                        words[n++] = strsep(&next, " ");
                if (n >= FIRST_PART && has_file(s, words[FILES]))
                        r = add_line(s, words, n, manager_of(words[MANAGER]));
        }
        return r;
}
