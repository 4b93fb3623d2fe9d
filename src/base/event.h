/* Events: what hutch reports beside a command's output, each a record with a stable code.
 *
 * They travel as messages from init to the warden to the library, in the order in which they happened, and end in the
 * lists of the result. The code and the severity decide what a front end does with one; nothing ever compares texts. A
 * new notice is a row of NOTICES here and a call of events_note() at the place that finds it out. */
#pragma once

#include <hutch/hutch.h>

#include "macro.h"
#include "wire.h"

/* Severity: INFO is for programs and on request (JSON, explain), NOTICE for a person at a terminal, WARNING for
 * everybody. */
#define NOTICES(X)                                                                                                     \
        X(GUARANTEE_DEGRADED, "guarantee_degraded",                                                                    \
          INFO)                                   /* subject: the guarantee; this host or backend gives it in part */  \
        X(BACKEND_CHOSEN, "backend_chosen", INFO) /* subject: the backend that auto took in place of the strongest */  \
        X(GROUPS_KEPT, "groups_kept", INFO)       /* supplementary groups cannot be dropped */                         \
        X(VARIABLE_BLOCKED, "variable_blocked", INFO) /* subject: a variable that was not passed into the box */       \
        X(COMMAND_SHARED, "command_shared", NOTICE)   /* subject: a denied program that has other names too */         \
        X(MOUNT_READ_ONLY, "mount_read_only", NOTICE) /* subject: a mount inside of a copy-on-write directory */       \
        X(MOUNT_HIDDEN, "mount_hidden", NOTICE)       /* subject: the same, neither a file nor a directory */          \
        X(COW_SPLIT, "cow_split", NOTICE) /* subject: a directory whose parts are copy-on-write each by itself */      \
        X(COW_COPIED, "cow_copied", INFO) /* subject: a directory whose files were copied into memory */               \
        X(COW_LEFT_OUT, "cow_left_out", NOTICE) /* subject: the first of the files that a private copy is without */   \
        X(COW_FOREIGN_GROUP, "cow_foreign_group",                                                                      \
          NOTICE) /* subject: a directory of a group that the box does not have */                                     \
        X(COW_IN_MEMORY, "cow_in_memory",                                                                              \
          WARNING) /* subject: a directory whose changes are lost with the box, or NULL: all */                        \
        X(SYSTEM_PREPARED, "system_prepared", NOTICE) /* making the system copy-on-write takes more than a second */   \
        X(SYSTEM_READ_ONLY, "system_read_only",                                                                        \
          INFO) /* subject: a system directory that is not copy-on-write, or NULL: all */                              \
        X(GIT_NOT_ATTACHED, "git_not_attached",                                                                        \
          NOTICE) /* subject: a git directory outside of the workspace that does not name it in return */              \
        X(GIT_READ_ONLY, "git_read_only",                                                                              \
          NOTICE) /* subject: a git directory outside of the workspace that the box can only read */                   \
        X(TOOLCHAIN_ATTACHED, "toolchain_attached",                                                                    \
          INFO)                                 /* subject: a directory of the home that programs of PATH live in */   \
        X(PROFILE_MADE, "profile_made", NOTICE) /* subject: a file or directory of the profile's, made for it */       \
        X(PROFILE_NOT_KEPT, "profile_not_kept",                                                                        \
          WARNING)                                   /* subject: a file that is saved in the box and lost with it */   \
        X(KEPT_NOT_SAVED, "kept_not_saved", WARNING) /* subject: a file that the box saved and the host did not get */ \
        X(PROTECTED_MADE, "protected_made", WARNING) /* subject: a name that the host would run, now in quarantine */  \
        X(PROTECTED_REPLACED, "protected_replaced", INFO) /* subject: a protected file that the host replaced */       \
        X(HIDDEN_REPLACED, "hidden_replaced",                                                                          \
          WARNING) /* subject: a hidden path that the host replaced; masked again */                                   \
        X(REPOSITORY_MADE, "repository_made", NOTICE)  /* subject: a .git that the box made */                         \
        X(GUARD_MISSING, "guard_missing", INFO)        /* protected names cannot be watched */                         \
        X(HOST_NAME_KEPT, "host_name_kept", INFO)      /* a filter around hutch refuses to name the box */             \
        X(TOOLS_MISSING, "tools_missing", INFO)        /* hutch's tools for package managers are not installed */      \
        X(NETWORK_MISSING, "network_missing", WARNING) /* the command failed, and may have missed the network */       \
        X(RELAY_ENDED, "relay_ended", WARNING)         /* the process that carries the box's traffic is gone */        \
        X(HOST_UNREACHED, "host_unreached", NOTICE)    /* subject: an allowed host that did not accept a connection */ \
        X(RESOLVER_SILENT, "resolver_silent", NOTICE) /* subject: a name that the host's servers did not answer for */ \
        X(CREDENTIAL_FAILED, "credential_failed",                                                                      \
          NOTICE)                                     /* subject: a host that a credential could not be used with */   \
        X(DENIALS_CUT, "denials_cut", NOTICE)         /* not every refusal is in the list */                           \
        X(NETWORK_OPEN, "network_open", NOTICE)       /* the box uses the host's network */                            \
        X(NETWORK_TCP, "network_tcp", INFO)           /* what an allowlist without a network namespace carries */      \
        X(LIMIT_WAITED, "limit_waited", INFO)         /* subject: the limit that made the run clearly longer */        \
        X(SHELL_RESTARTED, "shell_restarted", NOTICE) /* the session's shell was started again */                      \
        X(BOX_RESTARTED, "box_restarted", NOTICE)     /* the session's box was started again */                        \
        X(LATE_OUTPUT, "late_output", NOTICE)         /* background jobs of earlier runs printed something */          \
        X(POLICY_INVALID, "policy_invalid", WARNING)  /* subject: where in a policy file something is wrong */         \
        X(PATH_LEFT_OUT, "path_left_out", WARNING)    /* subject: a path of a .jail file that does not exist */        \
        X(PROFILE_USED, "profile_used", NOTICE)       /* subject: a profile, chosen by the command's name */           \
        X(WORKSPACE_UNTRUSTED, "workspace_untrusted",                                                                  \
          WARNING) /* subject: the workspace's own policy file, of which only restrictions apply */                    \
        X(WORKSPACE_REFUSED, "workspace_refused",                                                                      \
          WARNING) /* subject: the workspace's own policy file, which is not read at all */                            \
        X(DOCKER, "docker",                                                                                            \
          WARNING)                /* subject: the engine's socket or host, which the box can use or could not get */   \
        X(GUESS, "guess", NOTICE) /* subject: a path or profile; why the command may have failed */                    \
        X(FIRST_RUN, "first_run", NOTICE)           /* what a box can do, once on a host */                            \
        X(EVENTS_DROPPED, "events_dropped", NOTICE) /* there were more events than a result holds */

