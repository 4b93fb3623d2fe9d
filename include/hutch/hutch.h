/* hutch: run the commands of AI agents in a box.
 *
 * A policy says what is allowed, a box is one live sandbox made from it, a request is one command to run in the box, a
 * result is what came out and what was enforced.
 *
 * Every fallible function returns 0 or a negative errno and fills the `hutch_error` that it is given (which may be
 * NULL). Handles are opaque; what a function makes is freed with the function named beside it, which accepts NULL.
 * Structs that the caller fills carry their size (`.struct_size = sizeof(…)`; 0 means the first published layout) so
 * that later versions can add fields. The library prints nothing, never exits, and leaves the working directory, umask,
 * signals, environment and children of the process alone. A handle may be used from any thread; calls on one box are
 * queued. */
#ifndef HUTCH_H
#define HUTCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HUTCH_BUILDING)
#define HUTCH_EXPORT __attribute__((visibility("default")))
#else
#define HUTCH_EXPORT
#endif

/* ---- errors ---- */

/* The kinds of failure. Their names (hutch_code_name) are what `error.code` holds in JSON. */
typedef enum hutch_code {
        HUTCH_OK = 0,
        HUTCH_E_USAGE,                 /* the call or the command line makes no sense */
        HUTCH_E_POLICY_INVALID,        /* a value of the policy is not one */
        HUTCH_E_POLICY_REFUSED,        /* the policy forbids this */
        HUTCH_E_BACKEND_UNKNOWN,       /* no backend of that name */
        HUTCH_E_BACKEND_UNAVAILABLE,   /* this host cannot run that backend */
        HUTCH_E_GUARANTEE_UNAVAILABLE, /* something that was asked for cannot be enforced here */
        HUTCH_E_PATH_MISSING,          /* a path of the policy or the request does not exist */
        HUTCH_E_SETUP_FAILED,          /* building the box failed */
        HUTCH_E_SESSION_CLOSED,        /* the box was closed or its warden is gone */
        HUTCH_E_IO,                    /* a stream or a file of the caller failed */
        HUTCH_E_INTERNAL,              /* lack of memory, or a defect of hutch */
} hutch_code;

typedef struct hutch_error {
        hutch_code code;
        int errnum;        /* positive errno, 0 where none fits */
        char stage[24];    /* the part of the run that failed: "policy", "plan", "launch", "mount", … */
        char message[996]; /* one line: the thing, the reason and, where there is one, the way out */
} hutch_error;

HUTCH_EXPORT const char *hutch_code_name(hutch_code code);
HUTCH_EXPORT const char *hutch_version(void);

/* Frees what the library returned as text or as a list; the same as free() in programs that share its C library. */
HUTCH_EXPORT void hutch_free(void *data);

/* ---- events ---- */

typedef enum hutch_severity {
        HUTCH_INFO,     /* for programs */
        HUTCH_NOTICE,   /* for a person at a terminal */
        HUTCH_WARNING,  /* for everybody */
        HUTCH_CRITICAL, /* of findings: reason enough not to run the script */
} hutch_severity;

typedef enum hutch_event_kind {
        HUTCH_EVENT_NOTICE,    /* notices for the user */
        HUTCH_EVENT_DENIAL,    /* a wall that something in the box ran into: code is the kind, text the rule */
        HUTCH_EVENT_FINDING,   /* of the script scanner */
        HUTCH_EVENT_PUBLISHED, /* a port of the box (subject) that can be reached on the host (text) */
} hutch_event_kind;

/* Something that happened beside the command's output. Made by the library; later versions append fields. */
typedef struct hutch_event {
        hutch_event_kind kind;
        hutch_severity severity;
        const char *code;    /* stable, e.g. "variable_blocked" */
        const char *subject; /* the path, variable, address, … that it is about; NULL: none */
        const char *text;    /* one line */
        const char *fix;     /* what to do about it; NULL: unknown */
        /* Of denials, where they are known; else NULL and 0. */
        const char *name, *address, *program;
        unsigned port;
        uint32_t line, column; /* of findings, from 1: code is the rule, subject the file, text the reason */
} hutch_event;

HUTCH_EXPORT const char *hutch_severity_name(hutch_severity severity);
HUTCH_EXPORT const char *hutch_event_kind_name(hutch_event_kind kind);

/* ---- policy ---- */

typedef struct hutch_policy hutch_policy;

/* The defaults of each way to start a box. */
typedef enum hutch_preset {
        HUTCH_PRESET_API,     /* no workspace, as user; what hutch_policy_new() starts from */
        HUTCH_PRESET_RUN,     /* workspace read-write, as host */
        HUTCH_PRESET_SESSION, /* workspace copy-on-write, as user */
        HUTCH_PRESET_EXEC,    /* scripts: workspace read-only, 60 s, 256 MiB, half a core, 1 MiB of output, as host */
} hutch_preset;

typedef enum hutch_access {
        HUTCH_READ,   /* attach read-only */
        HUTCH_WRITE,  /* attach read-write */
        HUTCH_COW,    /* attach copy-on-write */
        HUTCH_HIDE,   /* mask */
        HUTCH_TMPFS,  /* an empty writable directory */
        HUTCH_DEVICE, /* attach a device node */
        HUTCH_SOCKET, /* attach a unix socket */
} hutch_access;

typedef enum hutch_workspace {
        HUTCH_WORKSPACE_NONE, /* an empty /workspace */
        HUTCH_WORKSPACE_RO,
        HUTCH_WORKSPACE_RW,
        HUTCH_WORKSPACE_COW,
} hutch_workspace;

typedef enum hutch_identity {
        HUTCH_AS_HOST, /* the caller's name and uid, an empty home */
        HUTCH_AS_USER, /* user, uid 1000, /home/user, host name "sandbox" */
        HUTCH_AS_ROOT, /* uid 0 of the box, which has no rights outside */
} hutch_identity;

typedef enum hutch_network {
        HUTCH_NET_DENY,      /* a separate network with only loopback */
        HUTCH_NET_OPEN,      /* the host's network */
        HUTCH_NET_LOOPBACK,  /* own loopback, with ports shared by name */
        HUTCH_NET_ALLOWLIST, /* named hosts only */
} hutch_network;

