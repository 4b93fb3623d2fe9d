/* Expansion of words and the walk through a script. See sh_eval.h.
 *
 * The walk follows the text, not the control flow: a variable has the value that was assigned last above, whichever
 * branch that was in. That is a guess in favour of finding something; nothing is excused by it. */
#include "sh_eval.h"

#include <ctype.h>
#include <string.h>

#define FIELDS_MOST 4096
#define DEPTH_MOST 100
#define CALLS_MOST ((size_t) 1 << 18) /* bytes of bodies beside the length of the script */

static const struct value unknown;

struct value eval_give_up(struct eval *ev) {
        ev->s->incomplete = true;
        return unknown;
}

static struct value known(const char *s, size_t len) {
        return (struct value){s, len, true};
}

/* ---- variables ---- */

static size_t hash(const char *s, size_t len) {
        size_t h = 5381;

        while (len-- > 0)
                h = h * 33 ^ (unsigned char) *s++;
        return h;
}

static void grow_slots(struct eval *ev) {
        size_t n = ev->n_slots ? ev->n_slots * 2 : 64;
        struct variable **slots = arena_alloc(ev->arena, n * sizeof(*slots));

        if (ev->arena->failed)
                return;
        for (size_t i = 0; i < ev->n_slots; i++)
                if (ev->slots[i]) {
                        size_t at = hash(ev->slots[i]->name, strlen(ev->slots[i]->name));

                        while (slots[at & (n - 1)])
                                at++;
                        slots[at & (n - 1)] = ev->slots[i];
                }
        ev->slots = slots;
        ev->n_slots = n;
}

struct variable *eval_variable(struct eval *ev, const char *name, size_t len, bool make) {
        size_t at = hash(name, len);

        if (make && ev->n_variables * 2 >= ev->n_slots)
                grow_slots(ev);
        if (ev->n_slots == 0 || ev->arena->failed) {
                static struct variable nothing;

                nothing = (struct variable){.name = ""};
                return make ? &nothing : NULL;
        }
        for (;; at++) {
                struct variable **slot = &ev->slots[at & (ev->n_slots - 1)];

                if (*slot && strlen((*slot)->name) == len && memcmp((*slot)->name, name, len) == 0)
                        return *slot;
                if (*slot)
                        continue;
                if (!make)
                        return NULL;
                *slot = arena_alloc(ev->arena, sizeof(**slot));
                (*slot)->name = arena_copy(ev->arena, name, len);
                ev->n_variables++;
                return *slot;
        }
}

/* What every box or host has. */
static struct value standard_variable(const char *name) {
        static const struct {
                const char *name, *value;
        } standard[] = {
                {"HOME", "~"}, {"IFS", " "}, {"SHELL", "/bin/bash"}, {"BASH", "/bin/bash"}, {"PATH", "/usr/bin:/bin"},
                {"PWD", "/\1"}};

        for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++)
                if (streq(name, standard[i].name))
                        return known(standard[i].value, strlen(standard[i].value));
        return unknown;
}

/* ---- fields ---- */

void fields_add(struct eval *ev, struct fields *f, struct field field) {
        if (f->n == f->room) {
                size_t room = f->room ? f->room * 2 : 8;
                struct field *v;

                if (f->n >= FIELDS_MOST) {
                        ev->s->incomplete = true;
                        return;
                }
                v = arena_alloc(ev->arena, room * sizeof(*v));
                if (ev->arena->failed)
                        return;
                if (f->n)
                        memcpy(v, f->v, f->n * sizeof(*v));
                f->v = v;
                f->room = room;
        }
        f->v[f->n++] = field;
}

struct expansion {
        struct eval *ev;
        struct fields *out;
        struct text text;
        struct field field;
        bool any; /* the field exists even if it is empty */
        bool split;
};

static void end_field(struct expansion *x) {
        if (!x->any && x->text.len == 0)
                return;
        x->field.s = text_str(&x->text);
        x->field.len = x->text.len;
        fields_add(x->ev, x->out, x->field);
        x->field = (struct field){.off = x->field.off};
        x->text = (struct text){.arena = x->ev->arena};
        x->any = false;
}

