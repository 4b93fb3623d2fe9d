/* Variables and the expansion of words. See sh_eval.h. */
#include "sh_eval.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/auxv.h>

#define FIELDS_MOST 4096
#define DEPTH_MOST 100

static const struct value unknown;

struct value eval_give_up(struct eval *ev) {
        ev->s->incomplete = true;
        return unknown;
}

/* ---- variables ---- */

/* By random bytes of the process, so that no script can choose names that meet. */
static uint64_t hash_seed(void) {
        const void *bytes = (const void *) getauxval(AT_RANDOM);
        uint64_t seed = 0;

        if (bytes)
                memcpy(&seed, bytes, sizeof(seed));
        return seed | 1;
}

static size_t hash(const char *s, size_t len) {
        static uint64_t seed;
        uint64_t h;

        if (!seed)
                seed = hash_seed();
        h = seed;
        while (len-- > 0)
                h = (h ^ (unsigned char) *s++) * seed;
        return (size_t) (h ^ h >> 32);
}

static void grow_slots(struct eval *ev) {
        size_t n = ev->n_slots ? ev->n_slots * 2 : 64;
        struct variable **slots = arena_alloc(ev->arena, n * sizeof(*slots));

        if (ev->arena->failed)
                return;
        for (size_t i = 0; i < ev->n_slots; i++)
                if (ev->slots[i]) {
                        size_t at = ev->slots[i]->hash;

                        while (slots[at & (n - 1)])
                                at++;
                        slots[at & (n - 1)] = ev->slots[i];
                }
        ev->slots = slots;
        ev->n_slots = n;
}

struct variable *eval_variable(struct eval *ev, const char *name, size_t len, bool make) {
        size_t h = hash(name, len), at = h;