typedef enum hutch_limit {
        HUTCH_LIMIT_TIMEOUT_MS,  /* wall clock */
        HUTCH_LIMIT_MEMORY,      /* bytes, the whole box */
        HUTCH_LIMIT_CPU_PERCENT, /* of one core */
        HUTCH_LIMIT_CPU_TIME_MS, /* processor time of the whole box */
        HUTCH_LIMIT_PIDS,        /* processes and threads */
        HUTCH_LIMIT_DISK,        /* bytes written to the box's own places */
        HUTCH_LIMIT_OUTPUT,      /* bytes of stdout and stderr together */
} hutch_limit;

/* The names of these values, as options and policy files spell them. What is out of range is "unknown". */
HUTCH_EXPORT const char *hutch_preset_name(hutch_preset preset);
HUTCH_EXPORT const char *hutch_access_name(hutch_access access);
HUTCH_EXPORT const char *hutch_workspace_name(hutch_workspace workspace);
HUTCH_EXPORT const char *hutch_identity_name(hutch_identity identity);
HUTCH_EXPORT const char *hutch_network_name(hutch_network network);
HUTCH_EXPORT const char *hutch_limit_name(hutch_limit limit);

HUTCH_EXPORT int hutch_policy_new(hutch_policy **ret);
HUTCH_EXPORT void hutch_policy_free(hutch_policy *policy);

/* Chooses the defaults of what the policy does not set; it does not matter whether it is called first or last. */
HUTCH_EXPORT int hutch_policy_use_preset(hutch_policy *policy, hutch_preset preset, hutch_error *err);

/* Attaches `path` of the host at `dest` in the box (NULL: the same path). Relative paths are seen from the working
 * directory,
 * `~/…` from $HOME. Later calls override earlier ones where they overlap. */
HUTCH_EXPORT int hutch_policy_add_path(hutch_policy *policy, const char *path, const char *dest, hutch_access access,
                                       hutch_error *err);

/* The directory to work on; NULL: the current one. */
HUTCH_EXPORT int hutch_policy_set_workspace(hutch_policy *policy, const char *dir, hutch_workspace mode,
                                            hutch_error *err);
HUTCH_EXPORT int hutch_policy_set_identity(hutch_policy *policy, hutch_identity identity, hutch_error *err);
HUTCH_EXPORT int hutch_policy_set_network(hutch_policy *policy, hutch_network network, hutch_error *err);

/* Allows one host by name or address, `*.name` for subdomains; port 0 means any. Implies HUTCH_NET_ALLOWLIST. */
HUTCH_EXPORT int hutch_policy_allow_host(hutch_policy *policy, const char *host, uint16_t port, hutch_error *err);
/* Lets the box use a credential that it does not see: requests to http://HOST.hutch.internal go to HOST over TLS with
 * the header added. `host` is a name, with ":PORT" if it is not 443; the value is that of a variable of this process's
 * environment when a box starts; header NULL: Authorization. Implies HUTCH_NET_ALLOWLIST. */
HUTCH_EXPORT int hutch_policy_add_credential(hutch_policy *policy, const char *host, const char *variable,
                                             const char *header, hutch_error *err);
HUTCH_EXPORT int hutch_policy_set_limit(hutch_policy *policy, hutch_limit limit, uint64_t value, hutch_error *err);
HUTCH_EXPORT int hutch_policy_set_isolation(hutch_policy *policy, const char *backend, hutch_error *err);

/* Sets a variable in the box, or with value NULL passes the caller's on. */
HUTCH_EXPORT int hutch_policy_set_env(hutch_policy *policy, const char *name, const char *value, hutch_error *err);

/* Lets the box execute a program, by its name, its absolute path, a directory (with a "/" at the end) or "default" for
 * a list of common ones, and from then on no other that is not allowed as well. */
HUTCH_EXPORT int hutch_policy_allow_command(hutch_policy *policy, const char *command, hutch_error *err);

/* Whether the policy's lists allow a program; whether a variable of the caller would be passed into the box. */
HUTCH_EXPORT bool hutch_policy_command_allowed(const hutch_policy *policy, const char *command);
HUTCH_EXPORT bool hutch_policy_env_allowed(const hutch_policy *policy, const char *name);

/* Those of a list of NAME=VALUE (NULL-terminated) that would be passed, as a new list; freed with hutch_free(), the
 * strings stay the caller's. */
HUTCH_EXPORT int hutch_policy_filter_env(const hutch_policy *policy, const char *const *env, const char ***ret,
                                         hutch_error *err);

/* Sets what an option of the command line sets: hutch_policy_set_option(p, "memory", "256M", &err). Options without a
 * value take NULL. Unknown names are an error that suggests the nearest. */
HUTCH_EXPORT int hutch_policy_set_option(hutch_policy *policy, const char *name, const char *value, hutch_error *err);

/* One option of those, for front ends that parse or document them; index from 0, false past the last. */
typedef struct hutch_option_info {
        const char *name;       /* without dashes */
        char letter;            /* short form, or 0 */
        const char *value_name; /* what its value is called, NULL if it takes none */
        const char *help;
        unsigned verbs; /* which commands take it: HUTCH_OPTION_* */
} hutch_option_info;

enum {
        HUTCH_OPTION_BOX = 1 << 0,         /* everything that makes a box */
        HUTCH_OPTION_SESSION_RUN = 1 << 1, /* a run in a session */
        HUTCH_OPTION_REVIEW = 1 << 2,      /* reviewing the boxes of a workspace */
        HUTCH_OPTION_EXEC = 1 << 3,        /* scripts: hutch_exec() */
};

HUTCH_EXPORT bool hutch_option_get(size_t index, hutch_option_info *ret, size_t size);
static inline bool hutch_option_describe(size_t index, hutch_option_info *ret) {
        return hutch_option_get(index, ret, sizeof(*ret));
}

/* ---- policy files ---- */

/* Reads a policy file, see hutch.yaml(5): what it sets is put over what the policy has. The error names the first
 * mistake, hutch_policy_events() has all of them. */
