/* hutch help, hutch version: made from the rows of the verbs and of the library's options. */
#include "cli.h"

#include <string.h>

#include "verbs.h"

static void put_option(FILE *to, char letter, const char *name, const char *value, const char *help) {
        char left[160];
        int width = snprintf(left, sizeof(left), "%c%c%c --%s%s%s", letter ? '-' : ' ', letter ? letter : ' ',
                             letter ? ',' : ' ', name, value ? " " : "", value ? value : "");

        if (width <= 36)
                fprintf(to, "  %-36s  %s\n", left, help);
        else
                fprintf(to, "  %s\n  %-36s  %s\n", left, "", help);
}

static void put_options(FILE *to, const struct verb *verb) {
        hutch_option_info info;

        for (const struct option *o = verb->options; o && o->name; o++)
                put_option(to, o->letter, o->name, o->value, o->help);
        for (size_t i = 0; verb->box_options && hutch_option_describe(i, &info); i++)
                if (info.verbs & verb->box_options)
                        put_option(to, info.letter, info.name, info.value_name, info.help);
        put_option(to, 'h', "help", NULL, "show this help");
}

static void put_verbs(FILE *to, const struct verb *const *verbs, const char *prefix) {
        for (; *verbs; verbs++)
                if (!((*verbs)->flags & VERB_QUIET))
                        fprintf(to, "  %s%-*s  %s\n", prefix, 10 - (int) strlen(prefix), (*verbs)->name,
                                (*verbs)->summary);
}

void cli_help_short(FILE *to) {
        fputs("usage: hutch [OPTIONS] COMMAND [ARG…]\n"
              "\n"
              "Runs a command in a box: it can change the current directory and nothing else, sees an empty home,\n"
              "and has no network.\n"
              "\n"
              "  hutch make test                  run a command\n"
              "  hutch --workspace cow -c 'TEXT'  keep its changes apart; then 'hutch diff', 'hutch apply'\n"
              "  hutch session start              a persistent shell; then 'hutch session run -- COMMAND'\n"
              "\n"
              "'hutch help' lists commands and options, 'hutch doctor' what this host can enforce.\n",
              to);
}

void cli_help(FILE *to) {
        fputs("usage: hutch [OPTIONS] [--] COMMAND [ARG…]\n"
              "       hutch VERB [OPTIONS] …\n"
              "\n"
              "verbs:\n",
              to);
        put_verbs(to, cli_verbs, "");
        fputs("\n'hutch help VERB' describes one. 'hutch -- NAME' runs a program that has the name of a verb.\n"
              "\n"
              "The command sees the system read-only, an empty home, and the workspace (the current directory, or\n"
              "-d DIR); it has no network unless --net allows it.\n"
              "\n"
              "options of 'hutch run', which is the default:\n",
              to);
        put_options(to, &verb_run);
        put_option(to, 'V', "version", NULL, "show the version");
        fputs("\nexit status: the command's own; 128+N if it was killed by signal N; 124 timeout; 125 hutch could not\n"
              "or would not run it; 126 not executable; 127 not found.\n",
              to);
}

void cli_help_verb(FILE *to, const struct verb *parent, const struct verb *verb) {
        fprintf(to, "usage: hutch %s%s%s%s%s\n\n%s\n", parent ? parent->name : "", parent ? " " : "", verb->name,
                verb->synopsis[0] ? " " : "", verb->synopsis, verb->summary);
        if (verb->subverbs) {
                fputs("\ncommands:\n", to);
                put_verbs(to, verb->subverbs, "");
                return;
        }
        fputs("\noptions:\n", to);
        put_options(to, verb);
        fprintf(to, "\n'man hutch-%s' has the details.\n",
                verb->page     ? verb->page
                : !parent      ? verb->name
                : parent->page ? parent->page
                               : parent->name);
}

/* One line for each verb and option, split by tabs, for the generators of completions and manual pages. */
static void put_table(const struct verb *parent, const struct verb *verb) {
        char name[64];
        hutch_option_info info;

        snprintf(name, sizeof(name), "%s%s%s", parent ? parent->name : "", parent ? " " : "", verb->name);
        printf("verb\t%s\t%s\t%s\t%s\n", name, verb->synopsis, verb->summary,
               verb->flags & VERB_COMMAND ? "command"
               : verb->subverbs           ? "subverbs"
                                          : "arguments");
        for (const struct option *o = verb->options; o && o->name; o++)
                printf("option\t%s\t%s\t%.1s\t%s\t%s\n", name, o->name, &o->letter, o->value ? o->value : "", o->help);
        for (size_t i = 0; verb->box_options && hutch_option_describe(i, &info); i++)
                if (info.verbs & verb->box_options)
                        printf("option\t%s\t%s\t%.1s\t%s\t%s\n", name, info.name, &info.letter,
                               info.value_name ? info.value_name : "", info.help);
        for (const struct verb *const *v = verb->subverbs; v && *v; v++)
                put_table(verb, *v);
}

struct help_options {
        bool tables;
};

static const struct option help_options[] = {
        {"tables", 0, NULL, "print verbs and options for programs, one a line", OPTION_AT(struct help_options, tables)},
        {0},
};

static int help(const struct invocation *in) {
        const struct help_options *o = in->options;
        const struct verb *verb, *sub = NULL;

        if (o->tables) {
                hutch_key_info key;

                for (size_t i = 0; hutch_key_get(i, &key, sizeof(key)); i++)
                        printf("key\t%s\t%s\t%s\t%s\t%s\n", key.name, key.value, key.list ? "list" : "one",
                               key.untrusted, key.help);
                for (const struct verb *const *v = cli_verbs; *v; v++)
                        put_table(NULL, *v);
                return 0;
        }
        if (in->n_args == 0) {
                cli_help(stdout);
                return 0;
        }
        verb = cli_find_verb(cli_verbs, in->args[0]);
        if (verb && verb->subverbs && in->n_args > 1)
                sub = cli_find_verb(verb->subverbs, in->args[1]);
        if (!verb || (in->n_args > 1 && !sub)) {
                const char *near = cli_suggest_verb(verb ? verb->subverbs : cli_verbs, in->args[verb ? 1 : 0]);

                cli_complain("no such command: 'hutch %s%s%s'%s%s%s", in->args[0], in->n_args > 1 ? " " : "",
                             in->n_args > 1 ? in->args[1] : "", near ? "; did you mean '" : "", near ? near : "",
                             near ? "'?" : "");
                return EXIT_HUTCH;
        }
        cli_help_verb(stdout, sub ? verb : NULL, sub ? sub : verb);
        return 0;
}

const struct verb verb_help = {
        .name = "help",
        .synopsis = "[VERB]",
        .summary = "describe hutch or one of its verbs",
        .max_args = 2,
        .options = help_options,
        .size = sizeof(struct help_options),
        .run = help,
        .page = "help",
};

static int version(const struct invocation *in) {
        (void) in;
        printf("hutch %s\n", hutch_version());
        return 0;
}

const struct verb verb_version = {
        .name = "version",
        .synopsis = "",
        .summary = "show the version",
        .run = version,
        .page = "help",
};