        if (make && ev->n_variables * 2 >= ev->n_slots)
                grow_slots(ev);
        if (ev->n_slots == 0 || ev->arena->failed) {
                static struct variable nothing;

                nothing = (struct variable){.name = ""};
                return make ? &nothing : NULL;
        }
        for (;; at++) {
                struct variable **slot = &ev->slots[at & (ev->n_slots - 1)];

                if (*slot && (*slot)->hash == h && (*slot)->name_len == len && memcmp((*slot)->name, name, len) == 0)
                        return *slot;
                if (*slot)
                        continue;
                if (!make)
                        return NULL;
                *slot = arena_alloc(ev->arena, sizeof(**slot));
                (*slot)->name = arena_copy(ev->arena, name, len);
                (*slot)->name_len = len;
                (*slot)->hash = h;
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
                if (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' ||
                    (s[i] && x->ev->separators && strchr(x->ev->separators, s[i])))
                        end_field(x);
                else
                        text_addc(&x->text, s[i]);
}

/* \1 means unknown text, \2 fetched text, \3 what was hidden in constants. */
static void put_unknown(struct expansion *x, struct value v) {
        text_addc(&x->text, v.fetched ? '\2' : v.hidden ? '\3' : '\1');
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

#define PATTERN_MOST 256 /* bytes of a value that patterns are matched in */

/* How much of the text at `s` the pattern matches, as much as possible; 0: nothing. */
static size_t pattern_length(struct eval *ev, const char *pattern, const char *s, size_t len) {
        for (size_t n = len; n > 0; n--)
                if (fnmatch(pattern, arena_copy(ev->arena, s, n), FNM_EXTMATCH) == 0)
                        return n;
        return 0;
}

/* ${x/from/to} and ${x//from/to} */
static struct value replace(struct eval *ev, struct value v, const struct sh_word *arg) {
        bool dynamic = false, all, pattern;
        struct value spec = eval_text(ev, arg, &dynamic);
        struct text t = {.arena = ev->arena};
        const char *slash, *from;
        size_t from_len, i = 0;

        all = spec.len > 0 && spec.s[0] == '/';
        if (all || (spec.len > 0 && (spec.s[0] == '#' || spec.s[0] == '%'))) {
                spec.s++;
                spec.len--;
        }
        slash = spec.len ? memchr(spec.s, '/', spec.len) : NULL;
        from_len = slash ? (size_t) (slash - spec.s) : spec.len;
        if (dynamic || from_len == 0)
                return unknown;
        from = arena_copy(ev->arena, spec.s, from_len);
        pattern = strpbrk(from, "*?[(") != NULL;
        if (pattern && v.len > PATTERN_MOST)
                return unknown;
        while (i < v.len && !ev->arena->failed) {
                size_t n = pattern ? pattern_length(ev, from, v.s + i, v.len - i)
                           : v.len - i >= from_len && memcmp(v.s + i, from, from_len) == 0 ? from_len
                                                                                           : 0;

                if (n > 0) {
                        if (slash)
                                text_add(&t, slash + 1, spec.len - from_len - 1);
                        i += n;
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

/* What a pattern matches removed from an end: ${x#p}, ${x##p}, ${x%p}, ${x%%p}. */
static struct value trim(struct eval *ev, struct value v, const struct sh_word *arg, bool front) {
        bool dynamic = false, longest;
        struct value cut = eval_text(ev, arg, &dynamic);
        const char *pattern;

        longest = cut.len > 0 && cut.s[0] == (front ? '#' : '%');
        if (longest) {
                cut.s++;
                cut.len--;
        }
        if (dynamic)
                return unknown;
        pattern = arena_copy(ev->arena, cut.s, cut.len);
        if (!strpbrk(pattern, "*?[(")) {
                if (cut.len > v.len || memcmp(front ? v.s : v.s + v.len - cut.len, cut.s, cut.len) != 0)
                        return v;
                return known(arena_copy(ev->arena, front ? v.s + cut.len : v.s, v.len - cut.len), v.len - cut.len);
        }
        if (v.len > PATTERN_MOST)
                return unknown;
        for (size_t k = 0; k <= v.len && !ev->arena->failed; k++) {
                size_t n = longest ? v.len - k : k;
                const char *part = arena_copy(ev->arena, front ? v.s : v.s + v.len - n, n);

                if (fnmatch(pattern, part, FNM_EXTMATCH) == 0)
                        return known(arena_copy(ev->arena, front ? v.s + n : v.s, v.len - n), v.len - n);
        }
        return v;
}

static struct value transformed(struct eval *ev, struct value v, const struct sh_word *arg) {
        struct value how = eval_text(ev, arg, NULL);

        switch (how.len ? how.s[0] : 0) {
        case 'E':
                return unescaped(ev, v);
        case 'U':
        case 'L':
                return change_case(ev, v, how.s[0] == 'U', true);
        case 'u':
                return change_case(ev, v, true, false);
        case 'P':
        case 'Q':
                return v;
        default:
                return unknown;
        }
}

/* ${x[key]} where the key is known. */
static bool keyed_value(struct eval *ev, const struct sh_part *part, struct value *ret) {
        const struct variable *item;
        struct value key;
        bool dynamic = false;

        if (!part->index || part->index[0] == '@' || part->index[0] == '*')
                return false;
        key = known(part->index, strlen(part->index));
        if (memchr(key.s, '$', key.len))
                key = eval_text(ev, sh_parse_quoted(ev->arena, key.s, key.len, part->off), &dynamic);
        if (key.len > 1 && (key.s[0] == '"' || key.s[0] == '\'')) {
                key.s++;
                key.len -= 2;
        }
        item = dynamic ? NULL : eval_item(ev, part->text, key.s, key.len, false);
        if (!item)
                return false;
        *ret = item->value;
        return true;
}

static struct value parameter(struct eval *ev, const struct sh_part *part) {
        struct variable *var = eval_variable(ev, part->text, part->len, false);
        struct value v;
        bool dynamic = false;

        if (var && var->refers)
                var = eval_variable(ev, var->refers, strlen(var->refers), false);
        v = var ? var->value : standard_variable(part->text);

        if (part->len == 1 && isdigit((unsigned char) part->text[0]) &&
            (size_t) (part->text[0] - '0') <= ev->n_positional && part->text[0] != '0') {
                const struct field *f = &ev->positional[part->text[0] - '1'];

                v = f->dynamic ? unknown : known(f->s, f->len);
        }
        if (keyed_value(ev, part, &v))
                ;
        else if (part->index && var && var->items && !isdigit((unsigned char) part->index[0]))
                return unknown;
        else if (part->index && var && var->items) {
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
        case '@':
                return v.known ? transformed(ev, v, part->arg) : unknown;
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
                        put_unknown(x, items[i]);
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
                put_unknown(x, v);
        else
                x->field.dynamic = true; /* may well be nothing */
}

static struct value trim_lines(struct value v) {
        while (v.known && v.len > 0 && v.s[v.len - 1] == '\n')
                v.len--;
        return v;
}

/* $(…): the commands in it are commands of the script, too. */
struct value eval_substitute(struct eval *ev, const struct sh_node *nodes) {
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

static struct value substitute_text(struct eval *ev, const struct sh_part *part) {
        struct sh_parse p;

        if (part->len > ev->budget)
                return eval_give_up(ev);
        ev->budget -= part->len;
        return eval_substitute(ev, sh_parse(&p, ev->arena, part->text, part->len, part->off));
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
                v = part->kind == PART_COMMAND ? eval_substitute(x->ev, part->nodes) : substitute_text(x->ev, part);
                v = trim_lines(v);
                if (v.known)
                        put(x, v.s, v.len, part->quoted);
                else
                        put_unknown(x, v);
                return;
        case PART_PROCESS: {
                struct process *process = arena_alloc(x->ev->arena, sizeof(*process));

                process->output = eval_substitute(x->ev, part->nodes);
                x->field.process = process;
                text_adds(&x->text, "/dev/fd/63");
                x->any = true;
                return;
        }
        case PART_ARITH:
                if (part->len && (memchr(part->text, '`', part->len) || memmem(part->text, part->len, "$(", 2))) {
                        bool dynamic;

                        (void) eval_text(x->ev, sh_parse_quoted(x->ev->arena, part->text, part->len, part->off),
                                         &dynamic);
                }
                if (number(part->text, part->len, -1) >= 0)
                        put(x, part->text, part->len, true);
                else
                        put_unknown(x, unknown);
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
