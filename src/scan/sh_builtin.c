/* Assignments, and the builtins that set variables. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sh_eval.h"

#define ITEMS_MOST 1024

static const struct value unknown;

/* ---- items of arrays ---- */

/* An item is a variable by the name NAME[KEY]; a number is a place in the list, too. */
struct variable *eval_item(struct eval *ev, const char *name, const char *key, size_t key_len, bool make) {
        struct text t = {.arena = ev->arena};

        text_adds(&t, name);
        text_addc(&t, '[');
        text_add(&t, key, key_len);
        text_addc(&t, ']');
        return eval_variable(ev, text_str(&t), t.len, make);
}

static void set_items(struct eval *ev, struct variable *var, const struct value *from, size_t n, size_t room) {
        struct value *items = arena_alloc(ev->arena, (room + 1) * sizeof(*items));

        if (ev->arena->failed)
                return;
        if (n)
                memcpy(items, from, n * sizeof(*items));
        var->items = items;
        var->n_items = room;
}

void eval_set_item(struct eval *ev, struct variable *var, const char *key, size_t len, struct value v) {
        size_t number = 0;

        eval_item(ev, var->name, key, len, true)->value = v;
        for (size_t i = 0; i < len; i++) {
                if (!isdigit((unsigned char) key[i]) || number > ITEMS_MOST)
                        return;
                number = number * 10 + (size_t) (key[i] - '0');
        }
        if (len == 0 || number >= ITEMS_MOST)
                return;
        if (number >= var->n_items || !var->items)
                set_items(ev, var, var->items, var->items ? var->n_items : 0, number + 1);
        if (var->items && number < var->n_items)
                var->items[number] = v;
        if (number == 0)
                var->value = v;
}

static struct value of_field(const struct field *f) {
        if (!f->dynamic)
                return known(f->s, f->len);
        return (struct value){.s = "", .fetched = memchr(f->s, '\2', f->len), .hidden = memchr(f->s, '\3', f->len)};
}

/* [key]=value in a list. */
static bool set_keyed(struct eval *ev, struct variable *var, const struct field *f) {
        const char *end = f->len > 3 && f->s[0] == '[' ? memmem(f->s, f->len, "]=", 2) : NULL;
        struct field value = *f;

        if (!end)
                return false;
        value.s = end + 2;
        value.len = f->len - (size_t) (value.s - f->s);
        eval_set_item(ev, var, f->s + 1, (size_t) (end - f->s) - 1, of_field(&value));
        return true;
}

static void assign_list(struct eval *ev, struct variable *var, const struct sh_word *word) {
        struct fields f = {0};
        struct value *items;
        size_t n = word->append && var->items ? var->n_items : 0;

        for (const struct sh_word *w = word->array; w; w = w->next)
                eval_expand(ev, w, &f);
        if (word->raw[word->name_len] == '[')
                return;
        items = arena_alloc(ev->arena, (n + f.n + 1) * sizeof(*items));
        if (ev->arena->failed || n + f.n > 65536)
                return;
        if (n)
                memcpy(items, var->items, n * sizeof(*items));
        for (size_t i = 0; i < f.n; i++) {
                match_string(ev->s, ev->unit, f.v[i].off, f.v[i].s, f.v[i].len);
                if (!set_keyed(ev, var, &f.v[i]))
                        items[n++] = of_field(&f.v[i]);
        }
        var->items = items;
        var->n_items = n;
        var->value = n ? items[0] : unknown;
}

/* ---- NAME=value ---- */

