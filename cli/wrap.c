/* hutch wrap: a command rewritten so that it runs in a box when another program starts it. */
#include "cli.h"

#include <string.h>

#include "verbs.h"

struct wrap_options {
        bool json;
};

static const struct option options[] = {
        {"json", 0, NULL, "print the command and its backend as JSON", OPTION_AT(struct wrap_options, json)},
        {0},
};

/* As a shell reads it back. */
static void put_word(const char *word) {
        if (word[0] &&
            !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_")]) {
                fputs(word, stdout);
                return;
        }
        putchar('\'');
        for (; *word; word++)
                if (*word == '\'')
                        fputs("'\\''", stdout);
                else
                        putchar(*word);
        putchar('\'');
}

static void put_command(const char *const *argv) {
        for (size_t i = 0; argv[i]; i++) {
                if (i > 0)
                        putchar(' ');
                put_word(argv[i]);
        }
        putchar('\n');
}

static void put_json(const hutch_wrapped *wrapped) {
        const char *const *argv = hutch_wrapped_argv(wrapped);

        fputs("{\"argv\":[", stdout);
        for (size_t i = 0; argv[i]; i++) {
                if (i > 0)
                        putchar(',');
                cli_put_json(stdout, argv[i]);
        }
        fputs("],\"backend\":", stdout);
        cli_put_json(stdout, hutch_wrapped_backend(wrapped));
        fputs("}\n", stdout);
}

static int wrap(const struct invocation *in) {
        const struct wrap_options *o = in->options;
        hutch_wrapped *wrapped;
        hutch_error err = {0};

        if (!in->command) {
                cli_complain("no command to wrap: hutch wrap %s", in->verb->synopsis);
                return EXIT_HUTCH;
        }
        if (hutch_wrap(in->policy, in->command, &wrapped, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        if (o->json)
                put_json(wrapped);
        else
                put_command(hutch_wrapped_argv(wrapped));
        if (fflush(stdout) == 0)
                hutch_wrapped_keep(wrapped);
        hutch_wrapped_free(wrapped);
        return 0;
}

const struct verb verb_wrap = {
        .name = "wrap",
        .synopsis = "[OPTIONS] [--] COMMAND [ARG…]",
        .summary = "rewrite a command so that it runs in a box when another program starts it",
        .flags = VERB_COMMAND,
        .box_options = HUTCH_OPTION_BOX,
        .preset = HUTCH_PRESET_RUN,
        .options = options,
        .size = sizeof(struct wrap_options),
        .run = wrap,
};
