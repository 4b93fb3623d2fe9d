/* The public calls around policy files: loading them, profiles, trust. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../box/config.h"
#include "../policy/profile.h"
#include "../policy/show.h"
#include "api.h"

extern char **environ;

int hutch_policy_load_file(hutch_policy *policy, const char *path, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!path)
                return api_null(err, __func__, "path");
        return config_load_file(policy, path, err);
}

int hutch_policy_load_config(hutch_policy *policy, const char *command, bool for_person, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        return config_load(policy, command, for_person, environ, err);
}

const hutch_event *const *hutch_policy_events(const hutch_policy *policy) {
        return policy ? (const hutch_event *const *) policy->events.items : NULL;
}

/* ---- keys ---- */

static char expects[N_KEYS][128];

static void describe(enum key key) {
        char room[sizeof(expects[0])];

        snprintf(expects[key], sizeof(expects[key]), "%s", key_expects(key, room, sizeof(room)));
}

static void make_expects(void) {
        for (enum key key = 0; key < N_KEYS; key++)
                if (key_info(key)->key && key_info(key)->type != TYPE_FLAG)
                        describe(key);
}

bool hutch_key_get(size_t index, hutch_key_info *ret, size_t size) {
        static const char *const untrusted[] = {"nothing", "all", "lower"};
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        enum key key = 0;

        for (; key < N_KEYS; key++)
                if (key_info(key)->key && index-- == 0)
                        break;
        if (!ret || key == N_KEYS)
                return false;
        pthread_once(&once, make_expects);
        hutch_key_info info = {.name = key_info(key)->key,
                               .value = key_info(key)->type == TYPE_FLAG ? "true or false" : expects[key],
                               .list = key_is_list(key),
                               .help = key_info(key)->help,
                               .untrusted = untrusted[key_info(key)->untrusted],
                               .option = key_info(key)->option};
        api_write_struct(&info, sizeof(info), ret, size);
        return true;
}

int hutch_policy_schema(char **ret) {
        return ret ? policy_schema(ret) : -EINVAL;
}

/* ---- profiles ---- */

const char *hutch_profile_name(size_t index) {
        return profile_builtin_name(index);
}

int hutch_profile_text(const char *name, char **ret, hutch_error *err) {
        if (!name)
                return api_null(err, __func__, "name");
        if (!ret)
                return api_null(err, __func__, "ret");
        return config_profile_text(name, environ, ret, err);
}

int hutch_profile_summary(const char *name, char **ret, hutch_error *err) {
        _cleanup_(profile_freep) struct profile *profile = NULL;
        _cleanup_(freep) char *text = NULL;
        int r;

        if (!name)
                return api_null(err, __func__, "name");
        if (!ret)
                return api_null(err, __func__, "ret");
        r = config_profile_text(name, environ, &text, err);
        if (r < 0)
                return r;
        r = profile_parse(name, text, strlen(text), &profile, err);
        if (r < 0)
                return r;
        *ret = profile->summary ? take_ptr(profile->summary) : strdup("");
        return *ret ? 0 : error_oom(err);
}

/* ---- trust ---- */

struct hutch_trust {
        struct trust *files;
        char *text;
};

/* Only the profile of a language: that of a command would grant every box what one command needs. */
static int open_profile(const char *state, const char *dir, const char *name, struct trust **ret, hutch_error *err) {
        _cleanup_(profile_freep) struct profile *profile = NULL;
        _cleanup_(freep) char *text = NULL;
        int r;

        r = config_profile_text(name, environ, &text, err);
        if (r >= 0)
                r = profile_parse(name, text, strlen(text), &profile, err);
        if (r >= 0 && !profile->files)
                r = error_set(
                        err, HUTCH_E_POLICY_REFUSED, EPERM,
                        "profile '%s' is that of a command, not of a language: it applies to its command, or with "
                        "--profile %s",
                        name, name);
        return r < 0 ? r : trust_open_profile(state, dir, name, text, ret, err);
}

static int open_trust(const char *dir, const char *profile, hutch_trust **ret, hutch_error *err) {
        _cleanup_(freep) char *state = NULL;
        hutch_trust *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return error_oom(err);
        if (config_state_dir(environ, &state) < 0)
                r = error_oom(err);
        else
                r = profile ? open_profile(state, dir ? dir : ".", profile, &t->files, err)
                            : trust_open(state, dir ? dir : ".", &t->files, err);
        if (r >= 0 && config_describe_trust(t->files, &t->text) < 0)
                r = error_oom(err);
        if (r < 0) {
                hutch_trust_free(t);
                return r;
        }
        *ret = t;
        return 0;
}

void hutch_trust_free(hutch_trust *trust) {
        if (!trust)
                return;
        trust_free(trust->files);
        free(trust->text);
        free(trust);
}

int hutch_trust_open(const char *dir, hutch_trust **ret, hutch_error *err) {
        return ret ? open_trust(dir, NULL, ret, err) : api_null(err, __func__, "ret");
}

int hutch_trust_open_profile(const char *dir, const char *profile, hutch_trust **ret, hutch_error *err) {
        if (!profile)
                return api_null(err, __func__, "profile");
        return ret ? open_trust(dir, profile, ret, err) : api_null(err, __func__, "ret");
}

hutch_trust_state hutch_trust_get_state(const hutch_trust *trust) {
        return trust ? (hutch_trust_state) trust_state(trust->files) : HUTCH_TRUST_NOTHING;
}

const char *hutch_trust_text(const hutch_trust *trust) {
        return trust ? trust->text : NULL;
}

int hutch_trust_accept(const hutch_trust *trust, hutch_error *err) {
        if (!trust)
                return api_null(err, __func__, "trust");
        return trust_accept(trust->files, err);
}

int hutch_trust_forget(const hutch_trust *trust, hutch_error *err) {
        if (!trust)
                return api_null(err, __func__, "trust");
        return trust_forget(trust->files, err);
}
