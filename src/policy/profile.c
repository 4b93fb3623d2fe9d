/* See profile.h. The index of commands is made when hutch is built, so that choosing costs no parsing. */
#include "profile.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "profiles.h"
#include "value.h"
#include "yaml.h"

const char *profile_builtin_name(size_t index) {
        return index < ARRAY_SIZE(builtin_profiles) ? builtin_profiles[index].name : NULL;
}

const char *profile_builtin_text(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(builtin_profiles); i++)
                if (streq(builtin_profiles[i].name, name))
                        return builtin_profiles[i].text;
        return NULL;
}

/* The words of an index line are separated by single blanks, with one at each end. */
const char *profile_for_command(const char *command) {
        const char *base = path_basename(command);
        size_t n = strlen(base);

        for (size_t i = 0; n > 0 && i < ARRAY_SIZE(builtin_profiles); i++) {
                const char *at = builtin_profiles[i].commands;

                for (; (at = strstr(at, base)); at++)
                        if (at[-1] == ' ' && at[n] == ' ')
                                return builtin_profiles[i].name;
        }
        return NULL;
}

const char *profile_suggest(const char *name) {
        const char *names[ARRAY_SIZE(builtin_profiles)];

        for (size_t i = 0; i < ARRAY_SIZE(builtin_profiles); i++)
                names[i] = builtin_profiles[i].name;
        return text_nearest(name, names, ARRAY_SIZE(names));
}

void profile_free(struct profile *profile) {
        if (!profile)
                return;
        free(profile->name);
        free(profile->summary);
        strv_free(profile->commands);
        strv_free(profile->files);
        strv_free(profile->urls);
        strv_free(profile->arguments);
        node_free(profile->root);
        free(profile);
}

void profile_freep(struct profile **profile) {
        profile_free(*profile);
}

static int bad(const struct profile *p, const struct node *at, const char *what, struct hutch_error *err) {
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "profile %s:%zu:%zu: %s", p->name, at->line, at->column,
                         what);
}

static int read_words(const struct profile *p, const struct node *list, char ***ret, struct hutch_error *err) {
        if (list->kind != NODE_LIST)
                return bad(p, list, "must be a list of words", err);
        for (size_t i = 0; i < list->n; i++) {
                if (list->items[i]->kind != NODE_SCALAR)
                        return bad(p, list->items[i], "must be a word", err);
                if (strv_push(ret, list->items[i]->text) < 0)
                        return error_oom(err);
        }
        return 0;
}

static int read_head(struct profile *p, const struct node *head, struct hutch_error *err) {
        int r = 0;

        if (head->kind != NODE_MAP)
                return bad(p, head, "'profile' must be a mapping", err);
        for (size_t i = 0; r >= 0 && i + 1 < head->n; i += 2) {
                const char *key = head->items[i]->text;
                const struct node *value = head->items[i + 1];

                if (streq(key, "commands"))
                        r = read_words(p, value, &p->commands, err);
                else if (streq(key, "files"))
                        r = read_words(p, value, &p->files, err);
                else if (streq(key, "urls"))
                        r = read_words(p, value, &p->urls, err);
                else if (streq(key, "arguments"))
                        r = read_words(p, value, &p->arguments, err);
                else if (streq(key, "keep")) /* read with the settings */
                        r = value->kind == NODE_LIST ? 0 : bad(p, value, "must be a list of files", err);
                else if (!streq(key, "summary"))
                        r = bad(p, head->items[i],
                                "unknown key of a profile (known: summary, commands, files, arguments, urls, keep)",
                                err);
                else if (value->kind != NODE_SCALAR)
                        r = bad(p, value, "the summary is one line of text", err);
                else {
                        free(p->summary);
                        p->summary = strdup(value->text);
                        r = p->summary ? 0 : error_oom(err);
                }
        }
        return r;
}