HUTCH_EXPORT int hutch_policy_load_file(hutch_policy *policy, const char *path, hutch_error *err);

/* Reads what `hutch run` reads, beneath what the policy has: the profile of the command or of the first word of shell
 * text (NULL: none is chosen by name), the person's config.yaml and .jail, the workspace's own files as far as they are
 * trusted, and the file of the option "config". `for_person`: notices are read by a person, so that what is shown once
 * may be shown now. */
HUTCH_EXPORT int hutch_policy_load_config(hutch_policy *policy, const char *command, bool for_person, hutch_error *err);

/* Notices from reading the files, NULL-terminated (NULL: none); owned by the policy. */
HUTCH_EXPORT const hutch_event *const *hutch_policy_events(const hutch_policy *policy);

/* One key of policy files, for editors and documents; index from 0, false past the last. */
typedef struct hutch_key_info {
        const char *name;  /* "limits.memory" */
        const char *value; /* what its value is: "a size (256M, 2G)" */
        bool list;         /* a list of those, or a mapping of names to them */
        const char *help;
        const char *untrusted; /* of a file that is not trusted: "nothing", "all", "lower" */
        const char *option;    /* the equivalent option, NULL if none exists */
} hutch_key_info;

HUTCH_EXPORT bool hutch_key_get(size_t index, hutch_key_info *ret, size_t size);

/* The JSON schema of policy files; freed with hutch_free(). */
HUTCH_EXPORT int hutch_policy_schema(char **ret);

/* The profiles that come with hutch: names by index (NULL past the last); the text and summary of one, freed with
 * hutch_free(). */
HUTCH_EXPORT const char *hutch_profile_name(size_t index);
HUTCH_EXPORT int hutch_profile_text(const char *name, char **ret, hutch_error *err);
HUTCH_EXPORT int hutch_profile_summary(const char *name, char **ret, hutch_error *err);

/* Trust in a workspace's own policy files (hutch.yaml, .jail), as they were when the handle was opened; or in the
 * profile of a language, which from then on applies to every box of the workspace. */
typedef struct hutch_trust hutch_trust;

typedef enum hutch_trust_state {
        HUTCH_TRUST_NOTHING, /* the workspace has no such files */
        HUTCH_TRUST_GIVEN,   /* they are what was accepted */
        HUTCH_TRUST_NEW,     /* nothing was accepted for this workspace */
        HUTCH_TRUST_CHANGED, /* something else was accepted */
} hutch_trust_state;

HUTCH_EXPORT const char *hutch_trust_state_name(hutch_trust_state state);
HUTCH_EXPORT int hutch_trust_open(const char *dir, hutch_trust **ret, hutch_error *err); /* NULL: the current one */
HUTCH_EXPORT int hutch_trust_open_profile(const char *dir, const char *profile, hutch_trust **ret, hutch_error *err);
HUTCH_EXPORT void hutch_trust_free(hutch_trust *trust);
HUTCH_EXPORT hutch_trust_state hutch_trust_get_state(const hutch_trust *trust);
HUTCH_EXPORT const char *hutch_trust_text(const hutch_trust *trust); /* for people: the files, or what changed */
HUTCH_EXPORT int hutch_trust_accept(const hutch_trust *trust, hutch_error *err);
HUTCH_EXPORT int hutch_trust_forget(const hutch_trust *trust, hutch_error *err);

/* Whether the policy lets a box reach a path or HOST[:PORT], from the plan alone: *ret (freed with hutch_free()) is for
 * people: by which rule, set where, and what would change it. *ret_allowed: it can be read, or connected to. */
HUTCH_EXPORT int hutch_why(const hutch_policy *policy, const char *target, bool *ret_allowed, char **ret,
                           hutch_error *err);

/* ---- words ---- */

/* What an errno means, in the words of hutch's messages. */
HUTCH_EXPORT const char *hutch_errno_text(int errnum);

/* Removes from a line for people everything that a terminal would interpret, in place. */
HUTCH_EXPORT void hutch_clean_line(char *line);

/* A duration as options take it ("500ms", "30s", "2m", "7d") in milliseconds. */
HUTCH_EXPORT int hutch_parse_duration(const char *text, uint64_t *ret_ms, hutch_error *err);
HUTCH_EXPORT int hutch_parse_size(const char *text, uint64_t *ret_bytes, hutch_error *err);

/* The candidate that a mistyped word was probably meant to be, or NULL: for front ends' own words. */
HUTCH_EXPORT const char *hutch_suggest(const char *word, const char *const *candidates, size_t n);

/* ---- context: the library's warden ---- */

/* A context owns one warden: a small process outside of all boxes that starts, watches and ends them. Many boxes share
 * one. The warden ends with the context, and with this process, however it dies. */
typedef struct hutch_context hutch_context;

typedef enum hutch_warden {
        HUTCH_WARDEN_PROCESS, /* spawn a separate process: right for every long-lived program */
        HUTCH_WARDEN_SELF, /* the calling process is the warden: for single-threaded commands without other children */
} hutch_warden;

HUTCH_EXPORT const char *hutch_warden_name(hutch_warden warden);
HUTCH_EXPORT int hutch_context_new(hutch_warden warden, hutch_context **ret, hutch_error *err);
HUTCH_EXPORT void hutch_context_free(hutch_context *context);

/* Whether this host can run the backend ("namespace", "none", …), found by trying: 0, or -errno with the reason and,
 * where there is one, the remedy. */
HUTCH_EXPORT int hutch_backend_available(hutch_context *context, const char *backend, hutch_error *err);

/* ---- boxes ---- */

typedef struct hutch_box hutch_box;

