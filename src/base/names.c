/* The names of public enums, as JSON, policy files and options spell them. What is out of range is "unknown". */
#include <hutch/hutch.h>

#include "macro.h"

#define NAME_OF(names, value) ((size_t) (value) < ARRAY_SIZE(names) && (names)[value] ? (names)[value] : "unknown")

const char *hutch_severity_name(hutch_severity severity) {
        static const char *const names[] = {[HUTCH_INFO] = "info",
                                            [HUTCH_NOTICE] = "notice",
                                            [HUTCH_WARNING] = "warning",
                                            [HUTCH_CRITICAL] = "critical"};

        return NAME_OF(names, severity);
}

const char *hutch_event_kind_name(hutch_event_kind kind) {
        static const char *const names[] = {[HUTCH_EVENT_NOTICE] = "notice",
                                            [HUTCH_EVENT_DENIAL] = "denial",
                                            [HUTCH_EVENT_FINDING] = "finding",
                                            [HUTCH_EVENT_PUBLISHED] = "published"};

        return NAME_OF(names, kind);
}

const char *hutch_guarantee_name(hutch_guarantee guarantee) {
        static const char *const names[] = {
                [HUTCH_G_FILESYSTEM] = "filesystem",
                [HUTCH_G_NETWORK] = "network",
                [HUTCH_G_PROCESSES] = "processes",
                [HUTCH_G_SYSCALLS] = "syscalls",
                [HUTCH_G_IPC] = "ipc",
                [HUTCH_G_PROTECTED] = "protected",
                [HUTCH_G_MEMORY] = "memory",
                [HUTCH_G_CPU] = "cpu",
                [HUTCH_G_PIDS] = "pids",
                [HUTCH_G_DISK] = "disk",
        };

        return NAME_OF(names, guarantee);
}

const char *hutch_enforcement_name(hutch_enforcement enforcement) {
        static const char *const names[] = {
                [HUTCH_NOT_REQUESTED] = "not_requested", [HUTCH_ENFORCED] = "enforced", [HUTCH_DEGRADED] = "degraded"};

        return NAME_OF(names, enforcement);
}

const char *hutch_kill_reason_name(hutch_kill_reason reason) {
        static const char *const names[] = {
                [HUTCH_NOT_KILLED] = "none",      [HUTCH_KILLED_TIMEOUT] = "timeout",
                [HUTCH_KILLED_MEMORY] = "memory", [HUTCH_KILLED_CPU] = "cpu",
                [HUTCH_KILLED_PIDS] = "pids",     [HUTCH_KILLED_OUTPUT] = "output",
                [HUTCH_KILLED_DISK] = "disk",     [HUTCH_KILLED_SIGNAL] = "signal",
                [HUTCH_KILLED_POLICY] = "policy", [HUTCH_KILLED_CANCELLED] = "cancelled",
        };

        return NAME_OF(names, reason);
}

const char *hutch_preset_name(hutch_preset preset) {
        static const char *const names[] = {
                [HUTCH_PRESET_API] = "api",
                [HUTCH_PRESET_RUN] = "run",
                [HUTCH_PRESET_SESSION] = "session",
                [HUTCH_PRESET_EXEC] = "exec",
        };

        return NAME_OF(names, preset);
}

const char *hutch_access_name(hutch_access access) {
        static const char *const names[] = {
                [HUTCH_READ] = "read",   [HUTCH_WRITE] = "write", [HUTCH_COW] = "cow",       [HUTCH_HIDE] = "hide",
                [HUTCH_TMPFS] = "tmpfs", [HUTCH_DEVICE] = "dev",  [HUTCH_SOCKET] = "socket",
        };

        return NAME_OF(names, access);
}

const char *hutch_limit_name(hutch_limit limit) {
        static const char *const names[] = {
#define LIMIT(id, name, field, key, guarantee, label, unit, json) [HUTCH_LIMIT_##id] = name,
#include "limits.def"
#undef LIMIT
        };

        return NAME_OF(names, limit);
}

const char *hutch_trust_state_name(hutch_trust_state state) {
        static const char *const names[] = {
                [HUTCH_TRUST_NOTHING] = "nothing",
                [HUTCH_TRUST_GIVEN] = "given",
                [HUTCH_TRUST_NEW] = "new",
                [HUTCH_TRUST_CHANGED] = "changed",
        };

        return NAME_OF(names, state);
}

const char *hutch_warden_name(hutch_warden warden) {
        static const char *const names[] = {
                [HUTCH_WARDEN_PROCESS] = "process",
                [HUTCH_WARDEN_SELF] = "self",
        };

        return NAME_OF(names, warden);
}

const char *hutch_stream_name(hutch_stream stream) {
        static const char *const names[] = {
                [HUTCH_STREAM_DEFAULT] = "default", [HUTCH_STREAM_NONE] = "none", [HUTCH_STREAM_CAPTURE] = "capture",
                [HUTCH_STREAM_DATA] = "data",       [HUTCH_STREAM_FD] = "fd",     [HUTCH_STREAM_CALLBACK] = "callback",
        };

        return NAME_OF(names, stream);
}

const char *hutch_change_kind_name(hutch_change_kind kind) {
        static const char *const names[] = {
                [HUTCH_CREATED] = "created",
                [HUTCH_MODIFIED] = "modified",
                [HUTCH_DELETED] = "deleted",
        };

        return NAME_OF(names, kind);
}

const char *hutch_apply_status_name(hutch_apply_status status) {
        static const char *const names[] = {
                [HUTCH_APPLIED] = "applied", [HUTCH_HELD_BACK] = "held_back", [HUTCH_CONFLICT] = "conflict",
                [HUTCH_NEVER] = "never",     [HUTCH_DEPENDS] = "depends",     [HUTCH_FAILED] = "failed",
        };

        return NAME_OF(names, status);
}
