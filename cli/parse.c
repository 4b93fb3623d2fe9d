/* The command line. The first word that is not an option is a verb if it names one, otherwise the command of `run`;
 * `--` forces a command. The options of a verb are in its row: there is no list of verbs here, and an option that is in
 * no table of the verb is refused, even if another verb accepts it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct word { /* one option as it was written */
        char name[64];
        char letter;
        const char *value; /* after "=" or the letter */
};

struct found { /* what an option is to a verb */
        const struct option *own;
        hutch_option_info box;
        bool is_box, help, version;
};

static const struct option common_options[] = {
        {.name = "help", .letter = 'h', .help = "show this help"},
        {.name = "version", .letter = 'V', .help = "show the version"},
        {0},
};

static bool is_option(const char *word) {
        return word[0] == '-' && word[1];
}

static void split(const char *arg, struct word *ret) {
        size_t n;

        *ret = (struct word){0};
        if (arg[1] != '-') {
                ret->letter = arg[1];
                ret->value = arg[2] ? arg + 2 : NULL;
                return;
        }
        n = strcspn(arg + 2, "=");
        ret->value = arg[2 + n] ? arg + 3 + n : NULL;
        snprintf(ret->name, sizeof(ret->name), "%.*s", (int) n, arg + 2);
}

static bool fits(const struct word *w, const char *name, char letter) {
        return w->letter ? w->letter == letter : !strcmp(w->name, name);
}

static const struct option *find_in(const struct option *options, const struct word *w) {
        for (; options && options->name; options++)
                if (fits(w, options->name, options->letter))
                        return options;
        return NULL;
}

static bool find(const struct verb *verb, const struct word *w, struct found *ret) {
        *ret = (struct found){0};
        ret->own = find_in(verb->options, w);
        if (ret->own)
                return true;
        for (size_t i = 0; verb->box_options && hutch_option_describe(i, &ret->box); i++)
                if (ret->box.verbs & verb->box_options && fits(w, ret->box.name, ret->box.letter))
                        return ret->is_box = true;
        ret->help = find_in(common_options, w) == &common_options[0];
        ret->version = find_in(common_options, w) == &common_options[1];
        return ret->help || ret->version;
}

static bool find_anywhere(const struct verb *const *verbs, const struct word *w, struct found *ret) {
        for (; *verbs; verbs++)
                if (find(*verbs, w, ret) || ((*verbs)->subverbs && find_anywhere((*verbs)->subverbs, w, ret)))
                        return true;
        return false;
}

static bool takes_value(const struct found *f) {
        return f->own ? f->own->value != NULL : f->is_box && f->box.value_name != NULL;
}

const char *cli_verb_name(const struct invocation *in) {
        static char name[64];

        snprintf(name, sizeof(name), "%s%s%s", in->parent ? in->parent->name : "", in->parent ? " " : "",
                 in->verb->name);
        return name;
}

/* Where `diff` or `import` got words that only the program of that name understands. */
static const char *program_hint(const struct invocation *in) {
        static char hint[128];
        const char *name = in->parent ? in->parent->name : in->verb->name;
        char path[128];

        snprintf(path, sizeof(path), "/usr/bin/%s", name);
        hint[0] = 0;
        if (in->verb != &verb_run && access(path, X_OK) == 0)
                snprintf(hint, sizeof(hint), " ('hutch -- %s …' runs the program of that name)", name);
        return hint;
}

