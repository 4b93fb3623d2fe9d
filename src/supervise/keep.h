/* Carries over what a box saves of its copies of the host's files; see keep.c. */
#pragma once

#include "run.h"

struct keep;

/* Before the launch: reads the host's files. *ret is NULL where the plan has none; *ret_texts is for init. 0 or
 * -ENOMEM. */
int keep_start(struct run *run, struct keep **ret, const struct kept_text **ret_texts);
void keep_take_home(struct keep *k, int home); /* takes the descriptor */
void keep_finish(struct keep *k);              /* when nothing of the box runs any more */
void keep_free(struct keep *k);
