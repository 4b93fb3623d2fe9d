#pragma once
#include "rules.h"
int regex_new(const char *pattern, bool jit, struct regex **ret, struct hutch_error *err);
void regex_free(struct regex *regex);
