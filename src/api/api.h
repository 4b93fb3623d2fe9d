/* What the files of the API share. Only what hutch.h declares leaves the library. */
#pragma once

#include "../box/box.h"
#include "check.h"

/* A request in this version's layout, whatever layout the caller used. */
void request_read(const struct hutch_request *request, struct hutch_request *ret);

/* The result of a run, with what `events`, `output` and `tracked` hold moved into it. plan and tracked may be NULL
 * where none was made. */
int result_new(const struct plan *plan, const struct outcome *outcome, struct events *events, struct buf output[3],
               struct tracked *tracked, struct hutch_result **ret);

/* hutch_scan() with a text of rules beside those of the options. */
int scan_with_rules(const char *text, size_t len, const char *language, const hutch_scan_options *options,
                    const char *rules, hutch_findings **ret, hutch_error *err);

/* What hutch_exec() adds to a result: findings, and the files that were left, which it takes over. */
struct output_files {
        hutch_output_file **v; /* NULL-terminated; NULL: none */
        size_t n;
};

int result_add(struct hutch_result *result, const struct events *events, struct output_files *files);
void output_files_done(struct output_files *files);

int context_probe(hutch_context *context, struct probes *ret, struct hutch_error *err);

/* Whether the namespace backend is available, and if not what prevents it. */
bool doctor_has_landlock(const struct probes *p);
bool doctor_is_strong(const struct probes *p);
void doctor_first_gap(const struct probes *p, char *ret, size_t room);
