/* The plan: policy, request and facts compiled into a flat, ordered list of concrete steps. Immutable once made,
 * serialisable, printable. Making one has no side effects: no system call, no clock, no getenv. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "../base/event.h"
#include "../host/facts.h"
#include "../net/config.h"
#include "../survey/survey.h"
#include "guarantee.h"

enum step_kind {
        STEP_COW,     /* source under a layer of the box's own, at dest; text: the dest that shows the same layer */
        STEP_BIND,    /* attach source at dest */
        STEP_TMPFS,   /* an empty file system at dest */
        STEP_SYMLINK, /* dest → text, in the box's own root */
        STEP_FILE,    /* a read-only file at dest that holds text */
        STEP_PROC,    /* the box's own /proc */
        STEP_DEVPTS,  /* the box's own pseudo terminals */
        STEP_HIDE,    /* an empty, read-only something over dest */
        STEP_SEAL,    /* dest, already there, becomes read-only */
        STEP_PIN,     /* the directory dest is bound onto itself, so that it cannot be renamed away */
        STEP_KEEP,    /* a copy of the file source at dest, in the box's home; what is saved there goes back to source.
                       * text: NULL, or lines: the workspace, then the keys of the JSON that are carried over */
        STEP_LAST = STEP_KEEP,
};

enum {
        STEP_WRITABLE = 1 << 0,
        STEP_DEVICES = 1 << 1, /* device nodes work */
        STEP_NOEXEC = 1 << 2,
        STEP_GRANTED = 1 << 3,  /* a person's path: seen with the owner's eyes where the caller is root */
        STEP_SUBMOUNT = 1 << 5, /* STEP_COW: another file system, mounted inside of a copy-on-write directory */
        STEP_REPLACE = 1 << 4,  /* skipped where dest does not exist: a file put over one of the host's */
        STEP_SPLIT = 1 << 9, /* STEP_COW: others are mounted inside of it: it has only the files itself, the directories
                              * in it are separate steps */
        STEP_SYSTEM =
                1 << 6,    /* STEP_COW: a directory of the system's; its layer is dropped with the box, not reviewed */
        STEP_OWN = 1 << 8, /* STEP_COW: a directory of the box's own, over an empty one of hutch's state */
        STEP_SEED =
                1 << 7, /* STEP_FILE: a private file of the box in a layer or a private directory, which it may change
                         */
};

struct step {
        enum step_kind kind;
        unsigned flags;
        mode_t mode; /* of a tmpfs or file */
        uid_t owner; /* STEP_GRANTED: the owner of the source on the host */
        gid_t group;
        uint64_t dev, ino;          /* STEP_GRANTED: what the source must still be */
        unsigned layer;             /* STEP_COW: which */
        char **below;               /* STEP_COW: read-only layers between it and the source, the topmost first */
        char *source, *dest, *text; /* STEP_HIDE: text is the host's path if the host can replace it, then source the
                                     * last name of the pattern */
        char *origin;               /* the origin, for explain */
};

/* What a backend gives a box, and what the plan kept of it: code asks for the one property that it depends on, never
 * for the backend's name. */
enum trait {
        TRAIT_OWN_ROOT = 1 << 0, /* a root file system: paths of the box are not those of the host */
        TRAIT_OWN_PIDS = 1 << 1, /* init is pid 1, and its end is the end of every process in the box */
        TRAIT_OWN_NET = 1 << 2,
        TRAIT_OWN_IDS = 1 << 3,
        TRAIT_OWN_IPC = 1 << 4,
        TRAIT_FILTER = 1 << 5,     /* no new privileges, and the system call filter */
        TRAIT_LANDLOCK = 1 << 6,   /* as the wall, or with TRAIT_OWN_ROOT as a second one */
        TRAIT_DELEGATED = 1 << 7,  /* another program builds the walls; init checks them from inside */
        TRAIT_IMAGE = 1 << 8,      /* the root file system is an image's; nothing of the host's system is in it */
        TRAIT_OWN_LIMITS = 1 << 9, /* that program keeps memory, cpu and pids, too */
        TRAIT_ALL = (1 << 10) - 1,
};

#define N_TRAITS 10

/* What the guard of a writable workspace watches; see src/supervise/guard.c. */
struct guard_input {
        char *quarantine; /* NULL: there is nothing to guard */
        char **tops;      /* workspaces, as the host has them */
        char **git;       /* administrative directories of git */
        char **spared;    /* what a person made writable by name */
        char **names;     /* of the policy: further protected names below the tops */
};