/* Variables whose value a program runs as a command line. */
static bool is_command_variable(const char *name, size_t len) {
        static const char *const names[] = {
                "PROMPT_COMMAND",    "GIT_SSH_COMMAND",  "GIT_SSH", "GIT_EDITOR", "GIT_PAGER",
                "GIT_ASKPASS",       "EDITOR",           "VISUAL",  "PAGER",      "MANPAGER",
                "LESSOPEN",          "LESSCLOSE",        "BROWSER", "RSYNC_RSH",  "SSH_ASKPASS",
                "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
                        return true;
        return false;
}

/* Prompts are expanded when they are shown, and so is a subscript in arithmetic: x[$(command)]. */
static void scan_later(struct eval *ev, const struct sh_word *word, struct value v) {
        const char *name = word->raw, *at;

        if (is_command_variable(name, word->name_len)) {
                inner_value(ev, word->off, v, LANG_SHELL);
                return;
        }
        if (word->name_len == 3 && memcmp(name, "PS", 2) == 0)
                at = memmem(v.s, v.len, "$(", 2);
        else if ((at = memmem(v.s, v.len, "[$(", 3)))
                at++;
        if (at)
                scan_inner(ev->s, ev->unit, word->off, at, v.len - (size_t) (at - v.s), LANG_SHELL, false);
}

static struct value appended(struct eval *ev, struct value before, struct value v) {
        struct text t = {.arena = ev->arena};

        if (before.len + v.len >= ev->budget)
                return eval_give_up(ev);
        text_add(&t, before.s, before.len);
        text_add(&t, v.s, v.len);
        ev->budget -= t.len;
        return known(text_str(&t), t.len);
}

/* A value that another branch may have kept: if …; then c=nc; else c=ls; fi */
static void remember(struct variable *var) {
        if (!var->value.known || var->value.len == 0 || var->value.len > 256)
                return;
        memmove(var->earlier + 1, var->earlier, sizeof(var->earlier) - sizeof(var->earlier[0]));
        var->earlier[0] = var->value;
}

void eval_assign(struct eval *ev, const struct sh_word *word) {
        struct variable *var = eval_variable(ev, word->raw, word->name_len, true);
        struct text line = {.arena = ev->arena};
        bool dynamic = false;
        struct value v;

        if (word->is_array) {
                assign_list(ev, var, word);
                return;
        }
        v = eval_text(ev, word, &dynamic);
        match_string(ev->s, ev->unit, word->off, v.s, v.len);
        text_add(&line, word->raw, word->name_len);
        text_addc(&line, '=');
        text_add(&line, v.s, v.len);
        match_assignment(ev->s, ev->unit, word->off, text_str(&line), line.len);
        scan_later(ev, word, v);
        if (streq(var->name, "PATH"))
                ev->path = arena_copy(ev->arena, v.s, v.len);
        if (dynamic)
                v = (struct value){.s = "", .fetched = memchr(v.s, '\2', v.len), .hidden = memchr(v.s, '\3', v.len)};
        if (word->raw[word->name_len] == '[') {
                const char *key = word->raw + word->name_len + 1,
                           *end = memchr(key, ']', word->end - word->off - word->name_len - 1);
                size_t len = end ? (size_t) (end - key) : 0;

                if (len > 1 && (*key == '"' || *key == '\'')) {
                        key++;
                        len -= 2;
                }
                if (end && !memchr(key, '$', len))
                        eval_set_item(ev, var, key, len, v);
                return;
        }
        if (word->append && var->value.known && v.known)
                v = appended(ev, var->value, v);
        else if (word->append && !var->value.known && var->value.s)
                v = var->value;
        remember(var);
        var->value = v;
        var->items = NULL;
        if (streq(var->name, "IFS") && v.known && v.len > 0)
                ev->separators = v.s;
}

/* ---- builtins ---- */

static void set_to(struct eval *ev, const char *name, struct value v) {
        struct variable *var = eval_variable(ev, name, strlen(name), true);

        var->value = v.known ? v : (struct value){.s = "", .fetched = v.fetched, .hidden = v.hidden};
        var->items = NULL;
}

/* The next line of what the commands read. */
static struct value next_line(struct eval *ev) {
        struct value in = ev->input, line;
        const char *end;

        if (!in.known)
                return in;
        end = in.len ? memchr(in.s, '\n', in.len) : NULL;
        line = known(arena_copy(ev->arena, in.s, end ? (size_t) (end - in.s) : in.len),
                     end ? (size_t) (end - in.s) : in.len);
        ev->input.s += end ? line.len + 1 : line.len;
        ev->input.len -= end ? line.len + 1 : line.len;
        return line;
}

static bool separates(const struct eval *ev, char c) {
        return c == ' ' || c == '\t' || (c && ev->separators && strchr(ev->separators, c));
}

/* Words of a line to names, the rest to the last one. */
static void read_names(struct eval *ev, const struct command *c, size_t from, bool to_list, struct value line) {
        const char *at = line.s, *end = line.s + line.len;
        struct variable *list = to_list ? eval_variable(ev, c->argv[from].s, c->argv[from].len, true) : NULL;
        size_t n = 0;

        if (!line.known) {
                for (size_t i = from; i < c->argc; i++)
                        set_to(ev, c->argv[i].s, line);
                return;
        }
        if (list)
                list->items = NULL;
        for (size_t i = from; i < c->argc || (list && at < end); i++) {
                const char *word;
                char key[24];

                while (at < end && separates(ev, *at))
                        at++;
                word = at;
                while (at < end && ((i + 1 >= c->argc && !list) || !separates(ev, *at)))
                        at++;
                if (list) {
                        snprintf(key, sizeof(key), "%zu", n++);
                        eval_set_item(ev, list, key, strlen(key),
                                      known(arena_copy(ev->arena, word, (size_t) (at - word)), (size_t) (at - word)));
                        if (n > 100)
                                return;
                } else
                        set_to(ev, c->argv[i].s,
                               known(arena_copy(ev->arena, word, (size_t) (at - word)), (size_t) (at - word)));
        }
}

static void run_read(struct eval *ev, const struct command *c) {
        bool to_list = false;
        size_t i = 1;

        for (; i < c->argc && c->argv[i].s[0] == '-'; i++) {
                char last = c->argv[i].len ? c->argv[i].s[c->argv[i].len - 1] : 0;

                if (last == 'a') {
                        to_list = true;
                        i++;
                        break;
                }
                if (last && strchr("dinNptu", last))
                        i++;
        }
        if (i < c->argc)
                read_names(ev, c, i, to_list, next_line(ev));
        else
                set_to(ev, "REPLY", next_line(ev));
}

static void run_mapfile(struct eval *ev, const struct command *c) {
        struct variable *var;
        const char *name = "MAPFILE";
        char key[24];

        if (c->argc > 1 && c->argv[c->argc - 1].s[0] != '-')
                name = c->argv[c->argc - 1].s;
        var = eval_variable(ev, name, strlen(name), true);
        var->items = NULL;
        var->value = ev->input.known ? unknown : ev->input;
        for (unsigned n = 0; ev->input.known && ev->input.len > 0 && n < 256; n++) {
                snprintf(key, sizeof(key), "%u", n);
                eval_set_item(ev, var, key, strlen(key), next_line(ev));
        }
}

static void run_printf_v(struct eval *ev, const struct command *c) {
        struct command plain = {.name = "printf", .off = c->off, .argc = c->argc - 2};

        plain.argv = arena_alloc(ev->arena, plain.argc * sizeof(*plain.argv));
        if (ev->arena->failed)
                return;
        memcpy(plain.argv, c->argv + 2, plain.argc * sizeof(*plain.argv));
        plain.argv[0] = (struct field){.s = "printf", .len = 6};
        set_to(ev, c->argv[2].s, static_output(ev, &plain, unknown));
}

static void run_declare(struct eval *ev, const struct command *c) {
        bool reference = false;

        for (size_t i = 1; i < c->argc; i++) {
                const char *a = c->argv[i].s, *equals = memchr(a, '=', c->argv[i].len);

                if (a[0] == '-')
                        reference = reference || memchr(a, 'n', c->argv[i].len);
                else if (reference && equals)
                        eval_variable(ev, a, (size_t) (equals - a), true)->refers =
                                arena_copy(ev->arena, equals + 1, c->argv[i].len - (size_t) (equals + 1 - a));
        }
}

static void run_shift(struct eval *ev, const struct command *c) {
        size_t n = c->argc > 1 && isdigit((unsigned char) c->argv[1].s[0]) ? (size_t) (c->argv[1].s[0] - '0') : 1;

        n = n < ev->n_positional ? n : ev->n_positional;
        ev->positional += n;
        ev->n_positional -= n;
}

void eval_builtin(struct eval *ev, const struct command *c) {
        const char *n = c->name;

        if (streq(n, "read"))
                run_read(ev, c);
        else if (streq(n, "mapfile") || streq(n, "readarray"))
                run_mapfile(ev, c);
        else if (streq(n, "printf") && c->argc > 3 && streq(c->argv[1].s, "-v"))
                run_printf_v(ev, c);
        else if (streq(n, "shift") && ev->n_positional > 0)
                run_shift(ev, c);
        else if (streq(n, "declare") || streq(n, "typeset") || streq(n, "local"))
                run_declare(ev, c);
}
