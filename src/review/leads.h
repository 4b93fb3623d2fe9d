/* Where the host's protected names lead: files and folders of the tree under other names, which are just as dangerous.
 */
#pragma once

#include "review.h"

/* Absolute paths beneath the folder that is reviewed as a whole: what a protected name at its top leads to by a link
 * (`.git/hooks` → `hooks`), and what its `.git/config` names as core.hooksPath or include.path. The host's word alone
 * counts: a box cannot take a name from this list by changing the link in its layer. */
int leads_find(const struct review_pair *pair, char ***ret);
