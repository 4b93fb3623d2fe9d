/* hutch explain: the plan, and nothing else. */
#include "cli.h"

#include <stdlib.h>

#include "run.h"
#include "verbs.h"

static const struct option options[] = {
        {"cmd", 'c', "TEXT", "explain shell text", OPTION_AT(struct explain_options, text)},
        {"json", 0, NULL, "print the plan as JSON", OPTION_AT(struct explain_options, json)},
        {0},
};

/* Without a command: what any command would get. */
static int explain(const struct invocation *in) {
        static const char *const nothing[] = {"true", NULL};
        const struct explain_options *o = in->options;
        hutch_request request = {.struct_size = sizeof(request), .argv = in->command, .command = o->text};
        hutch_error err = {0};
        char *text;

        if (!in->command && !o->text)
                request.argv = nothing;
        if (hutch_explain(in->policy, &request, o->json, &text, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        fputs(text, stdout);
        if (o->json)
                fputc('\n', stdout);
        free(text);
        return 0;
}

const struct verb verb_explain = {
        .name = "explain",
        .synopsis = "[OPTIONS] [--] [COMMAND [ARG…]]",
        .summary = "show the plan of a box, without running anything",
        .flags = VERB_COMMAND,
        .box_options = HUTCH_OPTION_BOX,
        .preset = HUTCH_PRESET_RUN,
        .options = options,
        .size = sizeof(struct explain_options),
        .run = explain,
};