typedef struct hutch_box_options {
        size_t struct_size;
        hutch_context *context; /* NULL: the box gets a separate context */
        bool keep_changes;      /* copy-on-write changes outlive the box, for review; else they go with it */
        const char *id; /* continues a kept box with its copy-on-write directories; "": the newest of the policy's
                         * workspace; NULL: a new box */
        /* A persistent shell: what a run changes (directory, variables, functions, jobs) the next one finds. */
        bool session;
        const char *shell; /* of the session, as a path in the box; NULL: bash if it exists, else sh */
        const char *name;  /* of the session: other processes find it by hutch_box_attach(), and it outlives this one */
        uint64_t idle_timeout_ms; /* a named session without a request for so long ends; 0: never */
        /* What takes long before a command can start, when it happens: in hutch_box_open() of a session, else in the
         * first hutch_box_run(). */
        void (*on_event)(void *user, const hutch_event *event);
        void *user;
} hutch_box_options;

HUTCH_EXPORT int hutch_box_open(const hutch_policy *policy, const hutch_box_options *options, hutch_box **ret,
                                hutch_error *err);
HUTCH_EXPORT void hutch_box_close(hutch_box *box);

typedef enum hutch_stream {
        HUTCH_STREAM_DEFAULT,  /* stdin: none; stdout and stderr: captured */
        HUTCH_STREAM_NONE,     /* empty, or thrown away */
        HUTCH_STREAM_CAPTURE,  /* into the result and to on_output */
        HUTCH_STREAM_DATA,     /* stdin only: from .stdin_data */
        HUTCH_STREAM_FD,       /* the given fd: a pipe is passed on, anything else is relayed; it stays the caller's */
        HUTCH_STREAM_CALLBACK, /* to on_output alone: the result does not hold it */
} hutch_stream;

HUTCH_EXPORT const char *hutch_stream_name(hutch_stream stream);

enum { HUTCH_STDIN = 0, HUTCH_STDOUT = 1, HUTCH_STDERR = 2 };

typedef struct hutch_request {
        size_t struct_size;
        const char *const *argv; /* the command and its arguments, or */
        const char *command;     /* shell text */
        const char *cwd;         /* a path in the box; NULL: the workspace */
        const char *const *env;  /* NAME=VALUE, or NAME: the caller's; added to the policy's */
        hutch_stream streams[3];
        int fds[3];
        const void *stdin_data;
        size_t stdin_len;
        void (*on_output)(void *user, int stream, const void *data, size_t len);
        void (*on_event)(void *user, const hutch_event *event); /* when it happens; the result has them, too */
        void *user;
        /* For this run only; 0: the policy's. */
        uint64_t timeout_ms, output_cap;
        bool no_changes;    /* do not look for what it changed in copy-on-write directories */
        size_t command_len; /* of command; 0: not given. If given, NUL bytes are refused; one must follow the text
                             * anyway */
        /* What the library does, a line at a time, for a program's own log. */
        void (*on_log)(void *user, hutch_severity severity, const char *line);
        /* Starts the program that builds the box, in hutch's place, on the backends bwrap, systemd-run and container:
         * the program, its arguments and its environment, each NULL-terminated. Returns the id of the process, which
         * hutch waits for, or -errno. The command itself is not among the arguments: it goes to the box by a socket.
         * Only in a context of HUTCH_WARDEN_SELF. */
        int (*runner)(void *user, const char *program, const char *const *argv, const char *const *env);
} hutch_request;

typedef enum hutch_enforcement { HUTCH_NOT_REQUESTED, HUTCH_ENFORCED, HUTCH_DEGRADED } hutch_enforcement;

typedef enum hutch_guarantee {
        HUTCH_G_FILESYSTEM,
        HUTCH_G_NETWORK,
        HUTCH_G_PROCESSES,
        HUTCH_G_SYSCALLS,
        HUTCH_G_IPC,
        HUTCH_G_PROTECTED,
        HUTCH_G_MEMORY,
        HUTCH_G_CPU,
        HUTCH_G_PIDS,
        HUTCH_G_DISK,
        HUTCH_G_COUNT,
} hutch_guarantee;

typedef enum hutch_kill_reason {
        HUTCH_NOT_KILLED,
        HUTCH_KILLED_TIMEOUT,
        HUTCH_KILLED_MEMORY,
        HUTCH_KILLED_CPU,
        HUTCH_KILLED_PIDS,
        HUTCH_KILLED_OUTPUT,
        HUTCH_KILLED_DISK,
        HUTCH_KILLED_SIGNAL,
        HUTCH_KILLED_POLICY,
        HUTCH_KILLED_CANCELLED,
} hutch_kill_reason;

HUTCH_EXPORT const char *hutch_enforcement_name(hutch_enforcement enforcement);
HUTCH_EXPORT const char *hutch_guarantee_name(hutch_guarantee guarantee);
HUTCH_EXPORT const char *hutch_kill_reason_name(hutch_kill_reason reason); /* "none" for HUTCH_NOT_KILLED */

/* What came out. Made by the library and freed with hutch_result_free(); later versions append fields. */
typedef struct hutch_result {
        size_t struct_size;
        int exit_code; /* what `hutch` itself would exit with */
        int signal;    /* the signal that ended the command, 0 if none */
        bool killed;   /* hutch or a limit ended it */
        hutch_kill_reason kill_reason;
        const char *output[3]; /* [HUTCH_STDOUT], [HUTCH_STDERR]; NUL-terminated, may hold NULs before */
        size_t output_len[3];
        uint64_t output_dropped[3];
        double duration_ms, cpu_ms;
        uint64_t peak_memory_bytes;
        const char *backend;
        const hutch_enforcement *enforced; /* by hutch_guarantee; a later version may have more of them */
        size_t n_enforced;
        const hutch_event *const *notices, *const *denials, *const *findings, *const *published; /* NULL-terminated */
        /* What this run changed in copy-on-write directories, or with the option `track` in the workspace, as paths in
         * the box, NULL-terminated; all NULL where nothing was tracked. */
        const char *const *created, *const *modified, *const *deleted;
        const char *box_id; /* under which the changes are kept for review; NULL: they are not */
        hutch_error error;  /* .code is HUTCH_OK unless hutch itself failed or refused */
        const struct hutch_output_file *const *output_files; /* of hutch_exec(), NULL-terminated */
        size_t n_reviewable; /* how many of the changes can be reviewed: those of the system go with the box */
} hutch_result;

