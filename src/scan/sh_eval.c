/* The walk through a script. See sh_eval.h.
 *
 * The walk follows the text, not the control flow: a variable has the value that was assigned last above, whichever
 * branch that was in. That is a guess in favour of finding something; nothing is excused by it. */
#include "sh_eval.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MOST 100
#define CALLS_MOST ((size_t) 1 << 18) /* bytes of bodies beside the length of the script */

static const struct value unknown;

/* <<- removes tabs at the beginning of lines. */
static struct value without_tabs(struct eval *ev, struct value v) {
        struct text t = {.arena = ev->arena};
        bool start = true;

        for (size_t i = 0; i < v.len; i++)
                if (!(start && v.s[i] == '\t')) {
                        text_addc(&t, v.s[i]);
                        start = v.s[i] == '\n';
                }
        v.s = text_str(&t);
        v.len = t.len;
        return v;
}

/* The text of a here-document, with what is known put in. */
static struct value here_text(struct eval *ev, const struct sh_redir *r) {
        const char *body = r->body ? r->body : "";
        size_t len = r->body_len;
        bool dynamic = false;
        struct value v = known(body, len);

        if (!r->body_quoted && (memchr(body, '$', len) || memchr(body, '`', len) || memchr(body, '\\', len)))
                v = eval_text(ev, sh_parse_quoted(ev->arena, body, len, r->body_off), &dynamic);
        return r->strip_tabs ? without_tabs(ev, v) : v;
}

/* What can be read from standard input, or from another descriptor. */
static void note_input(struct eval *ev, const struct sh_redir *r, struct value from, struct value *input) {
        char name[32];

        if (r->fd <= 0) {
                *input = from;
                return;
        }
        snprintf(name, sizeof(name), "/dev/fd/%d", r->fd);
        eval_variable(ev, name, strlen(name), true)->file = from;
}

/* What is known of a file, a substitution or a descriptor that is read. */
static void read_from(struct eval *ev, const struct sh_redir *r, const struct redirect *to, struct value *input) {
        const struct variable *file;
        struct value from = unknown;
        char name[32];

        if (to->target.process)
                from = to->target.process->output;
        else if (r->op == REDIR_DUP && to->target.len > 0 && to->target.len < 10 &&
                 isdigit((unsigned char) to->target.s[0])) {
                snprintf(name, sizeof(name), "/dev/fd/%s", to->target.s);
                file = eval_variable(ev, name, strlen(name), false);
                from = file ? file->file : unknown;
        } else if ((file = find_file(ev, to->target.s, to->target.len)))
                from = file->file;
        note_input(ev, r, from, input);
}

/* Redirections; what comes from a here-document or here-string replaces `input`. */
static void redirections(struct eval *ev, const struct sh_node *node, struct command *c, struct value *input) {
        size_t n = 0;

        for (const struct sh_redir *r = node->redirs; r; r = r->next)
                n++;
        if (n == 0)
                return;
        c->redirs = arena_alloc(ev->arena, n * sizeof(*c->redirs));
        if (ev->arena->failed)
                return;
        for (const struct sh_redir *r = node->redirs; r; r = r->next) {
                struct redirect *to = &c->redirs[c->n_redirs];
                struct fields f = {0};

                if (r->op == REDIR_HERE) {
                        struct value text = here_text(ev, r);

                        match_string(ev->s, ev->unit, r->body_off, text.s, text.len);
                        note_input(ev, r, text, input);
                        continue;
                }
                if (!r->target)
                        continue;
                eval_expand(ev, r->target, &f);
                if (f.n == 0)
                        continue;
                match_string(ev->s, ev->unit, f.v[0].off, f.v[0].s, f.v[0].len);
                if (r->op == REDIR_STRING) {
                        bool dynamic = false;

                        note_input(ev, r, eval_text(ev, r->target, &dynamic), input);
                        continue;
                }
                to->target = f.v[0];
                to->write = r->op == REDIR_WRITE || r->op == REDIR_BOTH || (r->op == REDIR_DUP && r->both);
                to->read = r->op == REDIR_READ || r->op == REDIR_BOTH || (r->op == REDIR_DUP && !r->both);
                to->append = r->append;
                if (to->read)
                        read_from(ev, r, to, input);
                c->n_redirs++;
        }
}

