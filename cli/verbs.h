/* The verbs of the command; each is defined in the file of its subject. */
#pragma once

#include "cli.h"

extern const struct verb verb_run;
extern const struct verb verb_shell;
extern const struct verb verb_session;
extern const struct verb verb_boxes;
extern const struct verb verb_diff;
extern const struct verb verb_apply;
extern const struct verb verb_discard;
extern const struct verb verb_snapshot;
extern const struct verb verb_restore;
extern const struct verb verb_fork;
extern const struct verb verb_export;
extern const struct verb verb_import;
extern const struct verb verb_exec;
extern const struct verb verb_scan;
extern const struct verb verb_wrap;
extern const struct verb verb_explain;
extern const struct verb verb_why;
extern const struct verb verb_doctor;
extern const struct verb verb_init;
extern const struct verb verb_trust;
extern const struct verb verb_profiles;
extern const struct verb verb_image;
extern const struct verb verb_help;
extern const struct verb verb_version;
