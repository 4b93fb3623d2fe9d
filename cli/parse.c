/* The command line. Options that shape a box belong to the library's table; those of the command itself stand here. The
 * first word that is not an option is a verb if it names one, else the command; `--` forces a command. */
#include "cli.h"

#include <string.h>

enum own {
        OWN_JSON,
        OWN_CAPTURE,
        OWN_RESULT,
        OWN_STDIN,
        OWN_COMMAND,
        OWN_HELP,
        OWN_VERSION,
        OWN_BOX,
        OWN_STAT,
        OWN_NAME_ONLY,
        OWN_FORCE,
        OWN_OLDER,
        OWN_SHELL,
        OWN_IDLE,
        OWN_DISCARD,
        OWN_SESSION,
        OWN_STOP,
        OWN_COPY,
        OWN_LIST,
        OWN_REMOVE,
        OWN_MAX_SIZE,
        OWN_MAX_ENTRIES
};

static const struct {
        const char *name;
        char letter;
        const char *value_name; /* NULL: takes none */
        enum own what;
} own_options[] = {
        {"json", 0, NULL, OWN_JSON},
        {"capture", 0, NULL, OWN_CAPTURE},
        {"result", 0, "FILE", OWN_RESULT},
        {"stdin", 0, "inherit|none|FILE", OWN_STDIN},
        {"cmd", 'c', "TEXT", OWN_COMMAND},
        {"help", 'h', NULL, OWN_HELP},
        {"version", 'V', NULL, OWN_VERSION},
        {"box", 0, "ID", OWN_BOX},
        {"stat", 0, NULL, OWN_STAT},
        {"name-only", 0, NULL, OWN_NAME_ONLY},
        {"force", 0, NULL, OWN_FORCE},
        {"older-than", 0, "AGE", OWN_OLDER},
        {"list", 0, NULL, OWN_LIST},
        {"remove", 0, "SNAPSHOT", OWN_REMOVE},
        {"max-size", 0, "a size (256M, 2G)", OWN_MAX_SIZE},
        {"max-entries", 0, "a number", OWN_MAX_ENTRIES},
        {"shell", 0, "PATH", OWN_SHELL},
        {"idle-timeout", 0, "D", OWN_IDLE},
        {"discard", 0, NULL, OWN_DISCARD},
        {"session", 0, "NAME", OWN_SESSION},
        {"stop", 0, NULL, OWN_STOP},
        {"copy", 0, NULL, OWN_COPY},
};

static const char *const verbs[] = {"run",   "explain", "doctor",   "shell",   "session", "boxes",  "diff",
                                    "apply", "discard", "snapshot", "restore", "fork",    "export", "import"};

/* Verbs with other defaults than run's: they are known before their options are read. */
static const char *const persistent[] = {"shell", "session"};

/* Verbs whose words are paths or names, which may stand before options. */
static const char *const reviewing[] = {"session",  "boxes",   "diff", "apply",  "discard",
                                        "snapshot", "restore", "fork", "export", "import"};