void eval_emit(struct eval *ev, struct command *c) {
        if (ev->n_commands == ev->commands_room) {
                size_t room = ev->commands_room ? ev->commands_room * 2 : 4;
                struct command *more = arena_alloc(ev->arena, room * sizeof(*more));

                if (ev->arena->failed)
                        return;
                if (ev->n_commands)
                        memcpy(more, ev->commands, ev->n_commands * sizeof(*more));
                ev->commands = more;
                ev->commands_room = room;
        }
        ev->commands[ev->n_commands++] = *c;
}

bool eval_again(struct eval *ev, const struct sh_node *nodes) {
        size_t size = 0;

        for (const struct sh_node *n = nodes; n; n = n->next)
                size += n->end - n->off;
        size = size * 4 + 64; /* calls of functions come first */
        if (ev->calls < size)
                return false;
        ev->calls -= size;
        return true;
}

/* A call of a function of the script, with its arguments and what it reads. */
static struct value call_function(struct eval *ev, const struct sh_node *body, const struct command *c,
                                  struct value input, bool capture) {
        struct field *positional = ev->positional;
        struct value outer = ev->input, out;
        size_t n = ev->n_positional;

        if (c->argc < 2 && !input.known && !input.fetched && !input.hidden && !capture)
                return unknown;
        if (ev->depth >= 20 || body->end - body->off > 4096 || ev->calls < body->end - body->off)
                return unknown;
        ev->calls -= body->end - body->off;
        ev->positional = c->argv + 1;
        ev->n_positional = c->argc - 1;
        ev->input = input;
        out = eval_substitute(ev, body);
        ev->positional = positional;
        ev->n_positional = n;
        ev->input = outer;
        return out;
}

static void name_command(struct command *c) {
        const char *slash = memrchr(c->argv[0].s, '/', c->argv[0].len);

        c->name = slash ? slash + 1 : c->argv[0].s;
        c->glob = c->argv[0].glob;
}

/* A command whose name was fetched, or made of constants by a tool. */
static void note_origin(struct eval *ev, const struct command *c) {
        if (memchr(c->name, '\2', strlen(c->name)))
                emit_pseudo(ev, c, "(run-download)");
        else if (memchr(c->name, '\3', strlen(c->name)))
                emit_pseudo(ev, c, "(hidden)");
}

/* A pattern that names keys or passwords among other files stands for them. */
static void guess_globs(struct eval *ev, struct fields *f, size_t from) {
        static const char *const secrets[] = {
                "~/.ssh/id_rsa", "/root/.ssh/id_rsa",  "/home/x/.ssh/id_rsa", "~/.aws/credentials",
                "~/.netrc",      "~/.git-credentials", "/etc/shadow",         "/root/.aws/credentials"};
        size_t n = f->n;

        for (size_t i = from; i < n; i++) {
                const char *last = f->v[i].glob ? strrchr(f->v[i].s, '/') : NULL;

                if (!last || last[1] == '*' || strlen(f->v[i].s) > 256)
                        continue;
                for (size_t k = 0; k < ARRAY_SIZE(secrets); k++)
                        if (fnmatch(f->v[i].s, secrets[k], FNM_PATHNAME | FNM_PERIOD | FNM_EXTMATCH) == 0) {
                                fields_add(
                                        ev, f,
                                        (struct field){.s = secrets[k], .len = strlen(secrets[k]), .off = f->v[i].off});
                                break;
                        }
        }
}

/* A command that is named by a variable may have the name that the variable had before. */
static void try_earlier(struct eval *ev, const struct sh_word *word, const struct command *c, struct value input) {
        const struct sh_part *part = word->parts;
        const struct variable *var = part && part->kind == PART_VAR && !part->next && !part->op && !part->index
                                             ? eval_variable(ev, part->text, part->len, false)
                                             : NULL;

        for (size_t i = 0; var && i < ARRAY_SIZE(var->earlier) && var->earlier[i].known; i++) {
                struct command other = *c;

                if (memchr(var->earlier[i].s, ' ', var->earlier[i].len) || ev->calls < 256)
                        continue;
                ev->calls -= 256;
                other.argv = arena_alloc(ev->arena, c->argc * sizeof(*other.argv));
                if (ev->arena->failed)
                        return;
                memcpy(other.argv, c->argv, c->argc * sizeof(*other.argv));
                other.argv[0].s = var->earlier[i].s;
                other.argv[0].len = var->earlier[i].len;
                other.argv[0].dynamic = false;
                name_command(&other);
                eval_emit(ev, &other);
                eval_inner_commands(ev, &other, input, other.element, 0);
        }
}

