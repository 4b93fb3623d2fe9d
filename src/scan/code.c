/* Python and JavaScript: which functions are called, by their real names, with which constant arguments.
 *
 * Names are followed through imports, assignments, getattr(), subscripts and the usual ways to reach a builtin; strings
 * through concatenation and decoding. A value that is the result of a call has the call's name: after `s =
 * socket.socket()` the call `s.connect()` is socket.socket.connect. */
#include "code_names.h"

#include <string.h>

/* ---- calls ---- */

/* Functions that hand a text to a shell, or run a program. */
static bool runs_commands(const char *name) {
        static const char *const prefixes[] = {"os.system",
                                               "os.popen",
                                               "os.exec",
                                               "os.spawn",
                                               "os.posix_spawn",
                                               "subprocess.",
                                               "child_process.",
                                               "pty.spawn",
                                               "commands.get",
                                               "asyncio.create_subprocess",
                                               "Bun.spawn",
                                               "Deno.Command",
                                               "Deno.run",
                                               "execa",
                                               "shelljs.exec",
                                               "popen2.",
                                               "platform.popen",
                                               "pydoc.pipepager",
                                               "pydoc.tempfilepager",
                                               "posix.system",
                                               "webbrowser.get",
                                               "sh."};

        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
                if (name[0] == prefixes[i][0] && strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
                        return true;
        return false;
}

static bool evaluates(const char *name) {
        static const char *const names[] = {"eval",
                                            "exec",
                                            "Function",
                                            "compile",
                                            "vm.runInNewContext",
                                            "vm.runInThisContext",
                                            "vm.runInContext",
                                            "vm.Script",
                                            "setTimeout",
                                            "setInterval",
                                            "execScript"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        return false;
}

#define STRINGS_MOST 256

struct arguments {
        struct field strings[STRINGS_MOST];
        size_t n;
        struct text text;
        bool dynamic;
        struct constant first;
        size_t first_token;
};

/* The list that a name is bound to; 0: none. */
static size_t list_of(struct code *c, size_t i) {
        const struct binding *b = code_tok(c, i)->kind == TOKEN_NAME && !code_is_op(c, i - 1, '.')
                                          ? code_find(c, code_tok(c, i)->s, code_tok(c, i)->len)
                                          : NULL;

        return b ? b->list : 0;
}

/* A name as an argument: the strings of its list, or what it stands for. */
static bool put_bound(struct code *c, struct arguments *a, size_t i) {
        const struct binding *b;
        size_t list = list_of(c, i), end;

        for (size_t at = list + 1; list && at < code_tok(c, list)->partner && a->n < STRINGS_MOST;) {
                struct constant v = code_fold(c, at, &end);

                if (v.known)
                        a->strings[a->n++] = (struct field){.s = v.s, .len = v.len, .off = code_tok(c, at)->off};
                at = end > at ? end + 1 : at + 1;
        }
        if (list || code_is_op(c, i - 1, '.') || code_is_op(c, i + 1, '=') || code_is_op(c, i + 1, ':'))
                return false;
        b = code_find(c, code_tok(c, i)->s, code_tok(c, i)->len);
        if (!b || !b->target)
                return false;
        text_adds(&a->text, b->target);
        return true;
}

static void read_arguments(struct code *c, size_t open, struct arguments *a) {
        size_t close = code_tok(c, open)->partner, end;

        a->text.arena = &c->s->arena;
        a->first_token = open + 1;
        a->first = code_fold(c, open + 1, &end);
        a->dynamic = close > open + 1 && !(a->first.known && (end == close || code_is_op(c, end, ',')));
        if (a->dynamic && code_is_op(c, open + 1, '[')) { /* a list of constants */
                a->dynamic = false;
                for (size_t i = open + 2; i < code_tok(c, open + 1)->partner; i++)
                        a->dynamic = a->dynamic || code_tok(c, i)->kind == TOKEN_NAME || code_tok(c, i)->dynamic;
        }
        if (a->dynamic && list_of(c, open + 1))
                a->dynamic = false;
        for (size_t i = open + 1; i < close && a->text.len < 8192;) {
                struct constant v = code_fold(c, i, &end);

                if (v.known && end > i) {
                        text_addc(&a->text, '"');
                        text_add(&a->text, v.s, v.len < 4096 ? v.len : 4096);
                        text_addc(&a->text, '"');
                        if (a->n < STRINGS_MOST)
                                a->strings[a->n++] = (struct field){.s = v.s, .len = v.len, .off = code_tok(c, i)->off};
                        i = end;
                        continue;
                }
                if (code_tok(c, i)->kind == TOKEN_NAME && i > open + 1 && code_tok(c, i - 1)->kind == TOKEN_NAME)
                        text_addc(&a->text, ' ');
                if (code_tok(c, i)->kind == TOKEN_NAME && put_bound(c, a, i)) {
                        i++;
                        continue;
                }
                text_add(&a->text, code_tok(c, i)->s, code_tok(c, i)->len < 4096 ? code_tok(c, i)->len : 4096);
                if (code_tok(c, i)->kind == TOKEN_STRING && a->n < STRINGS_MOST)
                        a->strings[a->n++] = (struct field){.s = code_tok(c, i)->s,
                                                            .len = code_tok(c, i)->len,
                                                            .off = code_tok(c, i)->off,
                                                            .dynamic = true};
                i++;
        }
}

/* The program and its words as a line of shell. */
static void scan_command_line(struct code *c, const struct arguments *a, bool last) {
        struct text t = {.arena = &c->s->arena};

        if (a->n == 0)
                return;
        if (a->n == 1 || last) {
                const struct field *f = &a->strings[last ? a->n - 1 : 0];

                scan_inner(c->s, c->unit, f->off, f->s, f->len, LANG_SHELL, false);
                return;
        }
        for (size_t i = 0; i < a->n; i++) {
                if (i > 0)
                        text_addc(&t, ' ');
                if (i == 0 && memchr(a->strings[0].s, ' ', a->strings[0].len)) {
                        text_add(&t, a->strings[0].s, a->strings[0].len);
                        continue;
                }
                text_addc(&t, '\'');
                for (size_t k = 0; k < a->strings[i].len; k++)
                        if (a->strings[i].s[k] == '\'')
                                text_adds(&t, "'\\''");
                        else
                                text_addc(&t, a->strings[i].s[k]);
                text_addc(&t, '\'');
        }
        scan_inner(c->s, c->unit, a->strings[0].off, text_str(&t), t.len, LANG_SHELL, false);
}

static void check_call(struct code *c, size_t i, const char *name, size_t open) {
        struct arguments a = {0};
        size_t n = 0;

        (void) rules_find(c->s->rules->calls, name, &n);
        if (n == 0 && c->n_star > 0)
                for (size_t k = 0; k < c->n_star && n == 0; k++) {
                        const char *full = code_join(c, c->star[k], name, strlen(name));

                        (void) rules_find(c->s->rules->calls, full, &n);
                        if (n)
                                name = full;
                }
        if (n == 0 && !runs_commands(name) && !evaluates(name))
                return;
        read_arguments(c, open, &a);
        if ((strcmp(name, "setTimeout") == 0 || strcmp(name, "setInterval") == 0) && !a.first.known)
                return;
        match_call(c->s, c->unit, code_tok(c, i)->off, name, text_str(&a.text), a.text.len, a.strings, a.n, a.dynamic);
        if (runs_commands(name))
                scan_command_line(c, &a, strncmp(name, "pydoc.", 6) == 0);
        else if (evaluates(name) && a.n > 0) /* of Function() the last one is the body */
                scan_inner(c->s, c->unit, a.strings[0].off, a.strings[strcmp(name, "Function") == 0 ? a.n - 1 : 0].s,
                           a.strings[strcmp(name, "Function") == 0 ? a.n - 1 : 0].len, c->unit->language, false);
}

/* os.environ["X"] = …, process.env.X = … */
static void environment(struct code *c, size_t i, const char *name, size_t end) {
        const char *prefix = c->python ? "os.environ" : "process.env";
        size_t at = end;

        if (strncmp(name, prefix, strlen(prefix)) != 0)
                return;
        if (code_is_op(c, at, '[') && code_tok(c, at)->partner)
                at = code_tok(c, at)->partner + 1;
        if (code_is_op(c, at, '=') && !code_is_op(c, at + 1, '=') && (at != end || strlen(name) > strlen(prefix))) {
                struct text t = {.arena = &c->s->arena};

                text_adds(&t, name);
                text_addc(&t, '=');
                match_assignment(c->s, c->unit, code_tok(c, i)->off, text_str(&t), t.len);
        }
}

/* A function that is not called here but given away: f = eval, map(os.system, …). */
static void handed_on(struct code *c, size_t i, const char *name, size_t end) {
        static const char *const not_behind[] = {"typeof",   "instanceof", "del",   "global",
                                                 "nonlocal", "delete",     "except"};

        const struct binding *b = code_find(c, code_tok(c, i)->s, code_tok(c, i)->len);

        if (code_is_op(c, end, '(') || code_is_op(c, end, '=') || i < c->import_end || (b && b->result))
                return;
        if (!c->python && code_is_op(c, end, ':') && i > 0 && !code_is_op(c, i - 1, '?'))
                return; /* a key, or a label */
        for (size_t k = 0; i > 0 && k < ARRAY_SIZE(not_behind); k++)
                if (code_is_word(c, i - 1, not_behind[k]))
                        return;
        match_value(c->s, c->unit, code_tok(c, i)->off, name);
}

/* `name` in front of a bracket is not a call: it is a word of the language. */
static bool stands_before_value(const struct code *c, size_t i) {
        static const char *const words[] = {"new", "return", "await", "typeof", "void",
                                            "in",  "of",     "else",  "yield",  "throw"};

        for (size_t k = 0; k < ARRAY_SIZE(words); k++)
                if (code_is_word(c, i, words[k]))
                        return true;
        return false;
}

static void follow_name(struct code *c, size_t i) {
        const char *name;
        size_t end;
        bool call;

        if (code_import(c, i))
                return;
        if (code_is_word(c, i, "def") || code_is_word(c, i, "function") || code_is_word(c, i, "class"))
                return;
        if (i > 0 && (code_is_word(c, i - 1, "def") || code_is_word(c, i - 1, "function") || code_is_op(c, i - 1, '.')))
                return;
        c->n_passed = 0;
        c->passing = true;
        name = code_primary(c, i, &end, &call);
        c->passing = false;
        for (size_t k = 0; k < c->n_passed; k++)
                check_call(c, i, c->passed[k].name, c->passed[k].open);
        if (!name)
                return;
        environment(c, i, name, end);
        handed_on(c, i, name, end);
        if (!code_is_op(c, end, '(') || !code_tok(c, end)->partner) {
                if (code_is_word(c, i, "require") || code_is_word(c, i, "__import__") || call)
                        code_note_module(c, i, name);
                return;
        }
        if (call)
                code_note_module(c, i, name);
        check_call(c, i, name, end);
}

/* A group that is called: (0, eval)(…), new (require("vm").Script)(…). */
static void follow_group(struct code *c, size_t i) {
        const char *name;
        size_t end;
        bool call;

        if ((i > 0 && code_tok(c, i - 1)->kind == TOKEN_NAME && !stands_before_value(c, i - 1)) ||
            !code_is_op(c, code_tok(c, i)->partner + 1, '('))
                return;
        c->n_passed = 0;
        c->passing = true;
        name = code_primary(c, i, &end, &call);
        c->passing = false;
        for (size_t k = 0; k < c->n_passed; k++)
                check_call(c, i, c->passed[k].name, c->passed[k].open);
        if (name && code_is_op(c, end, '(') && code_tok(c, end)->partner)
                check_call(c, i, name, end);
}

void scan_code(struct scan *s, const struct unit *unit) {
        struct code c = {.s = s, .unit = unit, .python = unit->language == LANG_PYTHON};

        code_tokens(s, unit, &c.t);
        for (size_t i = 0; i < c.t.n && !s->arena.failed; i++) {
                const struct token *t = &c.t.v[i];

                if (t->kind == TOKEN_STRING) {
                        size_t end;

                        match_string(s, unit, t->off, t->s, t->len);
                        if (code_is_op(&c, i + 1, '+') && !t->dynamic) {
                                struct constant v = code_fold(&c, i, &end);

                                if (v.known) {
                                        match_string(s, unit, t->off, v.s, v.len);
                                        i = end - 1;
                                }
                        }
                } else if (t->kind == TOKEN_NAME)
                        follow_name(&c, i);
                else if (t->op == '=' && i > 0)
                        code_assignment(&c, i);
                else if (t->op == '(' && t->partner && !code_is_op(&c, t->partner + 1, '{'))
                        follow_group(&c, i);
                else if (c.python && t->op == '$' && code_tok(&c, i + 1)->kind == TOKEN_NAME)
                        match_string(s, unit, t->off, "$PATH/", 6); /* not Python at all: a shell's variable */
        }
}