struct plan {
        char *backend;
        unsigned traits; /* enum trait: what the box has separately; 0: no isolation at all (none) */
        bool nested;
        bool net_open;       /* the host's network */
        bool open_root;      /* the box may make things in its root directory too */
        bool map_by_parent;  /* the warden, as root, maps the ids */
        uid_t uid, host_uid; /* inside, outside */
        gid_t gid, host_gid;
        char *user, *home, *host_name; /* host_name NULL: the host's */
        struct step *steps;
        size_t n_steps;
        char **argv, **env, *cwd;
        char **env_origins;                                   /* the origin of each of env */
        char **search;                                        /* directories in which the command is looked for */
#define NUMBER(field, key, label, unit, json) uint64_t field; /* 0: none */
#include "numbers.def"
#undef NUMBER
        bool truncate;
        bool group, memory_by_group; /* a control group keeps limits; it keeps the memory's */
        enum hutch_enforcement enforced[HUTCH_G_COUNT];
        unsigned may_degrade; /* bits by guarantee: limits that need not hold for the command to run */
        unsigned n_layers;
        bool ephemeral;       /* layers in memory, lost when the box ends */
        char *channel;        /* of a session: the directory of its FIFOs and texts, as a path in the box */
        bool session;         /* argv is a persistent shell that is sent commands; see src/session */
        struct events events; /* notices, for the result */
        /* Which programs may be executed (src/policy/commands.h); enforced by init/commands.c. */
        bool commands;                          /* not every one */
        char **commands_allow, **commands_deny; /* NULL allow: all that are not denied */
        char **commands_named; /* paths that are allowed beside the list: of what hutch itself starts */
        char **env_block;      /* of a session: variables that its snapshots leave out */
        struct guard_input guard;
        struct relay_config network; /* what a relay carries; see relay_config_is_needed() */
        char **engine_env;           /* of the program that builds the walls: the caller's variables that it goes by */
        char *engine, *image;        /* of a container: which engine (auto, docker, podman), and the image */
        bool build_image;            /* where it does not exist */
        bool bridge;                 /* with net_open: the engine's network, not the host's */
};

/* Whether something is hidden that the host can replace. */
bool plan_watches_masks(const struct plan *plan);
/* Whether init sends its mount namespace before anything runs (INIT_GUARD): what is hidden is masked again at once, and
 * a session is not stopped for what was replaced. */
bool plan_sends_mounts(const struct plan *plan);
/* Whether it sends it when the guard has stopped the box (INIT_HELD). */
bool plan_mounts_on_hold(const struct plan *plan);

struct plan_input {
        const struct hutch_policy *policy;
        const struct hutch_request *request; /* .argv or .command, .cwd, .env */
        const struct survey *survey;
        const struct host_facts *facts;
        const struct offers *offers;
        const char *backend;
        unsigned traits; /* of the backend */
        const struct hutch_error
                *instead;  /* why `auto` did not choose the strongest one; NULL: it did, or was not requested */
        bool session;      /* the request has no command, only cwd and env */
        const char *shell; /* of a session, as --shell has it; NULL: the one that exists */
};

int plan_make(const struct plan_input *input, struct plan **ret, struct hutch_error *err);
void plan_free(struct plan *plan);
void plan_freep(struct plan **plan);

int plan_add_step(struct plan *plan, struct step step); /* copies the strings */

/* The layers that a box has for a plan: the numbers of the plan's layers among all of the box, and for each of those
 * the frozen ones below it, topmost first. */
struct plan_layers {
        const unsigned *numbers; /* NULL: as the plan has them */
        unsigned n;
        char ***below;       /* by number; NULL: none */
        const char *instead; /* of those that lie beneath this directory, if the plan has any; NULL: none are dropped */
        const char *in_memory; /* the reason why none can be kept on disk; NULL: they are */
};

/* The same plan with the places of its layers. 0, -ENOMEM or -EBADMSG. */
int plan_with_layers(const struct plan *plan, const struct plan_layers *layers, struct plan **ret);

/* Puts one path in the place of another, in everything that names paths of the box. */
int plan_move(struct plan *plan, const char *from, const char *to);

/* The number of such layers in the steps before the given one (NULL: in all): where its own begin in a flat list. */
size_t plan_n_below(const struct plan *plan, const struct step *before);

/* Whether a later step attaches something inside of what step `n` puts at its place. */
bool plan_attaches_inside(const struct plan *plan, size_t n);

/* Whether programs can make internet sockets: where the host's network is open, or the box has a separate one. */
bool plan_has_sockets(const struct plan *plan);

const char *trait_name(enum trait trait); /* one bit */

