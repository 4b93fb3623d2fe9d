/* One scan: a text in, findings out. Pure: no files, no processes, no clock. */
#pragma once

#include "arena.h"
#include "rules.h"

struct finding {
        const char *rule, *reason, *fix, *excerpt;
        enum scan_severity severity;
        uint32_t line, column; /* from 1 */
        bool suppressed;
        const char *why; /* of the suppression */
};

/* A text that is scanned: the file, or something inside of it (an argument of sh -c, a decoded blob, a here-document).
 */
struct unit {
        const char *src;
        size_t len;
        enum scan_language language;
        uint32_t line, column; /* where it begins in the file */
        bool exact;            /* its lines are lines of the file; otherwise everything is at `line` and `column` */
        unsigned depth;
};

struct candidate {
        const struct rule *rule;
        uint32_t line, column;
};

struct scan {
        struct arena arena;
        const struct rules *rules;
        const char *src;
        size_t len;
        uint32_t *lines; /* offsets of line starts, made when the first finding comes */
        size_t n_lines;
        struct finding *findings;
        size_t n_findings, room, n_dropped;
        struct candidate *candidates;
        size_t n_candidates, candidates_room;
        const char *tags[64];
        size_t n_tags;
        size_t nested_budget; /* bytes of inner texts that may still be scanned */
        bool incomplete;
};

void scan_init(struct scan *s, const struct rules *rules);
void scan_done(struct scan *s);

/* Scans a file. `name` may be NULL. Language 0: by name and content. */
void scan_file(struct scan *s, const char *name, const char *text, size_t len, unsigned language);

unsigned scan_detect(const char *name, const char *text, size_t len); /* 0: unknown */

/* ---- inside ---- */
void scan_unit(struct scan *s, const struct unit *unit);
void scan_shell(struct scan *s, const struct unit *unit);
void scan_code(struct scan *s, const struct unit *unit); /* Python and JavaScript */
void scan_other(struct scan *s, const struct unit *unit);
void scan_markdown(struct scan *s, const struct unit *unit);
void scan_manifest(struct scan *s, const struct unit *unit);

/* A separate text inside of a unit. `off`: where it begins in `outer`; exact: it is there verbatim. */
void scan_inner(struct scan *s, const struct unit *outer, size_t off, const char *text, size_t len,
                enum scan_language language, bool exact);

void scan_add(struct scan *s, const struct unit *unit, size_t off, const struct rule *rule);
void scan_note(struct scan *s, const struct unit *unit, size_t off, const char *rule, enum scan_severity severity,
               const char *reason, const char *fix);
size_t scan_decode_base64(const char *s, size_t len, char *out); /* out: at least len bytes; 0: not base64 */

/* ---- what rules are matched against ---- */
struct field {
        const char *s;
        size_t len;
        uint32_t off;
        bool dynamic;                  /* parts that are not known are \1 */
        bool glob, odd;                /* odd: its characters were escaped one by one, which is unusual in real scripts
                                        */
        const struct process *process; /* <(…) */
};

struct redirect {
        struct field target;
        bool write, read, append;
};

struct command {
        const char *name; /* without the directory */
        struct field *argv;
        size_t argc;
        struct redirect *redirs;
        size_t n_redirs;
        unsigned element; /* of the pipeline */
        uint32_t off;
        bool glob, function; /* function: one of the script's own */
};

void match_pipeline(struct scan *s, const struct unit *unit, const struct command *commands, size_t n);
void match_string(struct scan *s, const struct unit *unit, size_t off, const char *text, size_t len);
void match_assignment(struct scan *s, const struct unit *unit, size_t off, const char *text, size_t len);
void match_text(struct scan *s, const struct unit *unit);
void match_import(struct scan *s, const struct unit *unit, size_t off, const char *module);
void match_value(struct scan *s, const struct unit *unit, size_t off, const char *name);
/* args: the arguments as normalised text; strings: those that are constant. */
void match_call(struct scan *s, const struct unit *unit, size_t off, const char *name, const char *args,
                size_t args_len, const struct field *strings, size_t n_strings, bool dynamic);
