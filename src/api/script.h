/* A script that is to be run: what a request means, and everything that is wrong with it. */
#pragma once

#include <limits.h>

#include "api.h"

struct problems {
        hutch_problem *v;
        size_t n;
        bool oom;
};

void problems_add(struct problems *p, const char *part, hutch_severity severity, const struct hutch_error *error);
const hutch_problem *problems_first(const struct problems *p); /* the first for which the script is refused, or NULL */

struct script {
        char path[PATH_MAX], skill[PATH_MAX]; /* real ones; skill "": none */
        char *text;
        size_t len;
        const char *runtime;
        char *interpreter; /* NULL: the script is a program */
        char **argv;
        hutch_findings *findings;
};

/* Reads, resolves and scans; sets in the policy what follows from the request. Goes on after a problem, as far as it
 * can. */
void script_prepare(struct script *s, struct hutch_policy *policy, const struct hutch_exec_request *request,
                    struct problems *problems);
bool script_is_shell(const char *name); /* by the name of the interpreter */
void script_done(struct script *s);
