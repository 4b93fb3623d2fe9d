#include "render.h"

#include <errno.h>
#include <jansson.h>

#include "../base/json.h"
#include "../base/text.h"

const char *finding_severity(hutch_severity severity) {
        return severity == HUTCH_CRITICAL ? "critical" : severity == HUTCH_WARNING ? "warn" : "info";
}

struct counts {
        size_t critical, warn, info, suppressed;
};

static struct counts count(const hutch_finding *f, size_t n) {
        struct counts c = {0};

        for (size_t i = 0; i < n; i++)
                if (f[i].suppressed)
                        c.suppressed++;
                else if (f[i].severity == HUTCH_CRITICAL)
                        c.critical++;
                else if (f[i].severity == HUTCH_WARNING)
                        c.warn++;
                else
                        c.info++;
        return c;
}

int findings_text(const hutch_finding *f, size_t n, size_t files, char **ret) {
        struct counts c = count(f, n);
        struct buf b = {0};

        for (size_t i = 0; i < n; i++) {
                if (f[i].suppressed)
                        continue;
                text_put_clean(&b, f[i].file, strlen(f[i].file));
                buf_printf(&b, "%s%u:%u: %s: %s: %s\n", f[i].file[0] ? ":" : "", f[i].line, f[i].column,
                           finding_severity(f[i].severity), f[i].rule, f[i].reason);
                if (f[i].excerpt[0]) {
                        buf_puts(&b, "    ");
                        text_put_clean(&b, f[i].excerpt, strlen(f[i].excerpt));
                        buf_puts(&b, "\n");
                }
                if (f[i].fix)
                        buf_printf(&b, "    fix: %s\n", f[i].fix);
        }
        buf_printf(&b, "scanned %zu file%s: %zu critical, %zu warn, %zu info", files, files == 1 ? "" : "s", c.critical,
                   c.warn, c.info);
        if (c.suppressed)
                buf_printf(&b, ", %zu suppressed", c.suppressed);
        buf_puts(&b, "\n");
        *ret = buf_take_string(&b);
        return *ret ? 0 : -ENOMEM;
}

static json_t *finding_json(const hutch_finding *f) {
        return json_pack("{s:s, s:s, s:o, s:i, s:i, s:o, s:s, s:s?, s:b, s:o}", "rule", f->rule, "severity",
                         finding_severity(f->severity), "file", json_text(f->file), "line", (int) f->line, "column",
                         (int) f->column, "excerpt", json_text(f->excerpt), "reason", f->reason, "fix", f->fix,
                         "suppressed", f->suppressed, "why", json_text(f->why));
}

static int dump(json_t *root, char **ret) {
        *ret = json_print(root, JSON_INDENT(2));
        json_decref(root);
        return *ret ? 0 : -ENOMEM;
}

int findings_json(const hutch_finding *f, size_t n, size_t files, char **ret) {
        struct counts c = count(f, n);
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, finding_json(&f[i]));
        return dump(json_pack("{s:o, s:{s:I, s:I, s:I, s:I, s:I}}", "findings", list, "summary", "files",
                              (json_int_t) files, "critical", (json_int_t) c.critical, "warn", (json_int_t) c.warn,
                              "info", (json_int_t) c.info, "suppressed", (json_int_t) c.suppressed),
                    ret);
}

/* The rules that have findings, each once. */
static json_t *sarif_rules(const hutch_finding *f, size_t n) {
        json_t *rules = json_array();

        for (size_t i = 0; i < n; i++) {
                bool seen = false;

                for (size_t k = 0; k < i && !seen; k++)
                        seen = strcmp(f[i].rule, f[k].rule) == 0;
                if (seen)
                        continue;
                json_array_append_new(rules,
                                      json_pack("{s:s, s:{s:s}, s:{s:s}}", "id", f[i].rule, "shortDescription", "text",
                                                f[i].reason, "help", "text", f[i].fix ? f[i].fix : f[i].reason));
        }
        return rules;
}

static json_t *sarif_result(const hutch_finding *f) {
        json_t *result =
                json_pack("{s:s, s:s, s:{s:s}, s:[{s:{s:{s:o}, s:{s:i, s:i, s:{s:o}}}}]}", "ruleId", f->rule, "level",
                          f->severity == HUTCH_CRITICAL  ? "error"
                          : f->severity == HUTCH_WARNING ? "warning"
                                                         : "note",
                          "message", "text", f->reason, "locations", "physicalLocation", "artifactLocation", "uri",
                          json_text(f->file), "region", "startLine", (int) f->line, "startColumn", (int) f->column,
                          "snippet", "text", json_text(f->excerpt));

        if (result && f->suppressed)
                json_object_set_new(result, "suppressions",
                                    json_pack("[{s:s, s:o}]", "kind", "inSource", "justification", json_text(f->why)));
        return result;
}

int findings_sarif(const hutch_finding *f, size_t n, char **ret) {
        json_t *results = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(results, sarif_result(&f[i]));
        return dump(json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "$schema",
                              "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
                              "driver", "name", "hutch", "version", hutch_version(), "rules", sarif_rules(f, n),
                              "results", results),
                    ret);
}