static void complain_option(const struct invocation *in, const char *arg, const struct word *w) {
        const char *names[96], *near;
        hutch_option_info info;
        struct found other;
        char shown[80];
        size_t n = 0;

        if (w->letter)
                snprintf(shown, sizeof(shown), "-%c", w->letter);
        else
                snprintf(shown, sizeof(shown), "--%s", w->name);
        if (find_anywhere(cli_verbs, w, &other)) {
                const struct verb *start = in->parent ? cli_find_verb(in->parent->subverbs, "start") : NULL;

                cli_complain("option '%s' is not valid for 'hutch %s'%s", shown, cli_verb_name(in),
                             start && find(start, w, &other) ? "; give it to 'hutch session start'"
                             : w->letter                     ? program_hint(in)
                                                             : "");
                return;
        }
        for (const struct option *o = in->verb->options; o && o->name && n < COUNT(names); o++)
                names[n++] = o->name;
        for (size_t i = 0; n < COUNT(names) && hutch_option_describe(i, &info); i++)
                if (info.verbs & in->verb->box_options)
                        names[n++] = info.name;
        near = w->letter ? NULL : hutch_suggest(w->name, names, n);
        if (near)
                cli_complain("unknown option '%s'; did you mean '--%s'?", shown, near);
        else
                cli_complain("unknown option '%.60s' (see 'hutch help %s')%s", arg, cli_verb_name(in),
                             program_hint(in));
}

static void set_box_option(struct invocation *in, const hutch_option_info *info, const char *value) {
        hutch_error err = {0};

        in->given[in->n_given++] = (struct given){info->name, value};
        if (hutch_policy_set_option(in->policy, info->name, value, &err) < 0 && in->error.code == HUTCH_OK)
                in->error = err;
}

static int read_option(struct invocation *in, char **argv, int argc, int *at) {
        struct found f;
        struct word w;

        split(argv[*at], &w);
        if (!find(in->verb, &w, &f)) {
                complain_option(in, argv[*at], &w);
                return -1;
        }
        if (takes_value(&f) && !w.value) {
                if (*at + 1 >= argc) {
                        cli_complain("option '--%s' needs a value: %s", f.own ? f.own->name : f.box.name,
                                     f.own ? f.own->value : f.box.value_name);
                        return -1;
                }
                w.value = argv[++*at];
        } else if (!takes_value(&f) && w.value) {
                cli_complain("option '--%s' takes no value", f.own ? f.own->name : f.is_box ? f.box.name : w.name);
                return -1;
        }
        if (f.is_box)
                set_box_option(in, &f.box, w.value);
        else if (f.help || f.version) {
                in->help = in->help || f.help;
                in->version = in->version || f.version;
        } else if (f.own->many) {
                struct values *values = (struct values *) ((char *) in->options + f.own->offset);

                if (values->n == VALUES_MOST) {
                        cli_complain("option '--%s' was given more than %d times", f.own->name, VALUES_MOST);
                        return -1;
                }
                values->v[values->n++] = w.value;
        } else if (f.own->value)
                *(const char **) ((char *) in->options + f.own->offset) = w.value;
        else
                *(bool *) ((char *) in->options + f.own->offset) = true;
        return 0;
}

/* The next word that is neither an option nor the value of one; argc at `--` or the end. */
static int next_word(int argc, char **argv, int at) {
        for (; at < argc; at++) {
                struct found f;
                struct word w;

                if (!strcmp(argv[at], "--"))
                        return argc;
                if (!is_option(argv[at]))
                        return at;
                split(argv[at], &w);
                if (find_anywhere(cli_verbs, &w, &f) && takes_value(&f) && !w.value)
                        at++;
        }
        return argc;
}

static void list_subverbs(const struct verb *verb, char *ret, size_t size) {
        size_t used = 0;

        ret[0] = 0;
        for (const struct verb *const *v = verb->subverbs; *v && used < size; v++)
                used += (size_t) snprintf(ret + used, size - used, "%s%s", used ? ", " : "", (*v)->name);
}

static int choose_subverb(int argc, char **argv, int at, struct invocation *in) {
        const char *near;
        char names[256];

        list_subverbs(in->verb, names, sizeof(names));
        for (int i = 1; i < argc && at == argc; i++)
                if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
                        in->help = true;
                        return 0;
                }
        if (at == argc) {
                cli_complain("'hutch %s' needs one of: %s", in->verb->name, names);
                return -1;
        }
        in->parent = in->verb;
        in->verb = cli_find_verb(in->parent->subverbs, argv[at]);
        if (in->verb)
                return 0;
        near = cli_suggest_verb(in->parent->subverbs, argv[at]);
        cli_complain("unknown command 'hutch %s %.40s' (known: %s)%s%s%s", in->parent->name, argv[at], names,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return -1;
}