static struct value simple(struct eval *ev, const struct sh_node *node, struct value input, unsigned number,
                           bool capture) {
        struct value out = unknown, outer;
        struct command c = {.element = number, .off = node->off, .name = "(redirect)"};
        struct fields f = {0};
        const struct variable *var;

        for (const struct sh_word *w = node->assigns; w; w = w->next)
                eval_assign(ev, w);
        for (const struct sh_word *w = node->words; w; w = w->next) {
                size_t before = f.n;

                if (w->name_len)
                        eval_assign(ev, w);
                eval_expand(ev, w, &f);
                guess_globs(ev, &f, before);
                for (size_t i = before; i < f.n; i++)
                        if (!w->name_len)
                                match_string(ev->s, ev->unit, f.v[i].off, f.v[i].s, f.v[i].len);
        }
        redirections(ev, node, &c, &input);
        if (f.n == 0) {
                if (c.n_redirs)
                        eval_emit(ev, &c);
                return node->assigns ? known("", 0) : input;
        }
        c.argv = f.v;
        c.argc = f.n;
        c.off = f.v[0].off;
        name_command(&c);
        if (f.v[0].len == 1 && f.v[0].s[0] == '\1')
                c.name = "(unknown)";
        var = eval_variable(ev, c.argv[0].s, c.argv[0].len, false);
        c.function = var && var->function;
        eval_emit(ev, &c);
        note_origin(ev, &c);
        if (c.function)
                out = call_function(ev, var->function, &c, input, capture || c.n_redirs);
        outer = ev->input;
        if (node->redirs || number > 0)
                ev->input = input;
        eval_builtin(ev, &c);
        if (node->redirs || number > 0)
                ev->input = outer;
        eval_inner_commands(ev, &c, input, number, 0);
        if (node->words && !node->words->plain)
                try_earlier(ev, node->words, &c, input);
        if (!capture && !c.n_redirs)
                return unknown;
        if (!c.function)
                out = static_output(ev, &c, input);
        store_output(ev, &c, out);
        return out;
}

#define ROUNDS_MOST 64

/* The body of a for loop with each item, as far as the budget goes. */
static struct value each_item(struct eval *ev, const struct sh_node *node, const struct fields *items, bool capture) {
        struct variable *var = eval_variable(ev, node->name, strlen(node->name), true);
        struct value out = unknown;

        for (size_t i = 0; i == 0 || (i < items->n && i < ROUNDS_MOST && eval_again(ev, node->body)); i++) {
                const struct field *f = i < items->n ? &items->v[i] : NULL;

                var->value = f && !f->dynamic ? known(f->s, f->len)
                                              : (struct value){.s = "",
                                                               .fetched = f && memchr(f->s, '\2', f->len),
                                                               .hidden = f && memchr(f->s, '\3', f->len)};
                var->items = NULL;
                out = eval_list(ev, node->body, capture);
        }
        return items->n > 1 && out.known ? unknown : out;
}

/* A body that reads known lines is walked once for each of them. */
static struct value each_line(struct eval *ev, const struct sh_node *node, bool capture) {
        size_t rounds = 0, left;
        struct value out;

        do {
                left = ev->input.len;
                out = eval_list(ev, node->body, capture);
        } while (ev->input.known && ev->input.len > 0 && ev->input.len < left && ++rounds < ROUNDS_MOST &&
                 eval_again(ev, node->body));
        return rounds && out.known ? unknown : out;
}

static bool names(const struct sh_node *node, const char *name) {
        return node && node->words && node->words->plain && strlen(name) == node->words->parts->len &&
               memcmp(node->words->parts->text, name, node->words->parts->len) == 0;
}

/* A function that pipes itself into itself, by whatever name. */
static void check_bomb(struct eval *ev, const struct sh_node *node) {
        const struct sh_node *body = node->body;

        if (body && body->kind == NODE_COMPOUND)
                body = body->body;
        for (; body; body = body->next)
                if (names(body, node->name) && names(body->pipe_next, node->name)) {
                        struct command c = {.name = "(fork-bomb)", .off = body->off};

                        match_pipeline(ev->s, ev->unit, &c, 1);
                }
}