/* Runs one command and waits for its end. The command's own failure is a result, not an error: the return value is 0
 * whenever there is a result to look at. If hutch could not run it the return value is negative, and *ret, when it is
 * not NULL, still holds a result that reports the failure. */
HUTCH_EXPORT int hutch_box_run(hutch_box *box, const hutch_request *request, hutch_result **ret, hutch_error *err);

/* The same without waiting: what the request points to stays unchanged until hutch_run_finish(), and callbacks come
 * from a thread of the library. hutch_run_fd() becomes readable when the run is over; it is not to be read or closed.
 * hutch_run_finish() waits for the end, gives the result and frees the handle, before the box is closed. */
typedef struct hutch_run hutch_run;
HUTCH_EXPORT int hutch_box_start(hutch_box *box, const hutch_request *request, hutch_run **ret, hutch_error *err);
HUTCH_EXPORT int hutch_run_fd(const hutch_run *run);
HUTCH_EXPORT int hutch_run_finish(hutch_run *run, hutch_result **ret, hutch_error *err);

/* A file at a path in the box, read and written by a program inside, so that links cannot lead out; *ret is freed with
 * hutch_free() and is followed by a NUL. Queued with the runs of the box. */
HUTCH_EXPORT int hutch_box_read_file(hutch_box *box, const char *path, char **ret, size_t *ret_len, hutch_error *err);
HUTCH_EXPORT int hutch_box_write_file(hutch_box *box, const char *path, const void *data, size_t len, hutch_error *err);

/* Ends the run that is under way, from another thread: SIGTERM, then SIGKILL for the whole tree. */
HUTCH_EXPORT int hutch_box_cancel(hutch_box *box, hutch_error *err);

/* ---- sessions ---- */

/* A session's shell as a JSON object: cwd, variables, exported, arrays, functions, aliases, jobs, and the late output
 * of background jobs; freed with hutch_free(). */
HUTCH_EXPORT int hutch_box_state(hutch_box *box, char **ret, hutch_error *err);

/* Back to how it was opened: files, variables, functions, directory. What runs in the background ends. */
HUTCH_EXPORT int hutch_box_reset(hutch_box *box, hutch_error *err);

/* A named session that another process opened. Closing the handle leaves the session alone. */
HUTCH_EXPORT int hutch_box_attach(const char *name, hutch_box **ret, hutch_error *err);

/* Attaches a person to the session: joins the terminal of the calling process to an interactive shell in the box, which
 * has the session's state and passes its own back when it ends. *ret_status is its exit status. For commands, not for
 * programs with threads: it takes over signals and the terminal meanwhile. */
HUTCH_EXPORT int hutch_box_interact(hutch_box *box, int *ret_status, hutch_error *err);

/* Notices about the session's box, like those in the result of a command (see hutch_result); NULL after the last. They
 * are owned by the box and valid until its next call. Only for a session that this process started. */
HUTCH_EXPORT const hutch_event *const *hutch_box_notices(const hutch_box *box);

/* Ends everything that runs in the session's box beside its shell. A snapshot or a fork of a session is refused while
 * something does, unless its files are copied. */
HUTCH_EXPORT int hutch_box_end_jobs(hutch_box *box, hutch_error *err);

/* Names a session that has a separate context and no name yet, e.g. a fork. */
HUTCH_EXPORT int hutch_box_set_name(hutch_box *box, const char *name, uint64_t idle_timeout_ms, hutch_error *err);

/* Ends a named session, and waits until it is gone. Changes in its copy-on-write directories are kept for review,
 * unless `discard`; *ret_box_id, when not NULL, is their box or NULL, and freed with hutch_free(). */
HUTCH_EXPORT int hutch_session_stop(const char *name, bool discard, char **ret_box_id, hutch_error *err);

/* Writes a named session to a file, as hutch_review_export() does, including the state of its shell; the session
 * continues. A session with the box that hutch_import() makes of the file (`id` of the options) starts with that state.
 * The second leaves out home, /tmp and the system. */
HUTCH_EXPORT int hutch_session_export(const char *name, const char *file, uint64_t *ret_left_out, hutch_error *err);
HUTCH_EXPORT int hutch_session_export_workspace(const char *name, const char *file, uint64_t *ret_left_out,
                                                hutch_error *err);

typedef struct hutch_session_info {
        const char *name, *workspace, *box_id;
        uint64_t created; /* seconds since 1970 */
        int pid;          /* of its warden */
} hutch_session_info;

/* Calls `see` for every named session of this user, by name. What a killed one left behind is swept. */
HUTCH_EXPORT int hutch_sessions(void (*see)(void *user, const hutch_session_info *info), void *user, hutch_error *err);

HUTCH_EXPORT void hutch_result_free(hutch_result *result);

/* The result as the JSON object that `hutch run --json` prints; freed with hutch_free(). */
HUTCH_EXPORT int hutch_result_to_json(const hutch_result *result, char **ret, hutch_error *err);

/* An event, or a piece of output, as a line of `hutch run --json-lines`; freed with hutch_free(). */
HUTCH_EXPORT int hutch_event_to_json(const hutch_event *event, char **ret, hutch_error *err);
HUTCH_EXPORT int hutch_output_to_json(int stream, const void *data, size_t len, char **ret, hutch_error *err);

/* How many bytes at the end are the beginning of a UTF-8 character, which the next piece may complete. */
HUTCH_EXPORT size_t hutch_incomplete_tail(const void *data, size_t len);

/* ---- snapshots: the state of a box's copy-on-write directories ----
 *
 * None of these but the copies depends on how much a box has changed: what it wrote is set aside as a layer that is
 * never written to again, and shared by all boxes and snapshots based on it. They are queued with the runs of the box.
 */

typedef struct hutch_snapshot hutch_snapshot;

/* The state that the box has now. A snapshot is kept until it is removed, whatever becomes of the box. */
HUTCH_EXPORT int hutch_box_snapshot(hutch_box *box, hutch_snapshot **ret, hutch_error *err);

/* The same for a session in which processes run beside the shell; none of them is ended. Everything in the box is
 * stopped while its files are copied, and then continues, so this takes longer the more the box has changed. *ret_bytes
 * (may be NULL): what was written to the disk, which is little where the file system can share blocks. */