/* Verbs that hutch keeps for itself; a program of that name is run with `--` before it. */
static const char *const reserved[] = {"exec",     "scan",  "why", "init", "trust",
                                       "profiles", "image", "tui", "mcp",  "batch"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *find(const char *const *words, size_t n, const char *word) {
        for (size_t i = 0; i < n; i++)
                if (!strcmp(words[i], word))
                        return words[i];
        return NULL;
}

static void apply_own(struct cli *cli, enum own what, const char *value) {
        switch (what) {
        case OWN_JSON:
                cli->json = true;
                break;
        case OWN_CAPTURE:
                cli->capture = true;
                break;
        case OWN_RESULT:
                cli->result_file = value;
                break;
        case OWN_STDIN:
                cli->stdin_from = value;
                break;
        case OWN_COMMAND:
                cli->command = value;
                break;
        case OWN_HELP:
                cli->help = true;
                break;
        case OWN_VERSION:
                cli->version = true;
                break;
        case OWN_BOX:
                cli->box = value;
                break;
        case OWN_STAT:
                cli->stat = true;
                break;
        case OWN_NAME_ONLY:
                cli->name_only = true;
                break;
        case OWN_FORCE:
                cli->force = true;
                break;
        case OWN_OLDER:
                cli->older_than = value;
                break;
        case OWN_SHELL:
                cli->shell = value;
                break;
        case OWN_IDLE:
                cli->idle_timeout = value;
                break;
        case OWN_SESSION:
                cli->session = value;
                break;
        case OWN_STOP:
                cli->stop = true;
                break;
        case OWN_COPY:
                cli->copy = true;
                break;
        case OWN_DISCARD:
                cli->discard = true;
                break;
        case OWN_LIST:
                cli->list = true;
                break;
        case OWN_REMOVE:
                cli->remove = value;
                break;
        case OWN_MAX_SIZE:
                cli->max_size = value;
                break;
        case OWN_MAX_ENTRIES:
                cli->max_entries = value;
                break;
        }
}

struct word { /* one option as it stands on the command line */
        char name[64];
        char letter;
        const char *value; /* behind "=" or the letter */
};

static int split(const char *arg, struct word *ret) {
        const char *equals;
        size_t n;

        *ret = (struct word){0};
        if (arg[1] != '-') {
                ret->letter = arg[1];
                ret->value = arg[2] ? arg + 2 : NULL;
                return 0;
        }
        equals = strchr(arg, '=');
        n = equals ? (size_t) (equals - arg - 2) : strlen(arg + 2);
        if (n >= sizeof(ret->name)) {
                cli_complain("unknown option %.40s…", arg);
                return -1;
        }
        memcpy(ret->name, arg + 2, n);
        ret->value = equals ? equals + 1 : NULL;
        return 0;
}

/* Takes the value from behind the option or from the next word. */
static int value_of(const char *name, const char *value_name, struct word *w, int argc, char **argv, int *at) {
        if (w->value)
                return 0;
        if (*at + 1 >= argc) {
                cli_complain("--%s needs a value: %s", name, value_name);
                return -1;
        }
        w->value = argv[++*at];
        return 0;
}

static void complain_unknown(const struct word *w) {
        const char *names[64], *near;
        hutch_option_info info;
        size_t n = 0;

        if (w->letter) {
                cli_complain(
                        "unknown option -%c: `hutch --help` lists them; after -- everything belongs to the command",
                        w->letter);
                return;
        }
        for (size_t i = 0; i < COUNT(own_options); i++)
                names[n++] = own_options[i].name;
        for (size_t i = 0; n < COUNT(names) && hutch_option_describe(i, &info); i++)
                names[n++] = info.name;
        near = hutch_suggest(w->name, names, n);
        cli_complain("unknown option --%s%s%s%s", w->name, near ? "; did you mean --" : "", near ? near : "",
                     near ? "?" : "");
}

/* What a single run of a session may have, too. */
static bool is_of_a_run(const char *name) {
        return !strcmp(name, "timeout") || !strcmp(name, "output-cap") || !strcmp(name, "env");
}

static int parse_option(int argc, char **argv, int *at, struct cli *cli) {
        hutch_option_info info;
        hutch_error err = {0};
        struct word w;

        if (split(argv[*at], &w) < 0)
                return -1;
        for (size_t i = 0; i < COUNT(own_options); i++) {
                if (w.letter ? w.letter != own_options[i].letter : strcmp(w.name, own_options[i].name) != 0)
                        continue;
                if (own_options[i].value_name &&
                    value_of(own_options[i].name, own_options[i].value_name, &w, argc, argv, at) < 0)
                        return -1;
                if (!own_options[i].value_name && w.value) {
                        cli_complain("--%s takes no value", own_options[i].name);
                        return -1;
                }
                apply_own(cli, own_options[i].what, w.value);
                return 0;
        }
        for (size_t i = 0; hutch_option_describe(i, &info); i++) {
                if (w.letter ? w.letter != info.letter : strcmp(w.name, info.name) != 0)
                        continue;
                if (info.value_name && value_of(info.name, info.value_name, &w, argc, argv, at) < 0)
                        return -1;
                if (!strcmp(info.name, "dir"))
                        cli->dir = w.value;
                else if (!strcmp(info.name, "timeout"))
                        cli->timeout = w.value;
                else if (!strcmp(info.name, "output-cap"))
                        cli->output_cap = w.value;
                else if (!strcmp(info.name, "env")) {
                        if (cli->n_env + 1 < COUNT(cli->env))
                                cli->env[cli->n_env] = w.value;
                        cli->n_env++;
                }
                if (!is_of_a_run(info.name))
                        cli->box_option = info.name;
                if (hutch_policy_set_option(cli->policy, info.name, w.value, &err) < 0) {
                        cli_complain("%s", err.message);
                        return -1;
                }
                return 0;
        }
        complain_unknown(&w);
        return -1;
}

static int use_other_defaults(struct cli *cli, int words_before) {
        hutch_error err = {0};

        if (words_before > 1) {
                cli_complain("%s: its options stand behind it: `hutch %s [OPTIONS]`", cli->verb, cli->verb);
                return -1;
        }
        if (hutch_policy_use_preset(cli->policy, HUTCH_PRESET_SESSION, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        return 0;
}

int cli_parse(int argc, char **argv, struct cli *cli) {
        bool verb_taken = false;
        int n_paths = 0;

        for (int i = 1; i < argc; i++) {
                const char *word = argv[i];

                if (!strcmp(word, "--") && verb_taken && find(reviewing, COUNT(reviewing), cli->verb) &&
                    strcmp(cli->verb, "session") != 0) {
                        while (++i < argc)
                                argv[1 + n_paths++] = argv[i];
                        break;
                }
                if (!strcmp(word, "--")) {
                        if (i + 1 < argc)
                                cli->argv = (const char *const *) argv + i + 1;
                        break;
                }
                if (word[0] == '-' && word[1]) {
                        if (parse_option(argc, argv, &i, cli) < 0)
                                return -1;
                        continue;
                }
                if (!verb_taken && find(verbs, COUNT(verbs), word)) {
                        cli->verb = find(verbs, COUNT(verbs), word);
                        verb_taken = true;
                        if (find(persistent, COUNT(persistent), word) && use_other_defaults(cli, i) < 0)
                                return -1;
                        continue;
                }
                if (!verb_taken && find(reserved, COUNT(reserved), word)) {
                        cli_complain("`hutch %s` is not in this version; `hutch -- %s …` runs a program of that name",
                                     word, word);
                        return -1;
                }
                if (verb_taken && find(reviewing, COUNT(reviewing), cli->verb)) {
                        argv[1 + n_paths++] = argv[i]; /* what stood there was read */
                        continue;
                }
                cli->argv = (const char *const *) argv + i;
                break;
        }
        if (n_paths > 0) {
                argv[1 + n_paths] = NULL;
                cli->paths = (const char *const *) argv + 1;
        }
        if (cli->argv && cli->command) {
                cli_complain("-c and a command exclude each other: '%s' is one too many", cli->argv[0]);
                return -1;
        }
        if (cli->json && (cli->capture || cli->result_file)) {
                cli_complain("--json, --result and --capture exclude each other: choose one");
                return -1;
        }
        return 0;
}