/* Finds the verb; the words that name it are at ret_at[0] and ret_at[1]. */
static int choose_verb(int argc, char **argv, struct invocation *in, int ret_at[2]) {
        int at = next_word(argc, argv, 1);

        ret_at[0] = ret_at[1] = 0;
        in->verb = at < argc ? cli_find_verb(cli_verbs, argv[at]) : NULL;
        if (!in->verb && at < argc && cli_is_reserved(argv[at])) {
                cli_complain("'hutch %s' is not available in this version; 'hutch -- %s …' runs a program of that name",
                             argv[at], argv[at]);
                return -1;
        }
        if (!in->verb) {
                in->verb = &verb_run;
                return 0;
        }
        ret_at[0] = at;
        if (!in->verb->subverbs)
                return 0;
        at = next_word(argc, argv, at + 1);
        ret_at[1] = at < argc ? at : 0;
        return choose_subverb(argc, argv, at, in);
}

static int check_arguments(const struct invocation *in) {
        if (in->help || in->version || !in->verb->run)
                return 0;
        if (in->verb->max_args >= 0 && in->n_args > (size_t) in->verb->max_args) {
                cli_complain("unexpected argument '%s' for 'hutch %s'%s", in->args[in->verb->max_args],
                             cli_verb_name(in), program_hint(in));
                return -1;
        }
        if (in->n_args < (size_t) in->verb->min_args) {
                cli_complain("missing argument: hutch %s %s", cli_verb_name(in), in->verb->synopsis);
                return -1;
        }
        return 0;
}

/* Everything but the words of the verb itself. Arguments are collected in argv's own beginning, which was read. */
static int read_words(int argc, char **argv, const int verb_at[2], struct invocation *in) {
        bool takes_command = in->verb->flags & VERB_COMMAND;

        for (int i = 1; i < argc; i++) {
                if (i == verb_at[0] || i == verb_at[1])
                        continue;
                if (!strcmp(argv[i], "--")) {
                        if (takes_command && i + 1 < argc)
                                in->command = (const char *const *) argv + i + 1;
                        while (!takes_command && ++i < argc)
                                argv[in->n_args++] = argv[i];
                        break;
                }
                if (is_option(argv[i])) {
                        if (read_option(in, argv, argc, &i) < 0)
                                return -1;
                        continue;
                }
                if (takes_command && in->n_args >= (size_t) in->verb->max_args) {
                        in->command = (const char *const *) argv + i;
                        break;
                }
                argv[in->n_args++] = argv[i];
        }
        argv[in->n_args] = NULL;
        in->args = (const char *const *) argv;
        return check_arguments(in);
}

int cli_parse(int argc, char **argv, struct invocation *in) {
        hutch_error err = {0};
        int verb_at[2];

        if (choose_verb(argc, argv, in, verb_at) < 0)
                return -1;
        in->options = calloc(1, in->verb->size ? in->verb->size : 1);
        in->given = calloc((size_t) argc + 1, sizeof(*in->given));
        if (!in->options || !in->given) {
                cli_complain("out of memory");
                return -1;
        }
        if (in->verb->box_options && hutch_policy_new(&in->policy) < 0) {
                cli_complain("cannot determine the current directory: it no longer exists");
                return -1;
        }
        if (in->policy && hutch_policy_use_preset(in->policy, in->verb->preset, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        if (read_words(argc, argv, verb_at, in) < 0)
                return -1;
        if (in->verb->box_options & HUTCH_OPTION_BOX && !in->help && !in->version)
                cli_load_config(in);
        return 0;
}

void cli_done(struct invocation *in) {
        hutch_policy_free(in->policy);
        free(in->options);
        free(in->given);
}

const char *cli_value(const struct invocation *in, const char *name) {
        const char *value = NULL;

        for (size_t i = 0; i < in->n_given; i++)
                if (!strcmp(in->given[i].name, name))
                        value = in->given[i].value;
        return value;
}
