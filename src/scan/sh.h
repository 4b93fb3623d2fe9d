/* The shell lexer and parser: text of POSIX sh or bash → a tree of commands.
 *
 * It accepts what `bash -n` accepts (and extended globs always, as scripts switch them on while they run). A syntax
 * error does not end the parse: a shell has run every line before it, so the commands read so far stay and reading goes
 * on with the next line. Nothing is ever executed. */
#pragma once

#include <stdint.h>

#include "arena.h"

enum sh_part_kind {
        PART_TEXT,    /* decoded text */
        PART_VAR,     /* $x, ${x…}: name, op, arg */
        PART_COMMAND, /* $(…): nodes */
        PART_TICKS,   /* `…`: text still to be parsed */
        PART_PROCESS, /* <(…) or >(…): nodes */
        PART_ARITH,   /* $((…)) */
};

struct sh_part {
        enum sh_part_kind kind;
        bool quoted;    /* inside double or single quotes, or escaped: no field splitting */
        bool escaped;   /* text that came out of $'…' or of a backslash */
        bool glob;      /* unquoted text with * ? [ */
        char op;        /* of ${x…}: 0 - = ? + : # % / ^ , ! (indirect) L (length) @ */
        char direction; /* of <(…): '<' or '>' */
        uint32_t off;   /* where the text begins */
        const char *text;
        size_t len;
        const char *index; /* of ${x[index]}, NULL: none */
        struct sh_word *arg;
        struct sh_node *nodes;
        struct sh_part *next;
};

struct sh_word {
        uint32_t off, end; /* in the source */
        struct sh_part *parts;
        struct sh_word *next;
        struct sh_word *array;        /* of NAME=(…) */
        uint32_t name_len;            /* of an assignment: the length of NAME, else 0 */
        bool append, is_array, plain; /* plain: one unquoted text */
        const char *raw;
};

enum sh_redir_op { REDIR_READ, REDIR_WRITE, REDIR_BOTH, REDIR_DUP, REDIR_HERE, REDIR_STRING };

struct sh_redir {
        enum sh_redir_op op;
        int fd;      /* -1: by the operator; -2: {name} */
        bool both;   /* &> and >& */
        bool append; /* >> */
        struct sh_word *target;
        const char *body; /* of a here-document */
        size_t body_len;
        uint32_t body_off;
        bool body_quoted, strip_tabs;
        struct sh_redir *next, *pending_next;
};

enum sh_node_kind { NODE_SIMPLE, NODE_COMPOUND, NODE_FUNCTION, NODE_FOR, NODE_CASE, NODE_TEST, NODE_ARITH };

struct sh_node {
        enum sh_node_kind kind;
        uint32_t off, end;
        struct sh_node *next, *pipe_next, *body;
        struct sh_word *words, *assigns; /* of for: the items */
        struct sh_redir *redirs;
        const char *name; /* of a function or a for loop */
        bool background, subshell;
};

struct sh_parse {
        struct arena *arena;
        const char *src;
        size_t len, pos;
        uint32_t base; /* what is added to places in src for those in the source that it is part of */
        struct sh_redir *pending, **pending_tail; /* here-documents whose bodies follow the line */
        unsigned depth;
        bool failed;    /* the construct that is being read is void */
        bool has_error; /* there was a syntax error, the first one is: */
        uint32_t error_off;
        const char *error;
        unsigned lists;      /* nested ones that are being read */
        size_t top;          /* where the outermost command began that is being read */
        bool too_deep;       /* something in it was not read */
        bool gave_up;        /* too many errors: the rest was not read */
        uint64_t look_ahead; /* budget of bytes to look ahead for ends of arithmetic */
};

/* Parses everything; errors are in p->error. The text must stay; it begins at `base` in the source. */
struct sh_node *sh_parse(struct sh_parse *p, struct arena *arena, const char *src, size_t len, uint32_t base);

/* A text as inside of double quotes (`"` is an ordinary character), for bodies of here-documents. */
struct sh_word *sh_parse_quoted(struct arena *arena, const char *src, size_t len, uint32_t base);

/* ---- between the files of the parser ---- */
enum sh_word_mode { WORD_NORMAL, WORD_CASE, WORD_COND, WORD_REGEX, WORD_ARRAY };

int sh_fail(struct sh_parse *p, const char *why); /* always -1 */
void sh_too_deep(struct sh_parse *p);
struct sh_word *sh_read_word(struct sh_parse *p, enum sh_word_mode mode);
struct sh_node *sh_read_list_until(struct sh_parse *p, char closing);
void sh_skip_blanks(struct sh_parse *p);
void sh_skip_lines(struct sh_parse *p);                  /* blanks, comments and newlines */
void sh_end_line(struct sh_parse *p);                    /* after a newline: the bodies of here-documents */
bool sh_skip_arith(struct sh_parse *p, size_t *ret_end); /* at the text behind "((": where its "))" is */