enum notice {
#define NOTICE_CODE(name, code, severity) NOTICE_##name,
        NOTICES(NOTICE_CODE)
#undef NOTICE_CODE
                NOTICE_COUNT,
};

#define EVENTS_MOST 1000         /* in one list; a box that causes more is not worth more memory */
#define EVENT_TEXT_MOST 4096     /* of each text in an event */
#define EVENT_ENCODED_MOST 32768 /* so that one always fits */

struct events {                     /* zero-initialised is empty */
        struct hutch_event **items; /* NULL-terminated, NULL if there are none */
        size_t n, dropped;
};

/* A list that holds the same event already stays as it is. 0 or -ENOMEM. */
int events_add(struct events *events, const struct hutch_event *event);
int events_add_all(struct events *events, const struct events *more);

/* Adds a notice. `subject` is what it is about, `fix` what to type or do about it; both may be NULL. */
int events_note(struct events *events, enum notice code, const char *subject, const char *fix, const char *format, ...)
        _printf_(5, 6);
void events_done(struct events *events);

/* The same as a record that is not in a list; room is for its text. */
struct hutch_event event_notice(enum notice code, const char *subject, const char *fix, const char *text);
const char *notice_name(enum notice code);

void event_put(struct buf *b, const struct hutch_event *event);
int event_get(struct wire_reader *r, struct hutch_event **ret); /* 0, -EBADMSG or -ENOMEM */
void event_free(struct hutch_event *event);
void event_freep(struct hutch_event **event);

void events_put(struct buf *b, const struct events *events);
int events_get(struct wire_reader *r, struct events *ret);