HUTCH_EXPORT int hutch_box_snapshot_copy(hutch_box *box, hutch_snapshot **ret, uint64_t *ret_bytes, hutch_error *err);

/* Gives the box the state of a snapshot; later changes are lost. */
HUTCH_EXPORT int hutch_box_restore(hutch_box *box, const hutch_snapshot *snapshot, hutch_error *err);

/* Another box of the same policy, which begins with the state that this one has now; closed with hutch_box_close(). */
HUTCH_EXPORT int hutch_box_fork(hutch_box *box, hutch_box **ret, hutch_error *err);

/* The same for a session in which something runs, in the way of hutch_box_snapshot_copy(). */
HUTCH_EXPORT int hutch_box_fork_copy(hutch_box *box, hutch_box **ret, uint64_t *ret_bytes, hutch_error *err);

/* Under which the box's changes are kept; freed with hutch_free(). NULL where it has none. */
HUTCH_EXPORT char *hutch_box_id(hutch_box *box);

/* A snapshot by its id, or by its name among those of a workspace (NULL: the current directory). */
HUTCH_EXPORT int hutch_snapshot_open(const char *id, const char *workspace, hutch_snapshot **ret, hutch_error *err);
HUTCH_EXPORT void hutch_snapshot_free(hutch_snapshot *snapshot);
HUTCH_EXPORT const char *hutch_snapshot_id(const hutch_snapshot *snapshot);

/* One line of text; no two snapshots of a workspace share one. NULL takes it away. */
HUTCH_EXPORT int hutch_snapshot_set_name(hutch_snapshot *snapshot, const char *name, hutch_error *err);

/* Removes it, with everything that no box and no other snapshot is based on. The handle can only be freed afterwards.
 */
HUTCH_EXPORT int hutch_snapshot_remove(hutch_snapshot *snapshot, hutch_error *err);

typedef struct hutch_snapshot_info {
        const char *id, *workspace;
        const char *name; /* NULL: it has none */
        uint64_t created; /* seconds since 1970 */
} hutch_snapshot_info;

/* Calls `see` for every snapshot, newest first. */
HUTCH_EXPORT int hutch_snapshots(void (*see)(void *user, const hutch_snapshot_info *info), void *user,
                                 hutch_error *err);

/* ---- review: changes that a box left in its copy-on-write layers ---- */

typedef struct hutch_review hutch_review;

typedef enum hutch_change_kind { HUTCH_CREATED, HUTCH_MODIFIED, HUTCH_DELETED } hutch_change_kind;

HUTCH_EXPORT const char *hutch_change_kind_name(hutch_change_kind kind);

typedef struct hutch_change {
        hutch_change_kind kind;
        const char *path;       /* of the host file that it would change */
        const char *short_path; /* the same, seen from the directory that was copy-on-write, if there was only one; what
                                   is mounted in it is a part of it */
        uint64_t old_size, new_size;
        uint32_t old_mode, new_mode;
        bool is_protected; /* held back by hutch_review_apply() unless forced */
        const char *note;  /* a notice for the user, or NULL */
} hutch_change;

typedef struct hutch_box_info {
        const char *id, *workspace, *command;
        uint64_t created; /* seconds since 1970 */
        uint64_t changes, bytes;
        bool in_use; /* it is running or under review: nothing more is known then */
} hutch_box_info;

/* Calls `see` for every box that is kept, newest first. A box that has no changes and whose maker is gone is removed.
 */
HUTCH_EXPORT int hutch_boxes(void (*see)(void *user, const hutch_box_info *info), void *user, hutch_error *err);

enum {
        HUTCH_CONFINE_APPLY = 1,  /* the directories that the box's changes are for are written to */
        HUTCH_CONFINE_IMPORT = 2, /* hutch's state directory is made if it does not exist */
};

/* Confines the calling thread and what it starts later, until they end: files are written in hutch's state directory
 * and beneath `writable` (NULL-terminated paths, or NULL) alone, and no socket is made. For programs that do nothing
 * but review what boxes left, before they open it; `id` and `workspace` as below. Where the kernel has no Landlock of
 * its second version, only sockets and the like are refused. */
HUTCH_EXPORT int hutch_review_confine(const char *id, const char *workspace, unsigned flags,
                                      const char *const *writable, hutch_error *err);

/* Opens the changes of a box. `id` may be cut to its beginning or its end, as long as only one box has it. NULL: the
 * newest box with `workspace` (NULL: the current directory); refused if a newer one was applied or discarded already.
 * One process at a time. */
HUTCH_EXPORT int hutch_review_open(const char *id, const char *workspace, hutch_review **ret, hutch_error *err);
HUTCH_EXPORT void hutch_review_close(hutch_review *review);
HUTCH_EXPORT const char *hutch_review_id(const hutch_review *review);

/* What the box is; the strings live as long as the review. */
HUTCH_EXPORT void hutch_review_get_info(const hutch_review *review, hutch_box_info *ret, size_t size);
static inline void hutch_review_info(const hutch_review *review, hutch_box_info *ret) {
        hutch_review_get_info(review, ret, sizeof(*ret));
}

/* The changes of an open box, between its runs, since the beginning: for viewing and exporting; apply and discard
 * require a closed box. Close this before the box. */
HUTCH_EXPORT int hutch_box_review(hutch_box *box, hutch_review **ret, hutch_error *err);

/* The changes, by index from 0, sorted by path; false past the last. */
HUTCH_EXPORT bool hutch_review_get(const hutch_review *review, size_t index, hutch_change *ret, size_t size);
static inline bool hutch_review_change(const hutch_review *review, size_t index, hutch_change *ret) {
        return hutch_review_get(review, index, ret, sizeof(*ret));
}

enum { HUTCH_DIFF_COLOUR = 1, HUTCH_DIFF_CLEAN = 2 };

/* One change as a unified diff; freed with hutch_free(). CLEAN shows what a terminal would obey instead of passing it
 * on. */
HUTCH_EXPORT int hutch_review_diff(const hutch_review *review, size_t index, unsigned flags, char **ret,
                                   size_t *ret_len, hutch_error *err);

