/* Findings for people, as JSON and as SARIF 2.1.0. */
#pragma once

#include "../base/buf.h"
#include "../base/error.h"

int findings_text(const hutch_finding *findings, size_t n, size_t files, char **ret);
int findings_json(const hutch_finding *findings, size_t n, size_t files, char **ret);
int findings_sarif(const hutch_finding *findings, size_t n, char **ret);
const char *finding_severity(hutch_severity severity);