static void put(struct expansion *x, const char *s, size_t len, bool quoted) {
        if (len > x->ev->budget) {
                x->ev->s->incomplete = true;
                len = 0;
        }
        x->ev->budget -= len;
        if (quoted || !x->split) {
                text_add(&x->text, s, len);
                x->any = true;
                return;
        }
        for (size_t i = 0; i < len; i++)
                if (s[i] == ' ' || s[i] == '\t' || s[i] == '\n')
                        end_field(x);
                else
                        text_addc(&x->text, s[i]);
}

/* \1 means unknown text, \2 fetched text. */
static void put_unknown(struct expansion *x, bool fetched) {
        text_addc(&x->text, fetched ? '\2' : '\1');
        x->any = true;
        x->field.dynamic = true;
}

static long number(const char *s, size_t len, long otherwise) {
        long v = 0;
        bool minus = false;
        size_t i = 0;

        while (i < len && isspace((unsigned char) s[i]))
                i++;
        if (i < len && s[i] == '-') {
                minus = true;
                i++;
        }
        if (i == len)
                return otherwise;
        for (; i < len; i++) {
                if (!isdigit((unsigned char) s[i]) || v > 100000000)
                        return otherwise;
                v = v * 10 + (s[i] - '0');
        }
        return minus ? -v : v;
}

static struct value substring(struct eval *ev, struct value v, const struct sh_word *arg) {
        bool dynamic = false;
        struct value range = eval_text(ev, arg, &dynamic);
        const char *colon = range.len ? memchr(range.s, ':', range.len) : NULL;
        size_t first = colon ? (size_t) (colon - range.s) : range.len;
        long from = number(range.s, first, -100000000L), n;

        if (dynamic || from == -100000000L)
                return unknown;
        n = colon ? number(colon + 1, range.len - first - 1, (long) v.len) : (long) v.len;
        if (from < 0)
                from += (long) v.len;
        if (from < 0 || from > (long) v.len)
                return known("", 0);
        if (n < 0)
                n += (long) v.len - from;
        if (n < 0)
                n = 0;
        if (n > (long) v.len - from)
                n = (long) v.len - from;
        return known(arena_copy(ev->arena, v.s + from, (size_t) n), (size_t) n);
}

/* ${x/from/to} and ${x//from/to} with a literal `from`. */
static struct value replace(struct eval *ev, struct value v, const struct sh_word *arg) {
        bool dynamic = false, all;
        struct value spec = eval_text(ev, arg, &dynamic);
        struct text t = {.arena = ev->arena};
        const char *slash;
        size_t from_len, i = 0;

        all = spec.len > 0 && spec.s[0] == '/';
        if (all || (spec.len > 0 && (spec.s[0] == '#' || spec.s[0] == '%'))) {
                spec.s++;
                spec.len--;
        }
        slash = spec.len ? memchr(spec.s, '/', spec.len) : NULL;
        from_len = slash ? (size_t) (slash - spec.s) : spec.len;
        if (dynamic || from_len == 0 || (from_len > 0 && memchr(spec.s, '*', from_len)))
                return unknown;
        while (i < v.len) {
                if (v.len - i >= from_len && memcmp(v.s + i, spec.s, from_len) == 0) {
                        if (slash)
                                text_add(&t, slash + 1, spec.len - from_len - 1);
                        i += from_len;
                        if (!all)
                                break;
                } else
                        text_addc(&t, v.s[i++]);
        }
        text_add(&t, v.s + i, v.len - i);
        return known(text_str(&t), t.len);
}

static struct value change_case(struct eval *ev, struct value v, bool upper, bool all) {
        char *s = arena_copy(ev->arena, v.s, v.len);

        for (size_t i = 0; i < v.len && (all || i == 0) && !ev->arena->failed; i++)
                s[i] = (char) (upper ? toupper((unsigned char) s[i]) : tolower((unsigned char) s[i]));
        return known(s, v.len);
}

static struct value reversed_lookup(struct eval *ev, const struct sh_part *part, struct variable *var) {
        const struct variable *other;

        if (!var || !var->value.known)
                return unknown;
        other = eval_variable(ev, var->value.s, var->value.len, false);
        (void) part;
        return other ? other->value : standard_variable(var->value.s);
}

/* A constant prefix removed: ${x#text}, ${x%text}. */
static struct value trim(struct eval *ev, struct value v, const struct sh_word *arg, bool front) {
        bool dynamic = false;
        struct value cut = eval_text(ev, arg, &dynamic);

