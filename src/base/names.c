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
