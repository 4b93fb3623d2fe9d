/* Scan rules: data/scan-rules.yaml and rules of the user, in the same form; see hutch-scan(1).
 *
 * A rule has one or more shapes; it fires where any of them fits. All conditions of a shape must hold. Patterns are
 * PCRE2, with match limits: one that gives up counts as a match, because a text that defeats a rule is no reason to
 * trust it. */
#pragma once

#include "../base/error.h"

enum scan_language {
        LANG_SHELL = 1,
        LANG_PYTHON = 2,
        LANG_JAVASCRIPT = 4,
        LANG_OTHER = 8, /* perl, ruby, php, lua, awk, …: patterns over the text alone */
        LANG_MARKDOWN = 16,
        LANG_MANIFEST = 32,
        LANG_ALL = 15,
};

enum scan_severity { SEVERITY_INFO, SEVERITY_WARN, SEVERITY_CRITICAL };

struct regex;

struct shape {
        struct rule *rule;
        char **command, **other, **option, **without, **into, **from; /* commands of the shell */
        char **call, **import, **value; /* calls, modules, and functions that are not called but handed on */
        char **contains;                /* for `string` and `text`: one of these must be in it */
        struct regex *argument, *arguments, *string, *write, *read, *assign, *text;
        int dynamic; /* 1: an argument is not known before the run; -1: all are */
};

struct rule {
        char *id, *reason, *fix, *tag;
        char **requires; /* fires only where all of these tags were set in the same file */
        enum scan_severity severity;
        unsigned languages;
        struct shape *shapes;
        size_t n_shapes;
        bool silent; /* sets its tag, reports nothing */
};

struct rules {
        struct rule **items;
        size_t n;
        struct shape_index *commands, *calls, *imports, *values;
        struct shape **strings, **texts, **any_command, **assigns;
        size_t n_strings, n_texts, n_any_command, n_assigns;
        struct needles *needles;
        bool jit;
};

int rules_new(bool jit, struct rules **ret, struct hutch_error *err);
int rules_add_yaml(struct rules *rules, const char *name, const char *text, size_t len, struct hutch_error *err);
int rules_finish(struct rules *rules, struct hutch_error *err); /* builds the indexes */
void rules_free(struct rules *rules);

bool regex_matches(const struct regex *regex, const char *s, size_t len, size_t *ret_at);

/* The shapes that name this command, call or module. */
struct shape *const *rules_find(const struct shape_index *index, const char *name, size_t *ret_n);

/* Calls `found` for every `string` shape whose literals are in the text (those without literals are always called). */
void rules_each_string(const struct rules *rules, const char *s, size_t len,
                       void (*found)(void *data, const struct shape *shape), void *data);
