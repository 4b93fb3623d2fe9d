/* What a command's text can do to the shell that runs it, as far as its words tell.
 *
 * After a run the shell's state must be known before the next can end the shell without a word (exec, kill -9); but
 * asking for it takes longer than most builtins. So it is asked for when the shell is idle, and before a run only when
 * something changed that is not known yet and the text may end the shell. This is about time alone: a text that is not
 * plainly harmless counts as harmful. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct verdict {
        bool changes; /* it may change what the shell remembers */
        bool may_end; /* it may end the shell before that can be asked for */
        enum words {
                WORDS_ANY,
                WORDS_SILENT,  /* plain ones: nothing in them but what a builtin gets that never complains */
                WORDS_BUILTIN, /* or one that may */
                WORDS_PROGRAM, /* or a program's */
        } words;
};

/* `names` is from judge_names() of the last dump if that is up to date, else NULL: they may stand before commands. */
struct verdict session_judge(const char *text, size_t len, const char *names);

/* The lines of a dump that session_judge() looks at: a dump is long, and most of it never matters. `before` are those
 * of the same shell's last dump, or NULL. NULL: no memory. */
char *judge_names(const char *state, const char *before);
