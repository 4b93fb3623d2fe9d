/* What depends on the shell that a session runs: bash (bash.c), or a plain sh (plain.c).
 *
 * The shell is sent lines and answers with records that end with a NUL byte and begin with SHELL_MARK, a kind, and a
 * number. A run is two lines: an interrupt makes the shell drop the rest of the line that it reads, and the second one
 * is the answer. The number distinguishes an answer from a late one. What is sent to an idle shell begins with an empty
 * line, which a late interrupt, or data that a text wrote into the shell's own pipe, may corrupt. */
#pragma once

#include "../base/buf.h"

#define SHELL_MARK '\1'
#define DIALECT_END "# end\n"                    /* the last line of a whole dump */
#define DIALECT_BEHIND "builtin unset -f trap\n" /* the line behind the variables in a dump of bash */

struct dialect_run {
        const char *channel; /* the directory of the texts and FIFOs */
        unsigned long number;
        unsigned pair;
        const char *text;
        bool with_env;     /* the text "env" in place of "run", which runs it with variables */
        long stdin_number; /* < 0: no stdin */
        int last_status;   /* what the text finds in $? */
        const char *state; /* the last dump, or NULL */
};

struct dialect {
        const char *prelude; /* the text that the shell begins with */
        int answers;         /* the descriptor on which it answers */
        const char *print;   /* its printf, whatever the box named so; and so on */
        const char *source, *unset, *exit;
        bool by_name;    /* reads its lines from a FIFO by name, not from stdin */
        bool interrupts; /* SIGINT ends what it runs and not the shell itself */
        bool history;
        void (*put_run)(struct buf *b, const struct dialect_run *run);
        void (*put_env)(struct buf *b, const char *channel, const char *env, size_t len);
        void (*put_state)(struct buf *b, const char *dump, size_t len); /* a dump as a new shell can read it */
        void (*put_visitor)(struct buf *b, const char *channel, const struct buf *history);
};

extern const struct dialect dialect_bash, dialect_plain;

const struct dialect *dialect_of(const char *path);

/* The lines before any other: the prelude, and the state if there is one. */
void dialect_put_beginning(struct buf *b, const struct dialect *d, const char *channel, const char *state);
void dialect_put_answer(struct buf *b, const struct dialect *d, unsigned long number);
void dialect_put_dump(struct buf *b, const struct dialect *d);

/* A word that the shell reads as exactly these bytes. */
void dialect_put_quoted(struct buf *b, const char *text, size_t len);
void dialect_put_assignments(struct buf *b, const char *env, size_t len);

/* A dump without the variables of these names. */
void dialect_put_without(struct buf *b, const char *state, size_t len, char *const *names);

/* Parts of put_run() that both use: the text with its streams, and the answer. */
void dialect_put_source(struct buf *b, const struct dialect *d, const struct dialect_run *run);
/* `status`: the answer if the text reports no status. */
void dialect_put_outputs(struct buf *b, const struct dialect *d, const struct dialect_run *run, const char *status);
