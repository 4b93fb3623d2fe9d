/* The verbs of the command; each is defined in the file of its subject. */
#pragma once

#include "cli.h"

extern const struct verb verb_run, verb_shell, verb_session, verb_boxes, verb_diff, verb_apply, verb_discard,
        verb_snapshot, verb_restore, verb_fork, verb_export, verb_import, verb_exec, verb_scan, verb_explain,
        verb_doctor, verb_init, verb_trust, verb_profiles, verb_image, verb_help, verb_version, verb_wrap;
