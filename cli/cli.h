/* Declarations shared by the files of the command. The command uses only the public header.
 *
 * A verb is a row: each verb's file defines a `struct verb` with its options, and verbs.h lists them. The parser, the
 * help, the completions and the option lists of the manual are generated from these rows and contain no verb's name. To
 * add an option to one verb: a field of its options struct and a row of its option table, in its file. To add a verb:
 * its file, a line in verbs.h, a line in meson.build. Options of everything that makes a box are the library's
 * (src/policy/keys.def). */
#pragma once

#include <hutch/hutch.h>
#include <stddef.h>
#include <stdio.h>

enum { EXIT_HUTCH = 125, EXIT_NOT_FOUND = 127 };

/* One option of a verb, and where its value goes in the verb's options struct: a bool without .value, else a
 * const char *. A table ends with a row without a name. */
struct option {
        const char *name;
        char letter;
        const char *value; /* what help calls its value; NULL: a flag */
        const char *help;
        size_t offset;
        bool many; /* may be repeated: its values go to a struct values */
};

enum { VALUES_MOST = 64 };

struct values {
        const char *v[VALUES_MOST + 1]; /* NULL-terminated */
        size_t n;
};

#define OPTION_AT(type, field) .offset = offsetof(type, field)

struct invocation;

enum {
        VERB_COMMAND = 1 << 0, /* the arguments behind .max_args others are a command and its own arguments */
        VERB_QUIET = 1 << 1,   /* not listed by `hutch help` */
        VERB_RESULT = 1 << 2,  /* reports invocation.error itself, in its result */
};

struct verb {
        const char *name;
        const char *synopsis; /* what follows the name */
        const char *summary;  /* one line */
        unsigned flags;
        int min_args, max_args; /* max_args -1: any number; with VERB_COMMAND: without the command */
        unsigned box_options;   /* which of the library's options: HUTCH_OPTION_* */
        hutch_preset preset;
        const struct option *options;
        size_t size; /* of the options struct */
        int (*run)(const struct invocation *in);
        const struct verb *const *subverbs; /* NULL-terminated; such a verb has no run of its own */
        const char *page;                   /* the manual page, without "hutch-"; NULL: its name */
};

struct given { /* an option of the library's, as it was written */
        const char *name, *value;
};

struct invocation {
        const struct verb *parent, *verb; /* parent: of a subverb */
        hutch_policy *policy;
        void *options;           /* the verb's options struct */
        const char *const *args; /* NULL-terminated, never NULL */
        size_t n_args;
        const char *const *command; /* NULL: none */
        struct given *given;
        size_t n_given;
        bool help, version;
        hutch_error error; /* what is wrong with the value of a library's option */
};

extern const struct verb *const cli_verbs[]; /* NULL-terminated */
const struct verb *cli_find_verb(const struct verb *const *verbs, const char *name);
const char *cli_suggest_verb(const struct verb *const *verbs, const char *word);
bool cli_is_reserved(const char *word);

/* Reads argv. Prints what is wrong and returns -1 if it cannot be carried out. */
int cli_parse(int argc, char **argv, struct invocation *ret);
void cli_done(struct invocation *in);

/* Policy files and profiles, beneath the options; what is wrong with them is in in->error. */
void cli_load_config(struct invocation *in);

const char *cli_value(const struct invocation *in, const char *name); /* the last value of a library's option */
const char *cli_verb_name(const struct invocation *in);               /* "diff", "session run" */

void cli_help_short(FILE *to);
void cli_help(FILE *to);
void cli_help_verb(FILE *to, const struct verb *parent, const struct verb *verb);

/* A path or a name as git shows it, and how long ago something was. */
void cli_put_path(FILE *to, const char *path);
/* hutch_review_confine() with the message; 0 or -1. */
int cli_confine(const char *id, const char *dir, unsigned flags, const char *const *writable);
const char *cli_age(uint64_t created, char *text, size_t room);

/* One line on stderr, `hutch: …`, without control sequences. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Text as a JSON string, or {"base64": …} where it is not UTF-8; NULL: null. */
void cli_put_json(FILE *to, const char *text);

/* Events that a reader of stderr should see, by their severity; the others are in JSON and in `hutch explain`. */
void cli_show_event(const hutch_event *event);
void cli_show_at_once(void *user, const hutch_event *event); /* for hutch_box_options.on_event */
void cli_show_events(const hutch_event *const *events);
void cli_show_denials(const hutch_result *result); /* after a run that failed, at a terminal: a line for each host */

int cli_open_stdin(const struct invocation *in, const char *file); /* -1 after a message */

/* Whether the word is no command but a file of the current directory, which `hutch run` runs as `hutch exec` does. */
bool cli_is_script(const struct invocation *in, const char *word);
int cli_run_script(const struct invocation *in); /* the invocation's command, by the verb's own preset */

/* Why a command was not found, where that can be guessed; false: nothing was printed. */
bool cli_hint_not_found(const struct invocation *in, const char *command);

/* The work of `hutch run`, for verbs that run a command of their choice; text NULL: argv. */
int cli_run_command(const struct invocation *in, const char *const *argv);