/* The indexes of the changes that the paths (NULL: all) choose, in order; freed with hutch_free(). */
HUTCH_EXPORT int hutch_review_select(const hutch_review *review, const char *const *paths, size_t **ret, size_t *ret_n,
                                     hutch_error *err);

/* Whether the paths (NULL: all) choose the change: those at one of them or beneath it. Paths are absolute, or seen from
 * the current directory. */
HUTCH_EXPORT bool hutch_review_chooses(const hutch_review *review, size_t index, const char *const *paths);

/* The chosen changes as the JSON array that `hutch diff --json` prints; freed with hutch_free(). */
HUTCH_EXPORT int hutch_review_to_json(const hutch_review *review, const char *const *paths, char **ret,
                                      hutch_error *err);

/* A path as git shows it: in quotes and escaped where it holds what would mislead; freed with hutch_free(). 0 or
 * -ENOMEM. */
HUTCH_EXPORT int hutch_quote_path(const char *path, char **ret);

enum {
        HUTCH_APPLY_FORCE = 1,
        HUTCH_APPLY_DRY_RUN = 2, /* reports what would become of each change, and changes nothing */
        HUTCH_APPLY_MERGE = 4,   /* text files that the host changed, too, are merged where that needs no decision */
};

typedef enum hutch_apply_status {
        HUTCH_APPLIED,
        HUTCH_HELD_BACK, /* a protected name */
        HUTCH_CONFLICT,  /* the host's file changed since */
        HUTCH_NEVER,     /* a FIFO, socket or device */
        HUTCH_DEPENDS,   /* the directory that it is in was not applied */
        HUTCH_FAILED,
} hutch_apply_status;

HUTCH_EXPORT const char *hutch_apply_status_name(hutch_apply_status status);

/* Applies changes to the host; paths NULL: all, else these and everything beneath them (absolute, or relative to the
 * current directory). `see` is called with the outcome of each. 0 if all were tried, even if some failed. */
HUTCH_EXPORT int hutch_review_apply(hutch_review *review, const char *const *paths, unsigned flags,
                                    void (*see)(void *user, const hutch_change *change, hutch_apply_status status,
                                                const char *reason),
                                    void *user, hutch_error *err);

/* Takes some hunks of one modified text file, numbered as hutch_review_diff() shows them; the others stay a change of
 * the box. `n` is how many there are. */
HUTCH_EXPORT int hutch_review_apply_hunks(hutch_review *review, size_t index, const bool *take, size_t n,
                                          unsigned flags,
                                          void (*see)(void *user, const hutch_change *change, hutch_apply_status status,
                                                      const char *reason),
                                          void *user, hutch_error *err);

/* Drops changes, paths as above; a box with no changes left is removed. */
HUTCH_EXPORT int hutch_review_discard(hutch_review *review, const char *const *paths, hutch_error *err);

/* Writes the box's changes to a file (a tar under zstd), which hutch_import() reads, here or elsewhere; the same box
 * gives the same bytes. FIFOs and sockets are left out and counted. Of a session's box the home, /tmp and the system's
 * directories are written too, but not by the second. */
HUTCH_EXPORT int hutch_review_export(const hutch_review *review, const char *file, uint64_t *ret_left_out,
                                     hutch_error *err);
HUTCH_EXPORT int hutch_review_export_workspace(const hutch_review *review, const char *file, uint64_t *ret_left_out,
                                               hutch_error *err);

typedef struct hutch_import_options {
        size_t struct_size;
        const char *workspace;           /* whose changes they are to be; NULL: the current directory */
        uint64_t max_bytes, max_entries; /* more is refused; 0: 16 GiB, 1000000 */
        bool force;                      /* symbolic links that lead out are taken too */
        const char *const *maps;         /* "OLD=NEW", NULL-terminated: where a further directory of the box is here */
        bool workspace_only;             /* a session's home, /tmp and system are left out */
} hutch_import_options;

/* Makes a box that is kept out of an exported file, and returns its id, freed with hutch_free(). The file may come from
 * any source: what an export would not have written is refused, and leaves nothing behind. */
HUTCH_EXPORT int hutch_import(const char *file, const hutch_import_options *options, char **ret_id, hutch_error *err);

/* ---- scanning scripts ---- */

/* What a rule found. `suppressed`: a comment `hutch:allow RULE why` is on the line, or above it. */
typedef struct hutch_finding {
        size_t struct_size;
        const char *rule;
        hutch_severity severity; /* HUTCH_CRITICAL, HUTCH_WARNING, HUTCH_INFO */
        const char *file;        /* as it was named; "" for a text */
        uint32_t line, column;   /* from 1 */
        const char *excerpt;     /* the line, cut, cleaned of what a terminal would obey */
        const char *reason, *fix;
        bool suppressed;
        const char *why; /* of the suppression, else NULL */
} hutch_finding;

typedef struct hutch_findings hutch_findings;

typedef struct hutch_scan_options {
        size_t struct_size;
        const char *const *rules; /* files with further rules (YAML), NULL-terminated; NULL: none */
        bool ignore_suppressions; /* as for scripts from strangers, who could write such comments themselves */
        uint64_t max_bytes;       /* larger files are reported and not scanned; 0: 16 MiB */
        void (*on_file)(void *user, const char *file, size_t done, size_t total); /* before each file */
        void *user;
} hutch_scan_options;

/* Scans a text. language: shell, python, javascript (typescript), other; NULL: by content. The scanner runs in a
 * process without privileges; nothing of the text is executed. */
HUTCH_EXPORT int hutch_scan(const char *text, size_t len, const char *language, const hutch_scan_options *options,
                            hutch_findings **ret, hutch_error *err);

/* Scans files; of a directory the scripts, code blocks of Markdown files and the install scripts of package manifests
 * in it. */
HUTCH_EXPORT int hutch_scan_paths(const char *const *paths, const hutch_scan_options *options, hutch_findings **ret,
                                  hutch_error *err);

