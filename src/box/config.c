/* See config.h. Each file is read into a separate policy; they are merged in this order, and later ones add or
 * override: profiles of languages that were accepted for the workspace, profile, config.yaml, ~/.jail, the workspace's
 * .jail and hutch.yaml, --config, the caller's own settings.
 *
 * Where no file exists, all this costs is a few opens that fail. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "../policy/jail.h"
#include "../policy/profile.h"
#include "../policy/value.h"
#include "../policy/yaml.h"

enum part {
        PART_ACCEPTED,
        PART_COMMAND,
        PART_PROFILE,
        PART_PERSON,
        PART_PERSON_JAIL,
        PART_JAIL,
        PART_WORKSPACE,
        PART_GIVEN,
        N_PARTS
};

struct config {
        struct hutch_policy *p; /* the caller's */
        char *const *env;
        bool for_person;
        struct hutch_policy *parts[N_PARTS]; /* NULL: no such file */
        struct trust *trust;
        bool trusted;
        char *state; /* hutch's directory, NULL: none is known */
        struct hutch_error *err;
};

/* ---- places ---- */

static int own_dir(char *const *env, const char *variable, const char *below, char **ret) {
        const char *set = strv_find_assignment(env, variable), *home = strv_find_assignment(env, "HOME");
        int n = 0;

        *ret = NULL;
        if (set && set[0] == '/')
                n = asprintf(ret, "%s/hutch", set);
        else if (home && home[0] == '/')
                n = asprintf(ret, "%s/%s/hutch", home, below);
        if (n < 0)
                *ret = NULL;
        return n < 0 ? -ENOMEM : 0;
}

int config_dir(char *const *env, char **ret) {
        return own_dir(env, "XDG_CONFIG_HOME", ".config", ret);
}

int config_state_dir(char *const *env, char **ret) {
        return own_dir(env, "XDG_STATE_HOME", ".local/state", ret);
}