static struct value element(struct eval *ev, const struct sh_node *node, struct value input, unsigned number,
                            bool capture) {
        struct value out = unknown;

        if (ev->depth >= DEPTH_MOST)
                return eval_give_up(ev);
        ev->depth++;
        switch (node->kind) {
        case NODE_SIMPLE:
                out = simple(ev, node, input, number, capture);
                break;
        case NODE_FUNCTION:
                eval_variable(ev, node->name, strlen(node->name), true)->function = node->body;
                if (node->body)
                        (void) eval_substitute(ev, node->body);
                check_bomb(ev, node);
                break;
        default: {
                struct command c = {.element = number, .off = node->off, .name = "(redirect)"};
                struct command *commands = ev->commands;
                size_t n = ev->n_commands, room = ev->commands_room;
                struct fields items = {0};
                struct value outer;
                const char *cwd = ev->cwd;
                size_t cwd_len = ev->cwd_len;

                redirections(ev, node, &c, &input);
                if (node->kind == NODE_FOR && node->name) {
                        for (const struct sh_word *w = node->words; w; w = w->next)
                                eval_expand(ev, w, &items);
                        for (size_t i = 0; i < items.n; i++)
                                match_string(ev->s, ev->unit, items.v[i].off, items.v[i].s, items.v[i].len);
                } else
                        for (const struct sh_word *w = node->words; w; w = w->next) {
                                struct fields f = {0};
                                const char *at;

                                eval_expand(ev, w, &f);
                                if (f.n && (at = memmem(f.v[0].s, f.v[0].len, "[$(", 3))) /* a subscript is expanded */
                                        scan_inner(ev->s, ev->unit, f.v[0].off, at + 1,
                                                   f.v[0].len - (size_t) (at + 1 - f.v[0].s), LANG_SHELL, false);
                        }
                ev->commands = NULL;
                ev->n_commands = ev->commands_room = 0;
                outer = ev->input;
                if (number > 0 || node->redirs)
                        ev->input = input;
                out = node->kind == NODE_FOR && node->name ? each_item(ev, node, &items, capture)
                                                           : each_line(ev, node, capture || c.n_redirs);
                ev->input = outer;
                if (node->subshell) { /* a shell of its own */
                        ev->cwd = cwd;
                        ev->cwd_len = cwd_len;
                }
                store_output(ev, &c, out);
                ev->commands = commands;
                ev->n_commands = n;
                ev->commands_room = room;
                if (c.n_redirs)
                        eval_emit(ev, &c);
                /* For the pipeline around it, what is inside counts by name. */
                for (const struct sh_node *in = node->body; in && node->pipe_next; in = in->next)
                        if (in->words && in->words->plain) {
                                struct command *inner = arena_alloc(ev->arena, sizeof(*inner));

                                inner->argv = arena_alloc(ev->arena, sizeof(*inner->argv));
                                inner->argv[0] =
                                        (struct field){.s = in->words->parts->text, .len = in->words->parts->len};
                                inner->element = number;
                                inner->off = in->off;
                                name_command(inner);
                                eval_emit(ev, inner);
                        }
        }
        }
        ev->depth--;
        return out;
}

struct value eval_list(struct eval *ev, const struct sh_node *nodes, bool capture) {
        struct text all = {.arena = ev->arena};
        bool is_known = true, fetched = false, hidden = false;

        for (const struct sh_node *first = nodes; first && !ev->arena->failed; first = first->next) {
                struct value v = ev->input;
                unsigned number = 0;

                for (const struct sh_node *node = first; node; node = node->pipe_next, number++)
                        v = element(ev, node, v, number, capture || node->pipe_next);
                match_pipeline(ev->s, ev->unit, ev->commands, ev->n_commands);
                for (size_t i = 0; capture && i < ev->n_commands && !fetched; i++)
                        fetched = is_fetch_name(ev->commands[i].name);
                ev->n_commands = 0;
                if (!capture)
                        continue;
                fetched = fetched || v.fetched;
                hidden = hidden || v.hidden;
                is_known = is_known && v.known;
                if (is_known && v.len < ev->budget) {
                        ev->budget -= v.len;
                        text_add(&all, v.s, v.len);
                }
        }
        return capture && is_known ? known(text_str(&all), all.len)
                                   : (struct value){.s = "", .fetched = fetched, .hidden = hidden};
}

void scan_shell(struct scan *s, const struct unit *unit) {
        struct eval ev = {.s = s,
                          .unit = unit,
                          .arena = &s->arena,
                          .budget = unit->len * 2 + 65536,
                          .calls = unit->len + CALLS_MOST};
        struct sh_parse p;
        struct sh_node *nodes = sh_parse(&p, &s->arena, unit->src, unit->len, 0);

        (void) eval_list(&ev, nodes, false);
        s->incomplete = s->incomplete || p.gave_up || p.too_deep;
        if (p.has_error && unit->depth == 0)
                scan_note(s, unit, p.error_off, "syntax-error", SEVERITY_INFO, p.error,
                          "check it with 'bash -n'; what follows the error may not have been understood");
}