HUTCH_EXPORT size_t hutch_findings_count(const hutch_findings *findings);
HUTCH_EXPORT size_t hutch_findings_files(const hutch_findings *findings); /* how many files were scanned */
HUTCH_EXPORT const hutch_finding *hutch_findings_get(const hutch_findings *findings, size_t i);
HUTCH_EXPORT bool hutch_findings_critical(const hutch_findings *findings); /* one that is not suppressed */
/* format: text, json or sarif (2.1.0); freed with hutch_free(). */
HUTCH_EXPORT int hutch_findings_format(const hutch_findings *findings, const char *format, char **ret,
                                       hutch_error *err);
HUTCH_EXPORT void hutch_findings_free(hutch_findings *findings);

/* The runtime that a script is run with: python, node, shell or binary; by its extension, else its first line. */
HUTCH_EXPORT const char *hutch_detect_runtime(const char *path);

/* ---- commands that the caller starts ---- */

typedef struct hutch_wrapped hutch_wrapped;

/* Rewrites a command so that it runs in a box of the policy, on any backend; the caller starts it, with its own streams
 * and in its own directory, and waits for it. The environment is the caller's when it starts, as the policy filters it.
 * What a run would refuse is refused here, and so is a command that is wrapped already. With --isolation none the
 * command is unchanged. A wrapped command can be started once. */
HUTCH_EXPORT int hutch_wrap(const hutch_policy *policy, const char *const *argv, hutch_wrapped **ret, hutch_error *err);

/* NULL-terminated; lives as long as the handle. */
HUTCH_EXPORT const char *const *hutch_wrapped_argv(const hutch_wrapped *wrapped);
HUTCH_EXPORT const char *hutch_wrapped_backend(const hutch_wrapped *wrapped); /* the backend that will be taken */

/* From now on the command may be started after the handle was freed; otherwise freeing it takes back a command that was
 * not started. */
HUTCH_EXPORT void hutch_wrapped_keep(hutch_wrapped *wrapped);
HUTCH_EXPORT void hutch_wrapped_free(hutch_wrapped *wrapped);

/* What `hutch run --request FILE` does: reads a request and removes it. The policy is freed with hutch_policy_free(),
 * the command with hutch_argv_free(). */
HUTCH_EXPORT int hutch_request_open(const char *file, hutch_policy **ret_policy, char ***ret_argv, hutch_error *err);
HUTCH_EXPORT void hutch_argv_free(char **argv);
/* ---- running scripts ---- */

/* What a script left in its directory. */
typedef struct hutch_output_file {
        size_t struct_size;
        const char *path; /* beneath that directory */
        uint64_t size;
} hutch_output_file;

/* A script to run. Its streams, callbacks and limits are those of an ordinary request. */
typedef struct hutch_exec_request {
        size_t struct_size;
        const char *script; /* a file of the host; "{baseDir}" in it and in the arguments is the skill's directory */
        const char *const *args; /* NULL-terminated; NULL: none */
        const char *runtime;     /* python, node, shell or binary; NULL: by extension, else by the first line */
        const void *stdin_data;
        size_t stdin_len;
        const char *const *env;   /* as in hutch_request */
        const char *cwd;          /* a path in the box; NULL: the workspace */
        uint64_t timeout_ms;      /* 0: the policy's */
        const char *skill_dir;    /* attached read-only; NULL: none */
        const char *isolation;    /* a backend; NULL: the policy's */
        const char *origin;       /* builtin, community, untrusted: picks the isolation; NULL: the policy's */
        const char *collect;      /* a new or empty directory that the output files are copied to; NULL: none */
        const hutch_request *run; /* streams, fds, callbacks and user of the run; NULL: captured */
        hutch_context *context;   /* NULL: a separate one */
} hutch_exec_request;

/* Scans a script and runs it in a separate box, with a private writable directory as TMPDIR and HOME that is removed
 * afterwards. policy NULL: the defaults of HUTCH_PRESET_EXEC. A script that is refused is never started; then, too,
 * *ret holds a result with the findings. */
HUTCH_EXPORT int hutch_exec(const hutch_policy *policy, const hutch_exec_request *request, hutch_result **ret,
                            hutch_error *err);

typedef struct hutch_problem {
        size_t struct_size;
        char part[16]; /* script, runtime, skill, environment, isolation, limits, commands, scan, plan */
        hutch_code code;
        hutch_severity severity; /* HUTCH_CRITICAL: hutch_exec() would refuse it */
        char message[512];
} hutch_problem;

/* Everything that is wrong with a request, at once; runs nothing. *ret is NULL-terminated and freed with
 * hutch_free(). */
HUTCH_EXPORT int hutch_exec_check(const hutch_policy *policy, const hutch_exec_request *request, hutch_problem ***ret,
                                  hutch_error *err);

/* ---- the container backend's image ---- */

typedef struct hutch_image_options {
        size_t struct_size;
        const char *engine; /* "docker" or "podman"; NULL: the first that works */
        const char *image;  /* its name; NULL: "hutch-sandbox:latest", which policies use unless they name another */
        const char *file;   /* a Dockerfile, built with its directory as context; NULL: hutch's own recipe */
        const char *rootfs; /* instead of both: a directory or a tar file with a root file system; needs no registry */
        int output;         /* a descriptor for what the engine prints; 0 or -1: nowhere */
} hutch_image_options;

/* Builds the image, and waits for it: minutes, where packages are fetched. options may be NULL. */
HUTCH_EXPORT int hutch_image_build(const hutch_image_options *options, hutch_error *err);

/* ---- looking without running ---- */

/* The plan that a request would be run by, for people or as JSON; runs nothing; freed with hutch_free(). */
HUTCH_EXPORT int hutch_explain(const hutch_policy *policy, const hutch_request *request, bool json, char **ret,
                               hutch_error *err);

/* What this host can enforce, each capability tried for real, with the exact remedy for each gap; for people or as
 * JSON, freed with hutch_free(). *ret_strong: whether at least one isolating backend works. */
HUTCH_EXPORT int hutch_doctor(hutch_context *context, bool json, bool *ret_strong, char **ret, hutch_error *err);

#ifdef __cplusplus
}
#endif
#endif
