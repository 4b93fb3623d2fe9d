/* Looking at the host on behalf of a policy; see survey.h. */
#include "survey.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../protect/names.h"
#include "system.h"

static const char *const system_paths[] = {"/usr",    "/bin", "/sbin", "/lib", "/lib32", "/lib64",
                                           "/libx32", "/etc", "/opt",  "/nix", "/snap"};
_Static_assert(ARRAY_SIZE(system_paths) <= N_SYSTEM_MOST, "room for every system directory");

int survey_look_at(const char *path, struct path_fact *ret) {
        char real[PATH_MAX];
        struct stat st;

        if (!realpath(path, real) || stat(real, &st) < 0) {
                ret->errnum = errno;
                return 0;
        }
        ret->real = strdup(real);
        ret->type = st.st_mode & S_IFMT;
        ret->dev = st.st_dev;
        ret->ino = st.st_ino;
        ret->links = st.st_nlink;
        ret->uid = st.st_uid;
        ret->gid = st.st_gid;
        return ret->real ? 0 : -ENOMEM;
}

/* Reads /etc/passwd itself: the C library's way would load plug-ins of the host into a static program. Users that live
 * in a directory service are known by their environment. The home of the file counts beside the environment's: what is
 * refused as a workspace does not depend on a variable. */
static int find_user(uid_t uid, struct survey *s) {
        _cleanup_(freep) char *passwd = NULL;
        const char *name = NULL, *home = NULL;

        if (read_whole_file(AT_FDCWD, "/etc/passwd", 16 << 20, &passwd, NULL) >= 0)
                for (char *next = passwd, *line; !name && (line = strsep(&next, "\n"));) {
                        char *fields[7] = {0};

                        for (int i = 0; i < 7 && line; i++)
                                fields[i] = strsep(&line, ":");
                        if (!fields[5] || strtoull(fields[2], NULL, 10) != uid || !fields[2][0])
                                continue;
                        name = fields[0];
                        home = fields[5];
                }
        if (!name)
                name = strv_find_assignment(s->env, "USER");
        if (!name)
                name = strv_find_assignment(s->env, "LOGNAME");
        if (name)
                s->user = strdup(name);
        else if (asprintf(&s->user, "%u", uid) < 0)
                s->user = NULL;
        if (!s->user)
                return -ENOMEM;
        return home && home[0] == '/' ? path_make_absolute(home, NULL, &s->passwd_home) : 0;
}

/* Any other error reveals nothing about what exists, and a plan made from it would be wrong. */
static bool is_absence(int errnum) {
        return errnum == ENOENT || errnum == ENOTDIR || errnum == EACCES || errnum == ELOOP;
}

static int is_there(const char *path, int mode, bool *ret) {
        *ret = access(path, mode) == 0;
        return *ret || is_absence(errno) ? 0 : -errno;
}

/* Whether a rule attaches the path at its own place. */
static bool is_named(const struct hutch_policy *policy, const char *path) {
        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct path_rule *rule = &policy->paths[i];

                if ((rule->access == HUTCH_READ || rule->access == HUTCH_WRITE || rule->access == HUTCH_COW) &&
                    (!rule->dest || streq(rule->dest, rule->path)) && path_is_beneath(path, rule->path))
                        return true;
        }
        return false;
}

/* A bare box has none of these, but for the links that lead into what a rule attaches: to name /usr is to name /bin. */
static bool is_left_out(const struct hutch_policy *policy, const char *path, bool is_link) {
        char real[PATH_MAX];

        return policy_flag(policy, KEY_BARE) && (!is_link || !realpath(path, real) || !is_named(policy, real));
}

