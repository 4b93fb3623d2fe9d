/* The control group of one box: created before it, removed after it. */
#pragma once

#include "../plan/plan.h"

struct group;

/* Makes the group with the plan's limits set. */
int group_new(const struct plan *plan, struct group **ret, struct hutch_error *err);

/* A fd to clone into (CLONE_INTO_CGROUP), or -1: then the process is put in with group_add() before it goes on. */
int group_fd(const struct group *group);
int group_add(struct group *group, pid_t pid, struct hutch_error *err);

/* The limit that was run into since, if any. */
enum hutch_kill_reason group_check(struct group *group);

/* What the whole box used; 0 if the group does not provide it. */
void group_usage(struct group *group, double *ret_cpu_ms, uint64_t *ret_peak_memory);

/* How long processes in the box had to wait for memory (to be freed, within its limit) and for a processor; 0 if the
 * kernel does not report it. */
void group_waits(struct group *group, uint64_t *ret_memory_ms, uint64_t *ret_cpu_ms);

void group_free(struct group *group);

/* Its parts: a directory with files to write numbers into, whichever version. */
struct group_folder {
        int fd;
        char parent[3072], name[96];
};

int group_folder_make(struct group_folder *f, const char *parent, struct hutch_error *err);
void group_folder_remove(struct group_folder *f);
/* In one write or not at all: the kernel takes each write() as a whole value, and the first digits of a pid are another
 * process's pid. */
int group_write_text(int dir, const char *file, const char *text);
int group_write(const struct group_folder *f, const char *file, const char *format, ...) _printf_(3, 4);
/* The number in a file, or behind a key of it. */
bool group_read(const struct group_folder *f, const char *file, const char *key, uint64_t *ret);

/* v2: a delegated group in which this process is in a separate leaf, so that others can be created beside it. */
int scope_enter(const struct cgroup_facts *facts, char *ret, size_t room, struct hutch_error *err);