        if (dynamic || (cut.len && (memchr(cut.s, '*', cut.len) || memchr(cut.s, '?', cut.len))))
                return unknown;
        if (cut.len > v.len || memcmp(front ? v.s : v.s + v.len - cut.len, cut.s, cut.len) != 0)
                return v;
        return known(arena_copy(ev->arena, front ? v.s + cut.len : v.s, v.len - cut.len), v.len - cut.len);
}

static struct value parameter(struct eval *ev, const struct sh_part *part) {
        struct variable *var = eval_variable(ev, part->text, part->len, false);
        struct value v = var ? var->value : standard_variable(part->text);
        bool dynamic = false;

        if (part->len == 1 && isdigit((unsigned char) part->text[0]) &&
            (size_t) (part->text[0] - '0') <= ev->n_positional && part->text[0] != '0') {
                const struct field *f = &ev->positional[part->text[0] - '1'];

                v = f->dynamic ? unknown : known(f->s, f->len);
        }
        if (part->index && var && var->items && !isdigit((unsigned char) part->index[0]))
                return unknown;
        if (part->index && var && var->items) {
                long i = number(part->index, strlen(part->index), -1);

                v = i >= 0 && (size_t) i < var->n_items ? var->items[i] : unknown;
        } else if (part->index && !isdigit((unsigned char) part->index[0]))
                v = unknown;
        switch (part->op) {
        case 0:
                return v;
        case '-':
        case '=':
                if (v.known)
                        return v;
                v = eval_text(ev, part->arg, &dynamic);
                return dynamic ? unknown : v;
        case '+':
                v = eval_text(ev, part->arg, &dynamic);
                return dynamic ? unknown : v;
        case ':':
                if ((streq(part->text, "HOME") || streq(part->text, "PWD")) && !var)
                        v = known("/", 1);
                return v.known ? substring(ev, v, part->arg) : unknown;
        case '/':
                return v.known ? replace(ev, v, part->arg) : unknown;
        case '#':
        case '%':
                return v.known ? trim(ev, v, part->arg, part->op == '#') : unknown;
        case '^':
        case ',':
                return v.known ? change_case(ev, v, part->op == '^', part->arg && part->arg->parts) : unknown;
        case '!':
                return reversed_lookup(ev, part, var);
        default:
                return unknown;
        }
}

static void put_array(struct expansion *x, const struct value *items, size_t n, bool quoted) {
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        end_field(x);
                if (!items[i].known)
                        put_unknown(x, items[i].fetched);
                else
                        put(x, items[i].s, items[i].len, quoted);
        }
}

static void put_variable(struct expansion *x, const struct sh_part *part) {
        struct variable *var = eval_variable(x->ev, part->text, part->len, false);
        struct value v;

        if (part->index && (part->index[0] == '@' || part->index[0] == '*') && var && var->items && !part->op) {
                put_array(x, var->items, var->n_items, part->quoted);
                return;
        }
        if (part->len == 1 && (part->text[0] == '@' || part->text[0] == '*') && x->ev->n_positional && !part->op) {
                for (size_t i = 0; i < x->ev->n_positional; i++) {
                        if (i > 0)
                                end_field(x);
                        put(x, x->ev->positional[i].s, x->ev->positional[i].len, part->quoted);
                        x->field.dynamic = x->field.dynamic || x->ev->positional[i].dynamic;
                }
                return;
        }
        v = parameter(x->ev, part);
        if (v.known)
                put(x, v.s, v.len, part->quoted);
        else if ((part->len != 1 || (part->text[0] != '@' && part->text[0] != '*')) && part->op != '+')
                put_unknown(x, v.fetched);
        else
                x->field.dynamic = true; /* may well be nothing */
}

static struct value trim_lines(struct value v) {
        while (v.known && v.len > 0 && v.s[v.len - 1] == '\n')
                v.len--;
        return v;
}

/* $(…): the commands in it are commands of the script, too. */
static struct value substitute(struct eval *ev, const struct sh_node *nodes) {
        struct command *commands = ev->commands;
        size_t n = ev->n_commands, room = ev->commands_room;
        struct value v = unknown;