static int look_at_system(struct survey *s, const struct hutch_policy *policy) {
        char target[PATH_MAX];
        struct stat st;

        for (size_t i = 0; i < ARRAY_SIZE(system_paths); i++) {
                struct system_fact *f = &s->system[s->n_system];
                ssize_t n;

                if (lstat(system_paths[i], &st) < 0) {
                        if (errno != ENOENT)
                                return -errno;
                        continue;
                }
                if (is_left_out(policy, system_paths[i], S_ISLNK(st.st_mode)))
                        continue;
                if (S_ISLNK(st.st_mode)) {
                        n = readlink(system_paths[i], target, sizeof(target) - 1);
                        if (n < 0)
                                return -errno;
                        target[n] = 0;
                        f->link = strdup(target);
                        if (!f->link)
                                return -ENOMEM;
                } else if (!S_ISDIR(st.st_mode))
                        continue;
                f->path = system_paths[i];
                s->n_system++;
        }
        return 0;
}

/* A path beneath a directory whose real path is known, as far as no link is met on the way: -ELOOP. */
static int resolve_beneath(const char *directory, const char *real, const char *path, char **ret) {
        _cleanup_(freep) char *whole = NULL;
        struct stat st;
        int r = 0;

        if (!directory || !real || streq(real, "/") || !path_is_beneath(path, directory))
                return -ELOOP;
        if (asprintf(&whole, "%s%s", real, path_tail(path, directory)) < 0)
                return -ENOMEM;
        for (char *at = whole + strlen(real); r == 0 && *at;) {
                char was;

                at += 1 + strcspn(at + 1, "/");
                was = *at;
                *at = 0;
                r = lstat(whole, &st) < 0 ? -errno : S_ISLNK(st.st_mode) ? -ELOOP : 0;
                *at = was;
        }
        if (r < 0 && r != -ENOENT)
                return -ELOOP;
        *ret = take_ptr(whole);
        return 0;
}

/* Where a path that may not exist yet will be: its deepest existing directory resolved, the remainder as written. */
static int resolve_ahead(const struct survey *s, const char *path, char **ret) {
        _cleanup_(freep) char *head = NULL;
        char real[PATH_MAX];
        size_t n;
        int r;

        r = path_make_absolute(path, NULL, &head);
        if (r < 0)
                return r;
        r = resolve_beneath(s->home, s->home_fact.real, head, ret);
        if (r != -ELOOP)
                return r;
        for (n = strlen(head); n > 1; n--) {
                char was = head[n];

                if (was != 0 && was != '/')
                        continue;
                head[n] = 0;
                if (realpath(head, real)) {
                        head[n] = was;
                        return asprintf(ret, "%s%s", streq(real, "/") ? "" : real, head + n) < 0 ? -ENOMEM : 0;
                }
                head[n] = was;
        }
        *ret = take_ptr(head);
        return 0;
}

static int add_own_folder(struct survey *s, const char *variable, const char *below_home) {
        const char *set = strv_find_assignment(s->env, variable);
        _cleanup_(freep) char *path = NULL, *real = NULL;
        int r = 0;

        if (set && set[0] == '/')
                r = asprintf(&path, "%s/hutch", set);
        else if (s->home)
                r = asprintf(&path, "%s/%s/hutch", s->home, below_home);
        else
                return 0;
        if (r < 0)
                return -ENOMEM;
        r = strv_push(&s->own_folders, path);
        if (r < 0)
                return r;
        /* Also its real place, or the place where it will be created, if a link leads there. */
        r = resolve_ahead(s, path, &real);
        if (r < 0)
                return r;
        if (!streq(real, path))
                r = strv_push(&s->own_folders, real);
        return r;
}

/* The person's policy files may be links into a directory of dotfiles; a box that could write there would write its own
 * grants. */
static int add_own_files(struct survey *s) {
        const char *config = strv_find_assignment(s->env, "XDG_CONFIG_HOME");
        _cleanup_(freep) char *yaml = NULL, *jail = NULL;
        char real[PATH_MAX];
        int r = 0;

        if (config && config[0] == '/' ? asprintf(&yaml, "%s/hutch/config.yaml", config) < 0
                                       : s->home && asprintf(&yaml, "%s/.config/hutch/config.yaml", s->home) < 0)
                return -ENOMEM;
        if (s->home && asprintf(&jail, "%s/.jail", s->home) < 0)
                return -ENOMEM;
        if (jail && access(jail, F_OK) == 0) {
                r = strv_push(&s->own_folders, jail);
                if (r >= 0 && realpath(jail, real) && !streq(real, jail))
                        r = strv_push(&s->own_folders, real);
        }
        if (r < 0)
                return r;
        if (yaml && realpath(yaml, real) && !streq(real, yaml))
                r = strv_push(&s->own_folders, real);
        return r;
}

