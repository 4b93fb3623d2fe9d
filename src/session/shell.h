/* What is said to a session's shell and heard from it.
 *
 * What it says are words that end with a NUL byte. Those of ours begin with SHELL_MARK, a kind, and a number; a word
 * without the mark is what a builtin printed: it prints no such bytes. */
#pragma once

#include "../base/buf.h"

#define SHELL_MARK '\1'

struct shell_kind {
        const char *prelude; /* a text of ours that the shell begins with */
        bool is_bash;
        int answers;       /* the fd on which it answers; bash, on its stdout, too */
        const char *print; /* its printf, whatever a person named so; and so on */
        const char *source;
        const char *unset;
        const char *exit;
        bool reads_ahead; /* it reads lines before it needs them, and an interrupt throws them away */
};

const struct shell_kind *shell_kind_of(const char *path);

/* What a bash begins with: the streams for plain words, which it holds itself and no program inherits. */
void shell_put_streams(struct buf *b, const struct shell_kind *kind);

/* The lines that make the shell run the text "run" of the channel; with_env: the text "env" in its place, which runs it
 * with variables. stdin_number < 0: no stdin. The text finds last_status in $?. talks: traps or options that print
 * around each command. */
void shell_put_run(struct buf *b, const struct shell_kind *kind, unsigned long number, unsigned pair, const char *text,
                   bool talks, bool with_env, long stdin_number, int last_status);
/* The same for plain words that need neither a file of their own nor stdin: of a builtin, which prints in front of the
 * answer, and of a program, which gets its streams in its own process. CHANNEL_NO_PAIR: those that the shell holds. */
void shell_put_builtin(struct buf *b, const struct shell_kind *kind, unsigned long number, const char *text,
                       bool complains);
void shell_put_program(struct buf *b, const struct shell_kind *kind, unsigned long number, unsigned pair,
                       const char *text);

/* The last of what a shell begins with: it says that it has done all that. */
void shell_put_ready(struct buf *b, const struct shell_kind *kind);

/* The answer alone, once more; a shell that gave it already gives it twice. */
void shell_put_answer(struct buf *b, const struct shell_kind *kind, unsigned long number);
void shell_put_dump(struct buf *b, const struct shell_kind *kind);

/* A word that the shell reads as exactly these bytes. */
void shell_put_quoted(struct buf *b, const char *text, size_t len);

/* The text "env": assignments in front of the text "run". */
void shell_put_env(struct buf *b, const struct shell_kind *kind, const char *env, size_t len);

/* A dump without the variables of these names. */
void shell_put_without(struct buf *b, const char *state, size_t len, char *const *names);

/* A dump as a new shell can read it: without what only the old one could be. */
void shell_put_state(struct buf *b, const char *dump, size_t len);
