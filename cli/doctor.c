/* hutch doctor: what this host can enforce, and how to fix the gaps. */
#include "cli.h"

#include <stdlib.h>

#include "verbs.h"

struct doctor_options {
        bool json;
};

static const struct option options[] = {
        {"json", 0, NULL, "print the report as JSON", OPTION_AT(struct doctor_options, json)},
        {0},
};

static int doctor(const struct invocation *in) {
        const struct doctor_options *o = in->options;
        hutch_context *context = NULL;
        hutch_error err = {0};
        bool strong = false;
        char *text;

        if (hutch_context_new(HUTCH_WARDEN_SELF, &context, &err) < 0 ||
            hutch_doctor(context, o->json, &strong, &text, &err) < 0) {
                cli_complain("%s", err.message);
                hutch_context_free(context);
                return EXIT_HUTCH;
        }
        fputs(text, stdout);
        if (o->json)
                fputc('\n', stdout);
        free(text);
        hutch_context_free(context);
        return strong ? 0 : 1;
}

const struct verb verb_doctor = {
        .name = "doctor",
        .synopsis = "[--json]",
        .summary = "what this host can enforce, and how to fix gaps",
        .options = options,
        .size = sizeof(struct doctor_options),
        .run = doctor,
};
