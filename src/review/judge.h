/* Which changes are protected: judged by what the host would have after applying, whatever made it so. */
#pragma once

#include "review.h"
#include "view.h"

/* Sets is_protected, is_special and note. */
int judge_change(struct view *view, struct change *change);