        if (ev->depth >= DEPTH_MOST)
                return eval_give_up(ev);
        ev->depth++;
        ev->commands = NULL;
        ev->n_commands = ev->commands_room = 0;
        v = eval_list(ev, nodes, true);
        ev->commands = commands;
        ev->n_commands = n;
        ev->commands_room = room;
        ev->depth--;
        return v;
}

static struct value substitute_text(struct eval *ev, const char *text, size_t len) {
        struct sh_parse p;

        if (len > ev->budget)
                return eval_give_up(ev);
        ev->budget -= len;
        return substitute(ev, sh_parse(&p, ev->arena, text, len));
}

static void put_part(struct expansion *x, const struct sh_part *part) {
        struct value v;

        switch (part->kind) {
        case PART_TEXT:
                text_add(&x->text, part->text, part->len);
                x->any = x->any || part->quoted || part->len > 0;
                x->field.glob = x->field.glob || part->glob;
                x->field.odd = x->field.odd || part->escaped;
                return;
        case PART_VAR:
                put_variable(x, part);
                return;
        case PART_COMMAND:
        case PART_TICKS:
                v = part->kind == PART_COMMAND ? substitute(x->ev, part->nodes)
                                               : substitute_text(x->ev, part->text, part->len);
                v = trim_lines(v);
                if (v.known)
                        put(x, v.s, v.len, part->quoted);
                else
                        put_unknown(x, v.fetched);
                return;
        case PART_PROCESS: {
                struct process *process = arena_alloc(x->ev->arena, sizeof(*process));

                process->output = substitute(x->ev, part->nodes);
                x->field.process = process;
                text_adds(&x->text, "/dev/fd/63");
                x->any = true;
                return;
        }
        case PART_ARITH:
                if (part->len && (memchr(part->text, '`', part->len) || memmem(part->text, part->len, "$(", 2))) {
                        bool dynamic;

                        (void) eval_text(x->ev, sh_parse_quoted(x->ev->arena, part->text, part->len), &dynamic);
                }
                if (number(part->text, part->len, -1) >= 0)
                        put(x, part->text, part->len, true);
                else
                        put_unknown(x, false);
                return;
        }
}

/* {a,b}: only in words without quotes or expansions. Returns whether there was one. */
static bool expand_braces(struct eval *ev, const char *s, size_t len, uint32_t off, struct fields *out,
                          unsigned depth) {
        const char *open = NULL, *close = NULL;
        const char *commas[64];
        size_t n = 0, i;
        unsigned nested = 0;

        for (i = 0; i < len && !close; i++) {
                if (s[i] == '{') {
                        if (nested++ == 0) {
                                open = s + i;
                                n = 0;
                        }
                } else if (s[i] == '}' && nested > 0 && --nested == 0 && n > 0)
                        close = s + i;
                else if (s[i] == ',' && nested == 1 && n < 64)
                        commas[n++] = s + i;
        }
        if (!close || depth > 4)
                return false;
        for (i = 0; i <= n; i++) {
                const char *from = i == 0 ? open + 1 : commas[i - 1] + 1, *to = i == n ? close : commas[i];
                struct text t = {.arena = ev->arena};

                text_add(&t, s, (size_t) (open - s));
                text_add(&t, from, (size_t) (to - from));
                text_add(&t, close + 1, len - (size_t) (close + 1 - s));
                if (t.len > ev->budget) {
                        ev->s->incomplete = true;
                        return true;
                }
                ev->budget -= t.len;
                if (!expand_braces(ev, text_str(&t), t.len, off, out, depth + 1) && t.len > 0)
                        fields_add(ev, out, (struct field){.s = text_str(&t), .len = t.len, .off = off});
        }
        return true;
}

static void expand(struct eval *ev, const struct sh_word *word, struct fields *out, bool split) {
        struct expansion x = {
                .ev = ev, .out = out, .text = {.arena = ev->arena}, .field = {.off = word->off}, .split = split};

        if (word->plain) {
                const struct sh_part *part = word->parts;

                if (split && memchr(part->text, '{', part->len) && memchr(part->text, ',', part->len) &&
                    expand_braces(ev, part->text, part->len, word->off, out, 0))
                        return;
                fields_add(ev, out,
                           (struct field){.s = part->text,
                                          .len = part->len,
                                          .off = word->off,
                                          .glob = part->glob,
                                          .odd = part->escaped});
                return;
        }
        if (word->name_len) { /* NAME=value as an argument */
                text_add(&x.text, word->raw, word->name_len);
                text_addc(&x.text, '=');
                x.split = false;
        }
        for (const struct sh_part *part = word->parts; part && !ev->arena->failed; part = part->next)
                put_part(&x, part);
        end_field(&x);
}

