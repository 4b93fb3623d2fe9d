/* What is hidden in directories that are attached. */
#pragma once

#include "plan.h"

/* What was hidden inside of a directory stays hidden where the directory is attached once more. */
int hide_again(struct plan *plan, const struct plan_input *in, size_t rule, const char *place);
/* A process that can connect to one of these acts outside of the box. `place` is where the directory `real` is
 * attached. */
int hide_sockets(struct plan *plan, const struct plan_input *in, const char *real, const char *place);
/* In everything that has been attached so far. */
int hide_all_sockets(struct plan *plan, const struct plan_input *in);
/* The host can replace what it hides from the box, except under a layer: the path there is for src/supervise/masks.c.
 */
int hide_note_sources(struct plan *plan, const struct plan_input *in);
