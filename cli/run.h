/* The options of verbs that run a command in a box of its own. */
#pragma once

#include "cli.h"

struct run_options {
        const char *text, *stdin_from, *result, *box, *shell, *request;
        bool json, json_lines, capture, quiet, die_with_parent;
};
