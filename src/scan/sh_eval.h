/* Walking a parsed script: what is known of its words before it runs. */
#pragma once

#include "scan.h"
#include "sh.h"

struct value {
        const char *s;
        size_t len;
        bool known;
        bool fetched; /* not known, because it comes from another machine */
};

struct process { /* <(…): its output as far as known */
        struct value output;
        bool downloads, decodes;
};

struct variable {
        const char *name;
        struct value value;
        struct value *items; /* of an array */
        size_t n_items;
        const struct sh_node *function; /* a function of that name */
        struct value alias, file;       /* an alias, or a file that the script wrote */
        bool downloaded;
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
        unsigned depth;
        size_t budget; /* bytes that expansions may still make */
        size_t calls;  /* bytes of functions' bodies that may still be walked for calls of them */
};

/* Notes that something was not looked at, which a script must not get by with. Returns a value that is unknown. */
struct value eval_give_up(struct eval *ev);
struct variable *eval_variable(struct eval *ev, const char *name, size_t len, bool make);
void eval_expand(struct eval *ev, const struct sh_word *word, struct fields *out);
struct value eval_text(struct eval *ev, const struct sh_word *word, bool *ret_dynamic); /* as one field */
struct value eval_list(struct eval *ev, const struct sh_node *nodes, bool capture);
void fields_add(struct eval *ev, struct fields *f, struct field field);

/* What a command with known arguments and input prints; unknown for all but a few harmless ones. */
struct value static_output(struct eval *ev, const struct command *c, struct value input);
/* Commands inside of a command: wrappers, interpreters with a text, scripts that were written before. */
void eval_inner_commands(struct eval *ev, struct command *c, struct value input, unsigned element, unsigned depth);
void eval_emit(struct eval *ev, struct command *c);
bool is_shell_name(const char *name);
bool is_fetch_name(const char *name);
