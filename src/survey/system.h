#pragma once

#include "survey.h"

/* Fills the fields that survey.h documents as known with --cow / only. */
int survey_look_at_layers(struct survey *s);

/* How much of the machine a policy's limits leave. */
int survey_look_at_machine(struct survey *s, const struct hutch_policy *policy);
