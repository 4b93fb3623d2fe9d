/* The survey looks at what a policy names and what the caller is, once, before the plan is made: which paths exist and
 * where they really are, which system directories the host has, and who the caller is. It decides nothing and changes
 * nothing.
 *
 * Its cost depends on what the policy names, never on the content of a workspace. */
#pragma once

#include <sys/stat.h>

#include "../policy/policy.h"

/* A part of a directory in which other file systems are mounted: one of those, a directory on the way to one, or a
 * directory beside that way. */
struct mount_fact {
        char *path;
        bool directory; /* else a file, or: */
        bool special;   /* a socket, FIFO or device */
        bool mounted;   /* a separate file system */
        bool split;     /* others are mounted in it, so that no overlay takes it as it is */
        dev_t dev;
        ino_t ino;
        uid_t uid;
        gid_t gid;
};

struct path_fact {
        char *real;  /* the real path, links resolved; NULL if it does not exist */
        int errnum;  /* why not */
        mode_t type; /* S_IFDIR, S_IFREG, … */
        dev_t dev;   /* which it is, so that what is attached is what was looked at */
        ino_t ino;
        nlink_t links;
        uid_t uid;
        gid_t gid;
        struct mount_fact *mounts; /* beneath it, outer before inner; looked for where it is to be copy-on-write. With
                                    * any, all the parts: whatever is in it is in one of them, but for its own files */
        size_t n_mounts;
        bool pattern; /* of --hide: no path, but what these match */
        struct path_fact *matches;
        size_t n_matches;
};

/* A directory of the host's root that belongs to the system. */
struct system_fact {
        const char *path;      /* "/usr" */
        char *link;            /* its target where it is a symbolic link (merged /usr) */
        struct path_fact tree; /* with --cow / only */
};

/* What the box gets to read of the home because programs of the caller's PATH live there. */
struct toolchain_fact {
        char *path; /* in the home, under the caller's name for it */
        char *link; /* it is a link, with this text; else: */
        struct path_fact fact;
        bool cache;          /* packages instead of programs */
        bool with_home;      /* goes to the box's home, whatever its path; else it stays where it is */
        const char *manager; /* which package manager fetches them; NULL: none */
};

/* A file or directory of certificates that a variable of the caller names. */
struct certificate_fact {
        char *path; /* as the variable has it */
        struct path_fact fact;
};

/* A package manager's configuration in the caller's home, without its secrets. */
struct settings_fact {
        const char *file, *manager; /* below the home */
        char *text;                 /* NULL: none, or not to be passed */
};

#define N_SETTINGS 3
#define N_SYSTEM_MOST 16

struct survey {
        char **env;        /* the caller's environment */
        char *user, *home; /* the caller's; home is NULL where none is known */
        char *passwd_home; /* of /etc/passwd, whatever the environment contains */
        struct path_fact home_fact;
        char *host_name;
        struct path_fact workspace;
        /* git: what has to be attached beside the workspace for it to work. */
        struct path_fact git_root;  /* the checkout that the workspace is a subdirectory of */
        struct path_fact git_dir;   /* the repository's administrative directory outside of the workspace */
        char *git_refused;          /* one that is not attached, because it does not name the checkout in return */
        bool git_config_writable;   /* the policy lets the box change .git/config */
        char *git_name, *git_email; /* of the person's configuration, or NULL */
        char **sealed;      /* paths that exist and that the host would run: read-only in a writable workspace */
        char **control;     /* well-known control sockets in what is attached (data/control-sockets) */
        char **guarded_git; /* administrative directories of git that the workspace can write to */
        char *const *protect, *const *unprotect; /* of the policy, below the workspace */
        const char *not_released;                /* one of the second that no policy can release */
        char *quarantine;                        /* of hutch's state, for protected names that a box makes */
        struct path_fact *paths;                 /* one for each policy path */
        size_t n_paths;
        struct toolchain_fact *toolchains;
        size_t n_toolchains;
        char **tool_env;                       /* variables that name their directories */
        bool other_home;                       /* the box's home has another path than the caller's */
        struct certificate_fact *certificates; /* where the policy has a network */
        size_t n_certificates;
        struct settings_fact settings[N_SETTINGS];
        char **path; /* the directories of the caller's PATH, as the box has them; NULL: not looked at */
        struct system_fact system[N_SYSTEM_MOST];
        size_t n_system;
        char *resolv_conf; /* the real path of /etc/resolv.conf */
        bool has_bash;
        bool has_passwd, has_group, has_hosts, has_hostname;
        uint64_t memory;   /* of the host, in bytes */
        const char *npmrc; /* the configuration of npm for the whole host, NULL if it does not exist */
        char *cpuinfo; /* /proc/cpuinfo of as many processors as the policy's share comes to; NULL: no share is set */
        /* With --cow / only: where the skeleton of the system's directories is or will be, NULL if there is no place
         * for it; and whether the host has a package database, and one that can be a layer. */
        char *skeleton;
        bool has_dpkg, has_apt, database_mounted;
        char *system_passwd, *system_group; /* the lines of /etc/passwd and /etc/group that are the system's */
        char *tools;                        /* hutch's directory of tools for the box, NULL if it is not installed */
        char *cache;                        /* hutch's cache directory, links resolved */
        char *empty;        /* of hutch's state: empty directories that a session's own are layers over */
        char **own_folders; /* hutch's configuration, data and state directories: no box may write there */
};

int survey_make(const struct hutch_policy *policy, char *const *env, struct survey **ret, struct hutch_error *err);
/* Its parts. */
int survey_look_at(const char *path, struct path_fact *ret);
int survey_mounts(struct path_fact *fact);
int survey_match_patterns(struct survey *s, const struct hutch_policy *policy);
bool survey_is_pattern(const char *path);
int survey_look_at_sockets(struct survey *s, const struct hutch_policy *policy);
int survey_look_at_identity(struct survey *s);
int survey_look_at_git(struct survey *s, bool writable);
int survey_look_at_online(struct survey *s, const struct hutch_policy *policy);
/* Packages that the workspace's package managers have downloaded. */
int survey_look_at_caches(struct survey *s, const struct hutch_policy *policy);
/* Toolchains of the home: those in the caller's PATH, and what the command `name` (NULL: shell text) needs. */
int survey_look_for_command(struct survey *s, const struct hutch_policy *policy, const char *name, const char *cwd);

void survey_free(struct survey *s);
void survey_freep(struct survey **s);
