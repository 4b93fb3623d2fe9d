/* hutch why: whether a box reaches a path or a host, by which rule, and what a real box makes of it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "verbs.h"

static const char path_probe[] =
        "if [ -d \"$1\" ]; then k=directory; elif [ -e \"$1\" ]; then k=file; else echo 'does not exist'; exit; fi\n"
        "[ -r \"$1\" ] && r='can be read' || r='cannot be read'\n"
        "[ -w \"$1\" ] && w='can be written' || w='cannot be written'\n"
        "echo \"a $k, $r, $w\"\n";

/* One command in a box of this policy; what it printed. NULL where the box could not be made or has no shell. */
static char *probe(const struct invocation *in, const char *script, const char *argument) {
        const char *const argv[] = {"/bin/sh", "-c", script, "sh", argument, NULL};
        hutch_request request = {.struct_size = sizeof(request),
                                 .argv = argv,
                                 .streams = {HUTCH_STREAM_NONE, HUTCH_STREAM_CAPTURE, HUTCH_STREAM_NONE}};
        hutch_box_options options = {.struct_size = sizeof(options)};
        hutch_result *result = NULL;
        hutch_box *box = NULL;
        hutch_error err = {0};
        char *text = NULL;

        if (hutch_context_new(HUTCH_WARDEN_SELF, &options.context, &err) == 0 &&
            hutch_box_open(in->policy, &options, &box, &err) == 0)
                hutch_box_run(box, &request, &result, &err);
        if (result && result->error.code == HUTCH_OK && result->exit_code == 0 && result->output[HUTCH_STDOUT])
                text = strdup(result->output[HUTCH_STDOUT]);
        hutch_result_free(result);
        hutch_box_close(box);
        hutch_context_free(options.context);
        if (text)
                text[strcspn(text, "\n")] = 0;
        return text;
}

static int why(const struct invocation *in) {
        const char *target = in->args[0];
        hutch_error err = {0};
        char *text, *seen = NULL, *path;
        bool allowed;

        if (hutch_why(in->policy, target, &allowed, &text, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        fputs(text, stdout);
        if (text[0] == '/') { /* the answer for a path begins with it */
                path = strndup(text, (size_t) (strstr(text, ": ") - text));
                seen = path ? probe(in, path_probe, path) : NULL;
                free(path);
                if (seen && strstr(seen, "cannot be read")) /* as a user of the box, even if root started it */
                        allowed = false;
                printf("  %-8s%s\n", "tried", seen ? seen : "not tried: the box has no shell, or cannot be made");
        }
        free(seen);
        hutch_free(text);
        return allowed ? 0 : 1;
}

const struct verb verb_why = {
        .name = "why",
        .synopsis = "[OPTIONS] PATH|HOST[:PORT]",
        .summary = "show whether a box can reach a path or host, and why",
        .min_args = 1,
        .max_args = 1,
        .box_options = HUTCH_OPTION_BOX,
        .preset = HUTCH_PRESET_RUN,
        .run = why,
};
