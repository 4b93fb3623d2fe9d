/* Version control directories (.git and its like) are applied whole or not at all.
 *
 * A commit of the box is an object, a reference to it, a log and an index: one of these without the others is a broken
 * repository. So if the host changed anything there that the box changed too (its own `git status` rewrites the index),
 * nothing of it is applied. What is held back as a protected name, a hook for example, is left out without that. */
#pragma once

#include "apply.h"

/* The length of the part of the path that is the outermost version control directory; 0: it is not in one. */
size_t unit_root(const char *path);

/* What is applied when: objects before the working tree, and what names them last, so that an apply that is killed
 * leaves a repository whose references lead to something. */
enum unit_turn { UNIT_OBJECTS, UNIT_FILES, UNIT_REFERENCES, _UNIT_TURN_MAX };
enum unit_turn unit_turn(const struct change *change);

/* Chooses the rest of each unit of which something is chosen, but no protected names. `reviewed` as in review_apply().
 */
int unit_choose(struct apply *a, const struct change_list *reviewed);

/* Settles as conflicts all changes of a unit of which one is a conflict. */
int unit_check(struct apply *a);