struct buf;
int plan_encode(const struct plan *plan, struct buf *b);
int plan_decode(const void *data, size_t len, struct plan **ret);

/* The policy is named for the origins of its values; NULL: the plan alone. */
int plan_explain(const struct plan *plan, const struct hutch_policy *policy, char **ret);
int plan_explain_json(const struct plan *plan, const struct hutch_policy *policy, char **ret);

/* Whether the caller's variable of that name may be passed into the box: 1, 0 or -ENOMEM. An exclusion by the built-in
 * list is reported. */
bool plan_blocks(const struct plan *plan, const char *name); /* by --env-block, which beats everything else */
int plan_note_blocked(const char *name, struct events *events);
int plan_may_pass(const struct plan *plan, const char *name, struct events *events);

/* Parts of plan_make(), each in a separate file. */
int plan_check_paths(const struct plan_input *in, struct hutch_error *err);
/* Why the policy's path rule does not keep what it promises, or NULL. */
const char *plan_rule_gap(const struct plan_input *in, size_t index);
/* What is watched from outside of the box. */
int plan_add_guard(struct plan *plan, const struct plan_input *in);
int plan_add_files(struct plan *plan, const struct plan_input *in, struct hutch_error *err);
/* The same two for a box without a separate root. Paths beneath SCRATCH are placeholders for a directory that init
 * makes. */
#define SCRATCH "/.hutch"
#define PLAN_COPY SCRATCH "/copy/" /* and the layer's number: a private copy */
bool plan_has_copies(const struct plan *plan);
/* XDG_RUNTIME_DIR of a box with its own root, and the uid inside. */
#define RUNTIME_DIR "/run/user/"
int plan_check_grants(const struct plan_input *in, struct hutch_error *err);
int plan_add_grants(struct plan *plan, const struct plan_input *in, struct hutch_error *err);
/* The same for a box whose root is an image. */
#define DEFAULT_IMAGE "hutch-sandbox:latest"
int plan_add_image(struct plan *plan, const struct plan_input *in, struct hutch_error *err);
int plan_add_system(struct plan *plan, const struct plan_input *in);
/* A directory of the host under a layer of the box's own. `same` names a place that shows the same layer already. */
int plan_add_cow(struct plan *plan, const struct path_fact *fact, const char *dest, const char *same,
                 const char *origin);
/* The same for a directory of the system's, with the skeleton in between. */
int plan_add_cow_system(struct plan *plan, const struct path_fact *fact, const char *skeleton);
/* Whether a directory has to be split into more layers than are supported. */
bool plan_has_too_many_parts(const struct plan_input *in, const struct path_fact *fact);
/* Files of an agent's that are copied into the box and saved back, where the backend allows that; with the home. */
int plan_add_kept(struct plan *plan, const struct plan_input *in);
int plan_note_kept(struct plan *plan, const struct plan_input *in);     /* those that are not */
bool plan_keeps(const struct plan *plan, const struct path_rule *rule); /* such a copy takes the rule's place */
int plan_add_tools(struct plan *plan, const struct plan_input *in);
int plan_add_git_identity(struct plan *plan, const struct plan_input *in);
int plan_add_world(struct plan *plan, const struct plan_input *in);
/* The person's proxies, certificates and registries, where the box has a network: files, and variables. */
int plan_add_online(struct plan *plan, const struct plan_input *in);
/* Whether a cache stays out of the box, because its package manager may reach its registry there. */
bool plan_fetches(const struct plan_input *in, const struct toolchain_fact *cache);
int plan_pass_online(struct plan *plan, const struct plan_input *in,
                     int (*set)(struct plan *plan, const char *name, const char *value, const char *origin));
bool plan_can_judge(unsigned traits); /* whether a backend with these keeps rules for the network's hosts */
/* Variables that hold credentials are blocked; before the environment is made. */
int plan_block_credentials(struct plan *plan);
/* Variables by which programs find the host of a credential; see data/credentials. */
typedef int (*plan_set_fn)(struct plan *plan, const char *name, const char *value, const char *origin);
int plan_add_credential_env(struct plan *plan, const struct plan_input *in, plan_set_fn set);
int plan_add_network(struct plan *plan, const struct plan_input *in, struct hutch_error *err);
int plan_add_env(struct plan *plan, const struct plan_input *in, struct hutch_error *err);
/* Which programs may be executed; after the steps and the environment, for the directories in which programs are. */
int plan_add_commands(struct plan *plan, const struct plan_input *in, struct hutch_error *err);
int plan_add_report(struct plan *plan, const struct plan_input *in, struct hutch_error *err);