void eval_expand(struct eval *ev, const struct sh_word *word, struct fields *out) {
        expand(ev, word, out, true);
}

struct value eval_text(struct eval *ev, const struct sh_word *word, bool *ret_dynamic) {
        struct fields f = {0};
        struct sh_word copy;

        if (!word)
                return known("", 0);
        copy = *word;
        copy.name_len = 0;
        expand(ev, &copy, &f, false);
        if (ret_dynamic)
                *ret_dynamic = f.n > 0 && f.v[0].dynamic;
        return f.n > 0 ? known(f.v[0].s, f.v[0].len) : known("", 0);
}

/* ---- the walk ---- */

static void assign(struct eval *ev, const struct sh_word *word) {
        struct variable *var = eval_variable(ev, word->raw, word->name_len, true);
        struct text line = {.arena = ev->arena};
        bool dynamic = false, keyed = word->raw[word->name_len] == '[';
        struct value v;

        if (word->is_array) {
                struct fields f = {0};

                for (const struct sh_word *w = word->array; w; w = w->next)
                        eval_expand(ev, w, &f);
                if (keyed)
                        return;
                var->items = arena_alloc(ev->arena, (f.n + 1) * sizeof(*var->items));
                if (ev->arena->failed)
                        return;
                var->n_items = f.n;
                for (size_t i = 0; i < f.n; i++) {
                        var->items[i] = f.v[i].dynamic ? unknown : known(f.v[i].s, f.v[i].len);
                        match_string(ev->s, ev->unit, f.v[i].off, f.v[i].s, f.v[i].len);
                }
                var->value = f.n ? var->items[0] : unknown;
                return;
        }
        v = eval_text(ev, word, &dynamic);
        match_string(ev->s, ev->unit, word->off, v.s, v.len);
        text_add(&line, word->raw, word->name_len);
        text_addc(&line, '=');
        text_add(&line, v.s, v.len);
        match_assignment(ev->s, ev->unit, word->off, text_str(&line), line.len);
        if (keyed)
                return;
        if (word->append && var->value.known && !dynamic && var->value.len + v.len < ev->budget) {
                struct text t = {.arena = ev->arena};

                text_add(&t, var->value.s, var->value.len);
                text_add(&t, v.s, v.len);
                ev->budget -= t.len;
                v = known(text_str(&t), t.len);
        } else if (word->append && !var->value.known && var->value.s)
                dynamic = true;
        var->value = dynamic ? (struct value){.s = "", .fetched = memchr(v.s, '\2', v.len) != NULL} : v;
        var->items = NULL;
}

/* The text of a here-document, with what is known put in. */
static struct value here_text(struct eval *ev, const struct sh_redir *r) {
        const char *body = r->body;
        size_t len = r->body_len;
        bool dynamic = false;

        if (r->strip_tabs) {
                struct text t = {.arena = ev->arena};
                bool start = true;

                for (size_t i = 0; i < len; i++) {
                        if (!(start && body[i] == '\t')) {
                                text_addc(&t, body[i]);
                                start = body[i] == '\n';
                        }
                }
                body = text_str(&t);
                len = t.len;
        }
        if (r->body_quoted || (!memchr(body, '$', len) && !memchr(body, '`', len) && !memchr(body, '\\', len)))
                return known(body, len);
        return eval_text(ev, sh_parse_quoted(ev->arena, body, len), &dynamic);
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
                        *input = here_text(ev, r);
                        match_string(ev->s, ev->unit, r->body_off, input->s, input->len);
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

                        *input = eval_text(ev, r->target, &dynamic);
                        continue;
                }
                to->target = f.v[0];
                to->write = r->op == REDIR_WRITE || r->op == REDIR_BOTH || (r->op == REDIR_DUP && r->both);
                to->read = r->op == REDIR_READ || r->op == REDIR_BOTH || (r->op == REDIR_DUP && !r->both);
                if (to->target.process && to->read)
                        *input = to->target.process->output;
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

