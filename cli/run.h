/* The options of verbs that run a command in a separate box. */
#pragma once

#include "cli.h"

struct run_options {
        const char *text, *stdin_from, *result, *box, *shell, *request;
        bool json, json_lines, capture, quiet, die_with_parent;
};

struct explain_options {
        const char *text;
        bool json;
};

/* Runs what is to be run; *ret stays NULL where not even a result exists. */
typedef int cli_runner(void *data, const hutch_request *request, hutch_result **ret, hutch_error *err);

/* The streams, the result and the exit status around a run; argv NULL: the text of -c. */
int cli_run_with(const struct invocation *in, const char *const *argv, cli_runner *runner, void *data);