bool config_first_time(char *const *env, const char *what) {
        _cleanup_(freep) char *state = NULL, *seen = NULL, *stamp = NULL, *parent = NULL;
        int fd;

        if (config_state_dir(env, &state) < 0 || !state || asprintf(&seen, "%s/seen", state) < 0)
                return false;
        if (asprintf(&stamp, "%s/%s", seen, what) < 0 || access(stamp, F_OK) == 0)
                return false;
        if (path_dirname(state, &parent) < 0 || (access(parent, F_OK) < 0 && mkdir(parent, 0700) < 0))
                return false;
        if ((mkdir(state, 0700) < 0 && errno != EEXIST) || (mkdir(seen, 0700) < 0 && errno != EEXIST))
                return false;
        fd = open(stamp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return false;
        close(fd);
        return true;
}

/* ---- reading ---- */

static int new_part(const struct hutch_policy *p, const char *file, struct hutch_policy **ret,
                    struct hutch_error *err) {
        _cleanup_(policy_freep) struct hutch_policy *part = NULL;
        _cleanup_(freep) char *dir = NULL;

        if (path_dirname(file, &dir) < 0 || policy_new(dir, p->home, &part) < 0)
                return error_oom(err);
        part->preset = p->preset;
        part->tmpdir = p->tmpdir ? strdup(p->tmpdir) : NULL;
        part->workspace = strdup(policy_dir(p));
        if (!part->workspace || (p->tmpdir && !part->tmpdir))
                return error_oom(err);
        *ret = take_ptr(part);
        return 0;
}

/* A part with mistakes is not used; all of them are reported with the caller's policy. */
static int read_part(struct hutch_policy *p, const char *file, const char *text, size_t len, struct hutch_policy **ret,
                     struct hutch_error *err) {
        _cleanup_(policy_freep) struct hutch_policy *part = NULL;
        int r;

        r = new_part(p, file, &part, err);
        if (r < 0)
                return r;
        r = streq(path_basename(file), ".jail") ? policy_read_jail(part, file, text, len, err)
                                                : policy_read_yaml(part, file, text, len, err);
        if (r < 0) {
                error_stage(err, "policy");
                return events_add_all(&p->events, &part->events) < 0 ? error_oom(err) : r;
        }
        *ret = take_ptr(part);
        return 0;
}

static int read_text(const char *file, char **ret, size_t *ret_len, struct hutch_error *err) {
        int r = read_whole_file(AT_FDCWD, file, TRUST_TEXT_MOST, ret, ret_len);

        return r < 0 ? error_set(err, r == -ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, r, "%s: %s", file,
                                 errno_text(-r))
                     : 0;
}

int config_load_file(struct hutch_policy *p, const char *path, struct hutch_error *err) {
        _cleanup_(policy_freep) struct hutch_policy *part = NULL;
        _cleanup_(freep) char *text = NULL, *file = NULL;
        size_t len = 0;
        int r;

        r = policy_resolve(p, path, &file, err);
        if (r < 0)
                return r;
        r = read_text(file, &text, &len, err);
        if (r < 0)
                return r;
        r = read_part(p, file, text, len, &part, err);
        return r < 0 ? r : policy_merge(p, part, true, NULL, err);
}

/* A user's file, which need not exist. Nothing that a box could write is there (plan/check.c). */
static int read_own(struct config *c, enum part part, const char *dir, const char *name) {
        _cleanup_(freep) char *file = NULL, *text = NULL;
        size_t len = 0;
        int r;

        if (!dir)
                return 0;
        if (asprintf(&file, "%s/%s", dir, name) < 0) {
                file = NULL;
                return error_oom(c->err);
        }
        if (access(file, F_OK) < 0)
                return 0;
        r = read_text(file, &text, &len, c->err);
        return r < 0 ? r : read_part(c->p, file, text, len, &c->parts[part], c->err);
}

static int read_given(struct config *c) {
        const char *file = policy_text(c->p, KEY_CONFIG);
        _cleanup_(freep) char *text = NULL;
        size_t len = 0;
        int r;

        if (!file)
                return 0;
        r = policy_read_unlinked(c->p, file, TRUST_TEXT_MOST, &text, &len);
        if (r == -ELOOP)
                return error_set(c->err, HUTCH_E_POLICY_REFUSED, r,
                                 "--config %s: symbolic links are not followed in the workspace: name the file itself",
                                 file);
        if (r < 0)
                return error_set(c->err, r == -ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, r, "--config %s: %s", file,
                                 errno_text(-r));
        return read_part(c->p, file, text, len, &c->parts[PART_GIVEN], c->err);
}

/* ---- the workspace's own ---- */

static const char *workspace_dir(const struct config *c) {
        static const enum part speaks[] = {PART_GIVEN, PART_PERSON};

        for (size_t i = 0; i < ARRAY_SIZE(speaks) && !policy_is_set(c->p, KEY_WORKSPACE_DIR); i++)
                if (c->parts[speaks[i]] && policy_is_set(c->parts[speaks[i]], KEY_WORKSPACE_DIR))
                        return policy_dir(c->parts[speaks[i]]);
        return policy_dir(c->p);
}

static bool has_workspace(const struct config *c) {
        static const enum part speaks[] = {PART_GIVEN, PART_PERSON};

        for (size_t i = 0; i < ARRAY_SIZE(speaks) && !policy_is_set(c->p, KEY_WORKSPACE_MODE); i++)
                if (c->parts[speaks[i]] && policy_is_set(c->parts[speaks[i]], KEY_WORKSPACE_MODE))
                        return policy_workspace(c->parts[speaks[i]]) != HUTCH_WORKSPACE_NONE;
        return policy_workspace(c->p) != HUTCH_WORKSPACE_NONE;
}

static bool requires_trust(const struct config *c) {
        bool required = policy_flag(c->p, KEY_REQUIRE_TRUST);

        for (enum part i = 0; i < N_PARTS; i++)
                required |= c->parts[i] && policy_flag(c->parts[i], KEY_REQUIRE_TRUST);
        return required;
}

static int read_workspace(struct config *c) {
        enum trust_state found;
        int r;

        if (!has_workspace(c))
                return 0;
        if (config_state_dir(c->env, &c->state) < 0)
                return error_oom(c->err);
        r = trust_open(c->state, workspace_dir(c), &c->trust, c->err);
        if (r == -ENOENT || r == -ENOTDIR || r == -EACCES ||
            r == -ELOOP) { /* the plan reports what is wrong with the workspace */
                if (c->err)
                        *c->err = (struct hutch_error){0};
                return 0;
        }
        if (r < 0)
                return r;
        found = trust_state(c->trust);
        c->trusted = found == TRUST_GIVEN;
        for (size_t i = 0; r >= 0 && i < N_TRUST_FILES; i++) {
                const struct trust_file *f = &c->trust->files[i];
                enum part part = streq(f->name, ".jail") ? PART_JAIL : PART_WORKSPACE;

                if (f->text && (c->trusted || part == PART_WORKSPACE)) /* a .jail only grants */
                        r = read_part(c->p, f->path, f->text, f->len, &c->parts[part], c->err);
        }
        if (r < 0 || found == TRUST_NOTHING || c->trusted || !requires_trust(c))
                return r;
        return error_set(c->err, HUTCH_E_POLICY_REFUSED, EPERM,
                         "%s: its own policy files are %s, and trust is required: review them with 'hutch trust'",
                         c->trust->workspace, found == TRUST_NEW ? "not trusted" : "not what was trusted");
}

static int note(struct config *c, enum notice code, const char *subject, const char *text) {
        return events_note(&c->p->events, code, subject, "hutch trust", "%s", text) < 0 ? error_oom(c->err) : 0;
}

/* Reports what was left out. A file that only restricts needs no notice. */
static int report_workspace(struct config *c, char *const *withheld) {
        const char *why = c->trust && c->trust->recorded ? "changed since it was trusted" : "is not trusted";
        char text[2048], keys[1024] = "";
        size_t used = 0;
        int r = 0;

        if (!c->trust || c->trusted)
                return 0;
        for (; withheld && *withheld && used < sizeof(keys); withheld++)
                used += (size_t) snprintf(keys + used, sizeof(keys) - used, "%s%s", used ? ", " : "", *withheld);
        for (size_t i = 0; r >= 0 && i < N_TRUST_FILES; i++) {
                const struct trust_file *f = &c->trust->files[i];

                if (f->refused) {
                        snprintf(text, sizeof(text), "%s is not read: %s; it grants nothing", f->path, f->refused);
                        r = note(c, NOTICE_WORKSPACE_REFUSED, f->path, text);
                } else if (f->accepted && !f->text) {
                        snprintf(text, sizeof(text), "%s was trusted and no longer exists", f->path);
                        r = note(c, NOTICE_WORKSPACE_UNTRUSTED, f->path, text);
                } else if (f->text && streq(f->name, ".jail")) {
                        snprintf(text, sizeof(text), "%s %s: its paths were not attached", f->path, why);
                        r = note(c, NOTICE_WORKSPACE_UNTRUSTED, f->path, text);
                } else if (f->text && keys[0]) {
                        snprintf(text, sizeof(text), "%s %s: not applied: %s", f->path, why, keys);
                        r = note(c, NOTICE_WORKSPACE_UNTRUSTED, f->path, text);
                }
        }
        return r;
}

/* ---- the profile ---- */

int config_profile_text(const char *name, char *const *env, char **ret, struct hutch_error *err) {
        _cleanup_(freep) char *dir = NULL, *file = NULL;
        const char *builtin = profile_builtin_text(name), *near;
        size_t len;

        if (config_dir(env, &dir) < 0)
                return error_oom(err);
        if (dir && name[0] && !strchr(name, '/')) {
                if (asprintf(&file, "%s/profiles/%s.yaml", dir, name) < 0) {
                        file = NULL;
                        return error_oom(err);
                }
                if (access(file, F_OK) == 0)
                        return read_text(file, ret, &len, err);
        }
        if (builtin) {
                *ret = strdup(builtin);
                return *ret ? 0 : error_oom(err);
        }
        near = profile_suggest(name);
        return error_set(err, HUTCH_E_POLICY_INVALID, ENOENT, "unknown profile '%s'%s%s%s (see 'hutch profiles')", name,
                         near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* The requested one, or else the one for the command's name. */
static const char *choose_profile(const struct config *c, const char *command, bool *ret_asked) {
        static const enum part speaks[] = {PART_GIVEN, PART_WORKSPACE, PART_PERSON};
        const char *asked = policy_text(c->p, KEY_PROFILE);

        for (size_t i = 0; i < ARRAY_SIZE(speaks) && !asked; i++)
                if (c->parts[speaks[i]] && (speaks[i] != PART_WORKSPACE || c->trusted))
                        asked = policy_text(c->parts[speaks[i]], KEY_PROFILE);
        *ret_asked = asked != NULL;
        if (asked)
                return streq(asked, "none") ? NULL : asked;
        return command ? profile_for_command(command) : NULL;
}

/* Whether a person has decided on the network: then no address of a variable is added. */
static bool has_network(const struct config *c) {
        static const enum part speaks[] = {PART_GIVEN, PART_WORKSPACE, PART_PERSON};
        bool decided = policy_is_set(c->p, KEY_NETWORK) && policy_number(c->p, KEY_NETWORK) != HUTCH_NET_ALLOWLIST;

        for (size_t i = 0; i < ARRAY_SIZE(speaks); i++)
                decided |= c->parts[speaks[i]] && policy_is_set(c->parts[speaks[i]], KEY_NETWORK) &&
                           policy_number(c->parts[speaks[i]], KEY_NETWORK) != HUTCH_NET_ALLOWLIST;
        return decided;
}

static int take_profile(struct config *c, const struct profile *profile, const char *command,
                        struct hutch_policy **ret) {
        int r;

        r = new_part(c->p, policy_dir(c->p), ret, c->err);
        if (r >= 0)
                r = profile_read(profile, command, *ret, c->err);
        if (r >= 0 && !has_network(c))
                r = config_allow_urls(profile, c->p, c->env, *ret, c->err);
        return r;
}

static int read_one_profile(struct config *c, enum part part, const char *name, bool asked, const char *command,
                            bool *ret_own) {
        _cleanup_(profile_freep) struct profile *profile = NULL;
        _cleanup_(freep) char *text = NULL;
        char line[512], stamp[128];
        struct hutch_event event;
        int r;

        r = config_profile_text(name, c->env, &text, c->err);
        if (r >= 0 && text)
                r = profile_parse(name, text, strlen(text), &profile, c->err);
        if (r >= 0)
                r = take_profile(c, profile, command, &c->parts[part]);
        if (r < 0)
                return r;
        *ret_own = profile->files == NULL;
        if (asked)
                return 0;
        snprintf(line, sizeof(line), "using profile '%s'%s%s", name, profile->summary ? ": " : "",
                 profile->summary ? profile->summary : "");
        event = event_notice(NOTICE_PROFILE_USED, name, "--profile none", line);
        snprintf(stamp, sizeof(stamp), "profile-%.64s", name);
        if (!c->for_person || !config_first_time(c->env, stamp))
                event.severity = HUTCH_INFO;
        return events_add(&c->p->events, &event) < 0 ? error_oom(c->err) : 0;
}

/* One that a person accepted for the workspace, as long as its text is what was accepted. */
static int read_accepted_one(struct config *c, const char *name) {
        _cleanup_(policy_freep) struct hutch_policy *part = NULL;
        _cleanup_(profile_freep) struct profile *profile = NULL;
        _cleanup_(trust_freep) struct trust *t = NULL;
        _cleanup_(freep) char *text = NULL, *fix = NULL;
        int r;

        r = config_profile_text(name, c->env, &text, NULL);
        if (r < 0 || !text) /* it does not exist any more */
                return r == -ENOMEM ? error_oom(c->err) : 0;
        r = trust_open_profile(c->state, c->trust->workspace, name, text, &t, c->err);
        if (r < 0 || trust_state(t) == TRUST_NEW)
                return r;
        if (trust_state(t) == TRUST_CHANGED) {
                if (asprintf(&fix, "hutch trust --profile %s", name) < 0) {
                        fix = NULL;
                        return error_oom(c->err);
                }
                return events_note(&c->p->events, NOTICE_WORKSPACE_UNTRUSTED, name, fix,
                                   "profile %s changed since it was trusted for this workspace: not applied", name) < 0
                               ? error_oom(c->err)
                               : 0;
        }
        r = profile_parse(name, text, strlen(text), &profile, c->err);
        if (r < 0)
                return r;
        profile->accepted = true;
        r = take_profile(c, profile, NULL, &part);
        if (r >= 0 && !c->parts[PART_ACCEPTED])
                r = new_part(c->p, policy_dir(c->p), &c->parts[PART_ACCEPTED], c->err);
        return r < 0 ? r : policy_merge(c->parts[PART_ACCEPTED], part, true, NULL, c->err);
}

static int read_accepted(struct config *c, const char *chosen) {
        _cleanup_(strv_freep) char **names = NULL;
        int r = 0;

        if (!c->trust || !c->state)
                return 0;
        if (trust_list_profiles(c->state, c->trust->workspace, &names) < 0)
                return error_oom(c->err);
        for (char **name = names; r >= 0 && name && *name; name++)
                if (!chosen || !streq(*name, chosen))
                        r = read_accepted_one(c, *name);
        return r;
}

/* One of a language, which names files of a workspace, leaves the command its own. */
static int read_profile(struct config *c, const char *command) {
        bool asked, own = true;
        const char *name = choose_profile(c, command, &asked), *beside;
        int r = !name && asked ? 0 : read_accepted(c, name); /* --profile none */

        if (r < 0 || !name)
                return r;
        r = read_one_profile(c, PART_PROFILE, name, asked, command, &own);
        beside = r >= 0 && asked && !own && command ? profile_for_command(command) : NULL;
        return beside ? read_one_profile(c, PART_COMMAND, beside, false, command, &own) : r;
}

/* ---- together ---- */

/* Lists that serve several hosts name paths that this one lacks. */
static int drop_missing(struct hutch_policy *p, struct hutch_error *err) {
        for (size_t i = 0; i < p->n_paths;) {
                struct path_rule *rule = &p->paths[i];

                if (rule->missing == MISSING_ERROR || rule->missing >= MISSING_MAKE_FILE ||
                    access(rule->path, F_OK) == 0 || strchr(rule->path, '*')) {
                        i++;
                        continue;
                }
                if (rule->missing == MISSING_WARN &&
                    events_note(&p->events, NOTICE_PATH_LEFT_OUT, rule->path, NULL, "%s: %s: %s", rule->origin,
                                rule->path, errno_text(errno)) < 0)
                        return error_oom(err);
                policy_drop_path(p, i);
        }
        return 0;
}

static int merge_parts(struct config *c) {
        _cleanup_(policy_freep) struct hutch_policy *base = NULL;
        _cleanup_(strv_freep) char **withheld = NULL;
        struct hutch_policy swap;
        int r = 0;

        if (policy_new(c->p->base_dir, c->p->home, &base) < 0)
                return error_oom(c->err);
        base->preset = c->p->preset;
        base->tmpdir = c->p->tmpdir ? strdup(c->p->tmpdir) : NULL;
        for (enum part i = 0; r >= 0 && i < N_PARTS; i++)
                if (c->parts[i])
                        r = policy_merge(base, c->parts[i], c->trusted || (i != PART_JAIL && i != PART_WORKSPACE),
                                         &withheld, c->err);
        if (r < 0)
                return r;
        r = report_workspace(c, withheld);
        if (r < 0)
                return r;
        r = policy_merge(base, c->p, true, NULL, c->err);
        if (r < 0)
                return r;
        r = drop_missing(base, c->err);
        if (r < 0)
                return r;
        swap = *c->p; /* the caller's handle stays, its content moves */
        *c->p = *base;
        *base = swap;
        return 0;
}

/* Once on a host: what the box of this policy can see and do. */
static int introduce(struct hutch_policy *p, char *const *env, struct hutch_error *err) {
        static const char *const writes[] = {"has no workspace", "reads the workspace", "writes the workspace",
                                             "writes a copy of the workspace ('hutch diff', 'hutch apply')"};
        static const char *const network[] = {"no network (--allow-host NAME, --net open)", "the host's network",
                                              "no network but its own loopback", "the hosts that are allowed"};

        if (!config_first_time(env, "run"))
                return 0;
        if (events_note(&p->events, NOTICE_FIRST_RUN, NULL, NULL,
                        "first run here: the box %s, reads the system, and sees an empty home",
                        writes[policy_workspace(p)]) < 0 ||
            events_note(&p->events, NOTICE_FIRST_RUN, NULL, NULL,
                        "it has %s; 'hutch explain' shows everything, 'hutch why PATH|HOST' answers one question",
                        network[policy_network(p)]) < 0)
                return error_oom(err);
        return 0;
}

int config_load(struct hutch_policy *p, const char *command, bool for_person, char *const *env,
                struct hutch_error *err) {
        struct config c = {.p = p, .env = env, .for_person = for_person, .err = err};
        _cleanup_(freep) char *dir = NULL, *word = NULL;
        bool any = false;
        int r;

        if (config_dir(env, &dir) < 0)
                return error_oom(err);
        r = read_own(&c, PART_PERSON, dir, "config.yaml");
        if (r >= 0)
                r = read_own(&c, PART_PERSON_JAIL, p->home, ".jail");
        if (r >= 0)
                r = read_given(&c);
        if (r >= 0)
                r = read_workspace(&c);
        if (r >= 0)
                r = command && text_first_word(command, &word) < 0 ? error_oom(err) : 0;
        if (r >= 0)
                r = read_profile(&c, command && access(command, F_OK) == 0 ? command : word);
        for (enum part i = 0; i < N_PARTS; i++)
                any |= c.parts[i] != NULL;
        if (r >= 0 && any)
                r = merge_parts(&c);
        else if (r >= 0)
                r = report_workspace(&c, NULL);
        if (r >= 0 && for_person)
                r = introduce(p, env, err);
        for (enum part i = 0; i < N_PARTS; i++)
                policy_free(c.parts[i]);
        trust_free(c.trust);
        free(c.state);
        return r;
}