static int look_at_caller(struct survey *s) {
        struct utsname names;
        const char *home;
        size_t n;
        int r;

        r = find_user(geteuid(), s);
        if (r < 0)
                return r;
        home = strv_find_assignment(s->env, "HOME");
        if (!home || home[0] != '/')
                home = s->passwd_home;
        if (home) {
                r = path_make_absolute(home, NULL, &s->home);
                if (r < 0)
                        return r;
                r = survey_look_at(s->home, &s->home_fact);
                if (r < 0)
                        return r;
        }
        s->host_name = strdup(uname(&names) == 0 ? names.nodename : "localhost");
        if (!s->host_name)
                return -ENOMEM;
        r = add_own_files(s);
        if (r >= 0)
                r = add_own_folder(s, "XDG_CONFIG_HOME", ".config");
        if (r >= 0)
                r = add_own_folder(s, "XDG_DATA_HOME", ".local/share");
        if (r >= 0)
                r = add_own_folder(s, "XDG_STATE_HOME", ".local/state");
        n = strv_length(s->own_folders);
        if (r >= 0 && n > 0 &&
            (asprintf(&s->empty, "%s/empty", s->own_folders[n - 1]) < 0 ||
             asprintf(&s->quarantine, "%s/quarantine", s->own_folders[n - 1]) < 0))
                r = -ENOMEM;
        if (r >= 0)
                r = add_own_folder(s, "XDG_CACHE_HOME", ".cache");
        if (r >= 0 && strv_length(s->own_folders) > n) { /* the last is its real place */
                s->cache = strdup(s->own_folders[strv_length(s->own_folders) - 1]);
                r = s->cache ? 0 : -ENOMEM;
        }
        return r;
}

static int make(const struct hutch_policy *policy, char *const *env, struct survey *s) {
        char real[PATH_MAX];
        int r;

        r = strv_copy(env, &s->env);
        if (r >= 0)
                r = look_at_caller(s);
        if (r >= 0)
                r = look_at_system(s, policy);
        if (r >= 0 && policy_workspace(policy) != HUTCH_WORKSPACE_NONE)
                r = survey_look_at(policy_dir(policy), &s->workspace);
        if (r >= 0 && policy_workspace(policy) == HUTCH_WORKSPACE_COW)
                r = survey_mounts(&s->workspace);
        s->git_config_writable = policy_number(policy, KEY_GIT_CONFIG) == GIT_CONFIG_ALLOW;
        if (r < 0)
                return r;
        s->protect = policy_list(policy, KEY_PROTECT);
        s->unprotect = policy_list(policy, KEY_UNPROTECT);
        for (char *const *name = s->unprotect; name && *name; name++)
                if (!names_may_release(*name))
                        s->not_released = *name;
        r = survey_look_at_identity(s);
        if (r < 0)
                return r;
        if (policy_workspace(policy) != HUTCH_WORKSPACE_NONE)
                r = survey_look_at_git(s, policy_workspace(policy) == HUTCH_WORKSPACE_RW);
        if (r < 0)
                return r;
        if (policy_number(policy, KEY_COW_SYSTEM) && !policy_flag(policy, KEY_BARE))
                r = survey_look_at_layers(s);
        if (r < 0)
                return r;
        s->paths = calloc(policy->n_paths + 1, sizeof(*s->paths));
        if (!s->paths)
                return -ENOMEM;
        s->n_paths = policy->n_paths;
        for (size_t i = 0; i < policy->n_paths; i++) {
                r = survey_look_at(policy->paths[i].path, &s->paths[i]);
                if (r < 0)
                        return r;
                if (policy->paths[i].access == HUTCH_COW)
                        r = survey_mounts(&s->paths[i]);
                if (r < 0)
                        return r;
        }
        r = survey_match_patterns(s, policy);
        if (r < 0)
                return r;
        r = survey_look_at_sockets(s, policy);
        if (r < 0)
                return r;
        r = survey_look_at_online(s, policy);
        if (r < 0)
                return r;
        r = is_there("/bin/bash", X_OK, &s->has_bash);
        if (r < 0)
                return r;
        r = is_there("/etc/passwd", F_OK, &s->has_passwd);
        if (r < 0)
                return r;
        r = is_there("/etc/group", F_OK, &s->has_group);
        if (r < 0)
                return r;
        r = is_there("/etc/hosts", F_OK, &s->has_hosts);
        if (r < 0)
                return r;
        r = is_there("/etc/hostname", F_OK, &s->has_hostname);
        if (r < 0)
                return r;
        r = survey_look_at_machine(s, policy);
        if (r < 0)
                return r;
        if (policy_flag(policy, KEY_BARE) && !is_named(policy, "/etc/resolv.conf"))
                return 0;
        if (realpath("/etc/resolv.conf", real)) {
                s->resolv_conf = strdup(real);
                return s->resolv_conf ? 0 : -ENOMEM;
        }
        return is_absence(errno) ? 0 : -errno;
}