/* A call of a function of the script, with its arguments, if they are few and known. */
static void call_function(struct eval *ev, const struct sh_node *body, const struct command *c) {
        struct field *positional = ev->positional;
        size_t n = ev->n_positional;

        if (c->argc < 2 || ev->depth >= 20 || body->end - body->off > 4096 || ev->calls < body->end - body->off)
                return;
        ev->calls -= body->end - body->off;
        ev->positional = c->argv + 1;
        ev->n_positional = c->argc - 1;
        (void) substitute(ev, body);
        ev->positional = positional;
        ev->n_positional = n;
}

static void name_command(struct command *c) {
        const char *slash = memrchr(c->argv[0].s, '/', c->argv[0].len);

        c->name = slash ? slash + 1 : c->argv[0].s;
        c->glob = c->argv[0].glob;
}

static struct value simple(struct eval *ev, const struct sh_node *node, struct value input, unsigned element,
                           bool capture) {
        struct command c = {.element = element, .off = node->off, .name = "(redirect)"};
        struct fields f = {0};
        const struct variable *var;

        for (const struct sh_word *w = node->assigns; w; w = w->next)
                assign(ev, w);
        for (const struct sh_word *w = node->words; w; w = w->next) {
                size_t before = f.n;

                if (w->name_len)
                        assign(ev, w);
                eval_expand(ev, w, &f);
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
        if (var && var->function)
                call_function(ev, var->function, &c);
        eval_inner_commands(ev, &c, input, element, 0);
        return capture || c.n_redirs ? static_output(ev, &c, input) : unknown;
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
                        (void) substitute(ev, node->body);
                break;
        default: {
                struct command c = {.element = number, .off = node->off, .name = "(redirect)"};
                struct command *commands = ev->commands;
                size_t n = ev->n_commands, room = ev->commands_room;

                redirections(ev, node, &c, &input);
                if (node->kind == NODE_FOR && node->name) {
                        struct variable *var = eval_variable(ev, node->name, strlen(node->name), true);
                        struct fields f = {0};

                        for (const struct sh_word *w = node->words; w; w = w->next)
                                eval_expand(ev, w, &f);
                        for (size_t i = 0; i < f.n; i++)
                                match_string(ev->s, ev->unit, f.v[i].off, f.v[i].s, f.v[i].len);
                        var->value = f.n && !f.v[0].dynamic ? known(f.v[0].s, f.v[0].len) : (struct value){.s = ""};
                        var->items = NULL;
                } else
                        for (const struct sh_word *w = node->words; w; w = w->next) {
                                struct fields f = {0};

                                eval_expand(ev, w, &f);
                        }
                ev->commands = NULL;
                ev->n_commands = ev->commands_room = 0;
                out = eval_list(ev, node->body, capture);
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
        bool is_known = true, fetched = false;

        for (const struct sh_node *first = nodes; first && !ev->arena->failed; first = first->next) {
                struct value v = unknown;
                unsigned number = 0;

                for (const struct sh_node *node = first; node; node = node->pipe_next, number++)
                        v = element(ev, node, v, number, capture || node->pipe_next);
                match_pipeline(ev->s, ev->unit, ev->commands, ev->n_commands);
                for (size_t i = 0; capture && i < ev->n_commands && !fetched; i++)
                        fetched = is_fetch_name(ev->commands[i].name);
                ev->n_commands = 0;
                if (!capture)
                        continue;
                is_known = is_known && v.known;
                if (is_known && v.len < ev->budget) {
                        ev->budget -= v.len;
                        text_add(&all, v.s, v.len);
                }
        }
        return capture && is_known ? known(text_str(&all), all.len) : (struct value){.fetched = fetched};
}

void scan_shell(struct scan *s, const struct unit *unit) {
        struct eval ev = {.s = s,
                          .unit = unit,
                          .arena = &s->arena,
                          .budget = unit->len * 2 + 65536,
                          .calls = unit->len + CALLS_MOST};
        struct sh_parse p;
        struct sh_node *nodes = sh_parse(&p, &s->arena, unit->src, unit->len);

        (void) eval_list(&ev, nodes, false);
        s->incomplete = s->incomplete || p.gave_up || p.too_deep;
        if (p.has_error && unit->depth == 0)
                scan_note(s, unit, p.error_off, "syntax-error", SEVERITY_INFO, p.error,
                          "check it with 'bash -n'; what follows the error may not have been understood");
}
