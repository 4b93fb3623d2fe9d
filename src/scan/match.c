/* Rules against what the lexers found. */
#include <fnmatch.h>
#include <string.h>

#include "scan.h"

static bool in_words(char **words, const char *name) {
        for (; words && *words; words++)
                if (streq(*words, name))
                        return true;
        return false;
}

/* --sh for --sh-exec: getopt takes any beginning. */
static bool abbreviates(const char *arg, const char *option) {
        size_t n = strcspn(arg, "=");

        return n >= 4 && strncmp(arg, option, n) == 0;
}

/* -x alone or among other letters, -word and --word alone or before a "=". */
static bool has_option(const struct command *c, char **options) {
        for (; *options; options++) {
                size_t n = strlen(*options);

                for (size_t i = 1; i < c->argc; i++) {
                        const char *arg = c->argv[i].s;

                        if (arg[0] != '-')
                                continue;
                        if (n > 4 && arg[1] == '-' && abbreviates(arg, *options))
                                return true;
                        if (n == 2 ? arg[1] != '-' && strchr(arg + 1, (*options)[1]) != NULL
                                   : strncmp(arg, *options, n) == 0 && (!arg[n] || arg[n] == '='))
                                return true;
                }
        }
        return false;
}

static bool pipeline_has(const struct command *c, const struct command *all, size_t n, char **names, bool later) {
        for (size_t i = 0; i < n; i++)
                if ((later ? all[i].element > c->element : all[i].element < c->element) && in_words(names, all[i].name))
                        return true;
        return false;
}

static bool redirect_matches(const struct command *c, const struct regex *regex, bool write) {
        for (size_t i = 0; i < c->n_redirs; i++) {
                const struct redirect *r = &c->redirs[i];

                if ((write ? r->write : r->read) && regex_matches(regex, r->target.s, r->target.len, NULL))
                        return true;
        }
        return false;
}

struct joined {
        struct text text;
        bool made;
};

static void join(struct scan *s, const struct command *c, struct joined *j) {
        if (j->made)
                return;
        j->made = true;
        j->text.arena = &s->arena;
        for (size_t i = 1; i < c->argc; i++) {
                if (i > 1)
                        text_addc(&j->text, ' ');
                text_add(&j->text, c->argv[i].s, c->argv[i].len);
        }
}

/* A program whose name is known before the run, and none of these (which may be patterns). */
static bool is_other(const struct command *c, char **names) {
        if (c->function || c->glob || !c->name[0] || c->name[0] == '(' || strpbrk(c->name, "\1\2"))
                return false;
        for (; *names; names++)
                if (fnmatch(*names, c->name, 0) == 0)
                        return false;
        return true;
}

static bool command_fits(struct scan *s, const struct shape *shape, const struct command *c, const struct command *all,
                         size_t n, struct joined *j) {
        bool found = false, dynamic = false;

        if (shape->other && !is_other(c, shape->other))
                return false;
        if (shape->option && !has_option(c, shape->option))
                return false;
        if (shape->without && has_option(c, shape->without))
                return false;
        for (size_t i = 1; i < c->argc; i++)
                dynamic = dynamic || c->argv[i].dynamic;
        if (shape->dynamic && (shape->dynamic > 0) != dynamic)
                return false;
        if (shape->into && !pipeline_has(c, all, n, shape->into, true))
                return false;
        if (shape->from && !pipeline_has(c, all, n, shape->from, false))
                return false;
        if (shape->write && !redirect_matches(c, shape->write, true))
                return false;
        if (shape->read && !redirect_matches(c, shape->read, false))
                return false;
        if (shape->argument) {
                for (size_t i = 1; i < c->argc && !found; i++)
                        found = regex_matches(shape->argument, c->argv[i].s, c->argv[i].len, NULL);
                if (!found)
                        return false;
        }
        if (shape->arguments) {
                join(s, c, j);
                if (!regex_matches(shape->arguments, text_str(&j->text), j->text.len, NULL))
                        return false;
        }
        return true;
}

static void try_shapes(struct scan *s, const struct unit *unit, struct shape *const *shapes, size_t n_shapes,
                       const struct command *c, const struct command *all, size_t n, struct joined *j) {
        for (size_t i = 0; i < n_shapes; i++)
                if ((shapes[i]->rule->languages & LANG_SHELL) && command_fits(s, shapes[i], c, all, n, j))
                        scan_add(s, unit, c->off, shapes[i]->rule);
}

/* A name with ? and * may be any of the names in the rules. */
static void try_glob(struct scan *s, const struct unit *unit, const struct command *c, const struct command *all,
                     size_t n, struct joined *j) {
        for (size_t i = 0; i < s->rules->n; i++)
                for (size_t k = 0; k < s->rules->items[i]->n_shapes; k++) {
                        struct shape *shape = &s->rules->items[i]->shapes[k];
                        bool named = false;

                        for (char **name = shape->command; name && *name && !named; name++)
                                named = fnmatch(c->name, *name, FNM_EXTMATCH) == 0;
                        if (named)
                                try_shapes(s, unit, &shape, 1, c, all, n, j);
                }
}