int profile_parse(const char *name, const char *text, size_t len, struct profile **ret, struct hutch_error *err) {
        _cleanup_(profile_freep) struct profile *p = calloc(1, sizeof(*p));
        struct hutch_error why = {0};
        const struct node *head;
        int r;

        if (!p)
                return error_oom(err);
        p->name = strdup(name);
        if (!p->name)
                return error_oom(err);
        r = node_parse(text, len, &p->root, &why);
        if (r < 0)
                return error_set(err, why.code, why.errnum, "profile %s:%s", name, why.message);
        head = node_get(p->root, "profile");
        r = head ? read_head(p, head, err) : 0;
        if (r < 0)
                return r;
        *ret = take_ptr(p);
        return 0;
}

/* A file to keep: its path alone, or {path: …, keys: […]}. */
static int read_kept(const struct profile *profile, const struct node *one, struct hutch_policy *p,
                     struct hutch_error *err) {
        const struct node *where = one->kind == NODE_MAP ? node_get(one, "path") : one;
        const struct node *list = one->kind == NODE_MAP ? node_get(one, "keys") : NULL;
        _cleanup_(strv_freep) char **keys = NULL;
        _cleanup_(freep) char *path = NULL, *origin = NULL;
        int r;

        if (!where || where->kind != NODE_SCALAR || (one->kind == NODE_MAP && (!list || one->n != 4)))
                return bad(profile, one, "must be a path, or {path: PATH, keys: [KEY, …]}", err);
        r = list ? read_words(profile, list, &keys, err) : 0;
        if (r < 0)
                return r;
        if (list && !keys)
                return bad(profile, list, "must name at least one key", err);
        r = policy_resolve(p, where->text, &path, err);
        if (r < 0)
                return r;
        if (asprintf(&origin, "profile %s:%zu", profile->name, where->line) < 0) {
                origin = NULL;
                return error_oom(err);
        }
        if (policy_add_kept(p, path, keys, origin) < 0)
                return error_oom(err);
        /* Where the box can have no copy. */
        r = policy_add_path(p, keys ? HUTCH_READ : HUTCH_WRITE, path, NULL, origin, err);
        if (r < 0)
                return r;
        p->paths[p->n_paths - 1].missing = MISSING_SKIP;
        return r;
}

static bool is_own_command(const struct profile *profile, const char *command) {
        for (char **own = profile->commands; command && own && *own; own++)
                if (streq(path_basename(command), *own))
                        return true;
        return false;
}

/* What the command makes at its first start has to exist before the box, or what it keeps there is lost. */
static void mark_made(const struct profile *profile, const char *command, struct hutch_policy *p) {
        const struct node *filesystem = node_get(profile->root, "filesystem");
        const struct node *write = filesystem ? node_get(filesystem, "write") : NULL;
        size_t at = 0;

        if (!write || write->kind != NODE_LIST || !is_own_command(profile, command))
                return;
        for (size_t i = 0; i < p->n_paths; i++) {
                const char *text;

                if (p->paths[i].access != HUTCH_WRITE || at == write->n)
                        continue;
                text = write->items[at++]->text;
                p->paths[i].missing =
                        text && text[0] && text[strlen(text) - 1] == '/' ? MISSING_MAKE_DIR : MISSING_MAKE_FILE;
        }
}

int profile_read(const struct profile *profile, const char *command, struct hutch_policy *p, struct hutch_error *err) {
        const struct node *head = node_get(profile->root, "profile"), *kept = head ? node_get(head, "keep") : NULL;
        _cleanup_(freep) char *name = NULL;
        int r;

        if (asprintf(&name, "profile %s%s", profile->name, profile->accepted ? " (hutch trust)" : "") < 0) {
                name = NULL;
                return error_oom(err);
        }
        r = policy_read_node(p, name, profile->root, "profile", err);
        for (size_t i = 0; r >= 0 && i < p->n_paths; i++)
                p->paths[i].missing = MISSING_SKIP;
        if (r < 0)
                return r;
        mark_made(profile, command, p);
        for (size_t i = 0; r >= 0 && kept && i < kept->n; i++)
                r = read_kept(profile, kept->items[i], p, err);
        if (r < 0)
                return r;
        if (is_own_command(profile, command) && strv_copy(profile->arguments, &p->arguments) < 0)
                r = error_oom(err);
        return r;
}
