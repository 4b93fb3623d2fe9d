/* Copies of what the host would run later, for boxes that have no mount namespace to keep it read-only: see kept.c. */
#pragma once

#include "../plan/plan.h"

struct kept;

struct kept_user {
        void *data;
        void (*report)(void *data, const char *path, const char *text); /* something was put right, or could not be */
        void (*give_up)(void *data, const char *path);                  /* it goes on and on */
};

/* *ret is NULL where the plan has nothing of that kind. */
int kept_new(const struct plan *plan, const struct kept_user *user, struct kept **ret);
void kept_free(struct kept *kept);

/* Whether a change of that name may be one of what is kept. */
bool kept_concerns(const struct kept *kept, const char *path);
/* Whether it is one of the kept paths, or beneath one. */
bool kept_holds(const struct kept *kept, const char *path);
/* The directories to watch, absolute, NULL-terminated. */
char *const *kept_directories(const struct kept *kept);

/* Compares everything with its copy and restores what differs. */
void kept_check(struct kept *kept);
/* The same when the box has ended: however much it changed. */
void kept_finish(struct kept *kept);
