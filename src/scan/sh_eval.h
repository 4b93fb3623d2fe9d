/* Walking a parsed script: what is known of its words before it runs. */
#pragma once

#include "scan.h"
#include "sh.h"

#define PATH_MOST 512 /* longer ones are not followed */

struct value {
        const char *s;
        size_t len;
        bool known;
        bool fetched; /* not known, because it comes from another machine */
        bool hidden;  /* not known, because a tool that is not imitated made it of constants */
};

static inline struct value known(const char *s, size_t len) {
        return (struct value){s, len, true};
}

struct process { /* <(…): its output as far as known */
        struct value output;
        bool downloads, decodes;
};

struct variable {
        const char *name;
        size_t name_len, hash;
        struct value value;
        struct value *items; /* of an array */
        size_t n_items;
        const struct sh_node *function; /* a function of that name */
        struct value alias, file;       /* an alias, or a file that the script wrote */
        const char *refers;             /* of declare -n: the variable that is meant */
        const char *later;              /* of PATH: its last value, with what is not known as \1 */
        bool is_file, is_program;
        struct value earlier[3]; /* what it was before */
};

struct fields {
        struct field *v;
        size_t n, room;
};

struct eval {
        struct scan *s;
        const struct unit *unit;
        struct arena *arena;
        struct variable **slots;
        size_t n_slots, n_variables;
        struct command *commands; /* of the pipeline that is walked */
        size_t n_commands, commands_room;
        struct field *positional;
        size_t n_positional;
        struct value input;     /* what the commands of a compound read, as far as it is known */
        const char *separators; /* of IFS, besides blanks; NULL: none */
        unsigned depth;
        size_t budget;   /* bytes that expansions may still make */
        const char *cwd; /* the directory that was entered, as far as known, from where the script begins */
        size_t cwd_len;
        const char *path;           /* what the script assigned to PATH, with what is not known as \1 */
        bool any_file, any_program; /* of the script's own making; in a directory of programs */
        bool any_tree;              /* directories with fetched files */
        size_t calls;               /* bytes of functions' bodies that may still be walked for calls of them */
};

/* Notes that something was not looked at, which a script must not get by with. Returns a value that is unknown. */
struct value eval_give_up(struct eval *ev);
struct variable *eval_variable(struct eval *ev, const char *name, size_t len, bool make);
void eval_expand(struct eval *ev, const struct sh_word *word, struct fields *out);
struct value eval_text(struct eval *ev, const struct sh_word *word, bool *ret_dynamic); /* as one field */
struct value eval_substitute(struct eval *ev, const struct sh_node *nodes);             /* $(…) */
struct value eval_list(struct eval *ev, const struct sh_node *nodes, bool capture);
void fields_add(struct eval *ev, struct fields *f, struct field field);

/* Builtins that set variables: read, mapfile, printf -v, declare -n. */
void eval_builtin(struct eval *ev, const struct command *c);
void eval_assign(struct eval *ev, const struct sh_word *word);
void eval_set_item(struct eval *ev, struct variable *var, const char *key, size_t len, struct value v);
struct variable *eval_item(struct eval *ev, const char *name, const char *key, size_t key_len, bool make);
/* Whether another walk through the same commands is still in the budget. */
bool eval_again(struct eval *ev, const struct sh_node *nodes);

/* What a command with known arguments and input prints; unknown for all but a few harmless ones. */
struct value static_output(struct eval *ev, const struct command *c, struct value input);
struct value filter_output(struct eval *ev, const struct command *c,
                           struct value input);          /* of sed, cut, head and others */
struct value unescaped(struct eval *ev, struct value v); /* as in $'…' */
void store_output(struct eval *ev, const struct command *c,
                  struct value out); /* in the files that it is redirected to */
void note_file(struct eval *ev, const char *name, size_t len, struct value content);
const struct variable *find_file(struct eval *ev, const char *name, size_t len);
/* Commands inside of a command: wrappers, interpreters with a text, scripts that were written before. */
void eval_inner_commands(struct eval *ev, struct command *c, struct value input, unsigned element, unsigned depth);
void eval_arguments(struct eval *ev, struct command *c, struct value input); /* git -c, tar --to-command, ssh -o … */
void eval_command(struct eval *ev, struct command *c, struct value input,
                  unsigned depth); /* emits it and what is in it */
void emit_pseudo(struct eval *ev, const struct command *c, const char *name);
void inner_field(struct eval *ev, const struct field *f, enum scan_language language);
void inner_value(struct eval *ev, uint32_t off, struct value v, enum scan_language language);
void eval_emit(struct eval *ev, struct command *c);
bool is_shell_name(const char *name);
bool is_fetch_name(const char *name);

/* What comes from other machines, and where it is. */
void fetch_download(struct eval *ev, const struct command *c); /* the files that it writes */
bool fetch_note(struct eval *ev, const struct command *c,
                struct value input); /* of clones and archives; whether it runs fetched code */
const struct variable *find_tree(struct eval *ev, const char *path, size_t len);
struct field find_program(struct eval *ev, const struct field *name); /* empty: none of the script's own */
struct field path_join(struct eval *ev, const char *dir, size_t dir_len, const char *name, size_t len);
bool path_from_here(const struct eval *ev, const char *path, size_t len, char ret[PATH_MOST], size_t *ret_len);