/* A name with parts that are not known: they may well be empty, as in n${x}c. */
static bool shapes_without_unknown(struct scan *s, const char *name, const char **ret) {
        struct text t = {.arena = &s->arena};

        if (!strchr(name, '\1') || !name[1])
                return false;
        for (; *name; name++)
                if (*name != '\1')
                        text_addc(&t, *name);
        *ret = text_str(&t);
        return t.len > 1;
}

void match_pipeline(struct scan *s, const struct unit *unit, const struct command *commands, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const struct command *c = &commands[i];
                struct joined j = {0};
                struct shape *const *shapes;
                const char *name;
                size_t count;

                shapes = rules_find(s->rules->commands, c->name, &count);
                try_shapes(s, unit, shapes, count, c, commands, n, &j);
                if (shapes_without_unknown(s, c->name, &name)) {
                        struct command known = *c;

                        known.name = name;
                        shapes = rules_find(s->rules->commands, name, &count);
                        try_shapes(s, unit, shapes, count, &known, commands, n, &j);
                }
                if (c->glob && strpbrk(c->name, "*?[(") && strpbrk(c->name, "abcdefghijklmnopqrstuvwxyz"))
                        try_glob(s, unit, c, commands, n, &j);
                for (size_t k = 0; k < s->rules->n_any_command; k++) {
                        struct shape *shape = s->rules->any_command[k];

                        if ((shape->write || shape->read) && c->n_redirs == 0)
                                continue;
                        try_shapes(s, unit, &shape, 1, c, commands, n, &j);
                }
        }
}

struct string_match {
        struct scan *s;
        const struct unit *unit;
        size_t off, len;
        const char *text;
};

static void try_string(void *data, const struct shape *shape) {
        struct string_match *m = data;

        if ((shape->rule->languages & m->unit->language) && regex_matches(shape->string, m->text, m->len, NULL))
                scan_add(m->s, m->unit, m->off, shape->rule);
}

void match_string(struct scan *s, const struct unit *unit, size_t off, const char *text, size_t len) {
        struct string_match m = {s, unit, off, len, text};

        rules_each_string(s->rules, text, len, try_string, &m);
}

void match_assignment(struct scan *s, const struct unit *unit, size_t off, const char *text, size_t len) {
        for (size_t i = 0; i < s->rules->n_assigns; i++) {
                const struct shape *shape = s->rules->assigns[i];

                if ((shape->rule->languages & unit->language) && regex_matches(shape->assign, text, len, NULL))
                        scan_add(s, unit, off, shape->rule);
        }
}

static bool has_literal(const struct unit *unit, char **literals) {
        for (; *literals; literals++)
                if (memmem(unit->src, unit->len, *literals, strlen(*literals)))
                        return true;
        return false;
}

/* Patterns over a whole text: every match of each, a line at most once. */
void match_text(struct scan *s, const struct unit *unit) {
        for (size_t i = 0; i < s->rules->n_texts; i++) {
                const struct shape *shape = s->rules->texts[i];
                size_t at, from = 0;

                if (!(shape->rule->languages & unit->language) ||
                    (shape->contains && !has_literal(unit, shape->contains)))
                        continue;
                for (unsigned k = 0; k < 100 && from < unit->len; k++) {
                        const char *end;

                        if (!regex_matches(shape->text, unit->src + from, unit->len - from, &at))
                                break;
                        scan_add(s, unit, from + at, shape->rule);
                        end = memchr(unit->src + from + at, '\n', unit->len - from - at);
                        from = end ? (size_t) (end - unit->src) + 1 : unit->len;
                }
        }
}

void match_import(struct scan *s, const struct unit *unit, size_t off, const char *module) {
        size_t n;
        struct shape *const *shapes = rules_find(s->rules->imports, module, &n);

        for (size_t i = 0; i < n; i++)
                if (shapes[i]->rule->languages & unit->language)
                        scan_add(s, unit, off, shapes[i]->rule);
}

void match_value(struct scan *s, const struct unit *unit, size_t off, const char *name) {
        size_t n;
        struct shape *const *shapes = rules_find(s->rules->values, name, &n);

        for (size_t i = 0; i < n; i++)
                if (shapes[i]->rule->languages & unit->language)
                        scan_add(s, unit, off, shapes[i]->rule);
}

void match_call(struct scan *s, const struct unit *unit, size_t off, const char *name, const char *args,
                size_t args_len, const struct field *strings, size_t n_strings, bool dynamic) {
        size_t n;
        struct shape *const *shapes = rules_find(s->rules->calls, name, &n);

        for (size_t i = 0; i < n; i++) {
                const struct shape *shape = shapes[i];
                bool found = !shape->argument;

                if (!(shape->rule->languages & unit->language) || (shape->dynamic && (shape->dynamic > 0) != dynamic))
                        continue;
                for (size_t k = 0; k < n_strings && !found; k++)
                        found = regex_matches(shape->argument, strings[k].s, strings[k].len, NULL);
                if (!found || (shape->arguments && !regex_matches(shape->arguments, args, args_len, NULL)))
                        continue;
                scan_add(s, unit, off, shape->rule);
        }
}