int survey_make(const struct hutch_policy *policy, char *const *env, struct survey **ret, struct hutch_error *err) {
        _cleanup_(survey_freep) struct survey *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return error_oom(err);
        r = make(policy, env, s);
        if (r < 0) {
                if (r == -E2BIG)
                        r = error_set(err, HUTCH_E_POLICY_INVALID, r,
                                      "a pattern of --hide matches more than 4096 paths: hide the directories that "
                                      "hold them");
                else
                        r = error_set(err, r == -ENOMEM ? HUTCH_E_INTERNAL : HUTCH_E_IO, r,
                                      "cannot look at the host's files: %s", errno_text(-r));
                error_stage(err, "survey");
                return r;
        }
        *ret = take_ptr(s);
        return 0;
}

static void forget(struct path_fact *fact) {
        free(fact->real);
        for (size_t i = 0; i < fact->n_mounts; i++)
                free(fact->mounts[i].path);
        free(fact->mounts);
        for (size_t i = 0; i < fact->n_matches; i++)
                free(fact->matches[i].real);
        free(fact->matches);
}

void survey_free(struct survey *s) {
        if (!s)
                return;
        strv_free(s->env);
        strv_free(s->own_folders);
        free(s->empty);
        free(s->user);
        free(s->home);
        free(s->passwd_home);
        free(s->home_fact.real);
        free(s->host_name);
        forget(&s->workspace);
        forget(&s->git_root);
        forget(&s->git_dir);
        free(s->git_refused);
        free(s->git_name);
        free(s->git_email);
        strv_free(s->sealed);
        strv_free(s->guarded_git);
        free(s->quarantine);
        strv_free(s->control);
        for (size_t i = 0; i < s->n_toolchains; i++) {
                free(s->toolchains[i].path);
                free(s->toolchains[i].link);
                forget(&s->toolchains[i].fact);
        }
        free(s->toolchains);
        for (size_t i = 0; i < s->n_certificates; i++) {
                free(s->certificates[i].path);
                forget(&s->certificates[i].fact);
        }
        free(s->certificates);
        for (size_t i = 0; i < N_SETTINGS; i++)
                free(s->settings[i].text);
        strv_free(s->tool_env);
        strv_free(s->path);
        for (size_t i = 0; i < s->n_paths; i++)
                forget(&s->paths[i]);
        free(s->paths);
        for (size_t i = 0; i < s->n_system; i++)
                free(s->system[i].link);
        for (size_t i = 0; i < s->n_system; i++)
                forget(&s->system[i].tree);
        free(s->resolv_conf);
        free(s->skeleton);
        free(s->cpuinfo);
        free(s->system_passwd);
        free(s->system_group);
        free(s->cache);
        free(s->tools);
        free(s);
}

void survey_freep(struct survey **s) {
        survey_free(*s);
}
