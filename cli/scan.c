/* hutch scan: scans scripts and prints the findings. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

struct scan_options {
        bool json, sarif, no_suppress;
        const char *max_size;
        struct values rules;
};

static void progress(void *user, const char *file, size_t done, size_t total) {
        enum { WIDTH = 30 };
        size_t full = total ? done * WIDTH / total : WIDTH;
        char bar[WIDTH + 1];

        (void) user;
        (void) file;
        memset(bar, '.', WIDTH);
        memset(bar, '#', full);
        bar[WIDTH] = 0;
        fprintf(stderr, "\rscanning [%s] %zu/%zu\033[K", bar, done, total);
}

static int report(const hutch_findings *findings, const char *format) {
        hutch_error err = {0};
        char *text;

        if (hutch_findings_format(findings, format, &text, &err) < 0) {
                cli_complain("scan: %s", err.message);
                return EXIT_HUTCH;
        }
        fputs(text, stdout);
        if (strcmp(format, "text") != 0)
                fputc('\n', stdout);
        free(text);
        return hutch_findings_critical(findings) ? 1 : 0;
}

static int scan(const struct invocation *in) {
        const struct scan_options *o = in->options;
        hutch_scan_options options = {
                .struct_size = sizeof(options), .rules = o->rules.v, .ignore_suppressions = o->no_suppress};
        hutch_findings *findings;
        hutch_error err = {0};
        int status;

        if (o->max_size && hutch_parse_size(o->max_size, &options.max_bytes, &err) < 0) {
                cli_complain("--max-size: '%s' is not a size (256K, 2M)", o->max_size);
                return EXIT_HUTCH;
        }
        if (isatty(STDERR_FILENO) && isatty(STDOUT_FILENO))
                options.on_file = progress;
        status = hutch_scan_paths(in->args, &options, &findings, &err);
        if (options.on_file)
                fputs("\r\033[K", stderr);
        if (status < 0) {
                cli_complain("scan: %s", err.message);
                return EXIT_HUTCH;
        }
        status = report(findings, o->sarif ? "sarif" : o->json ? "json" : "text");
        hutch_findings_free(findings);
        return status;
}

#define AT(field) OPTION_AT(struct scan_options, field)

static const struct option options[] = {
        {"json", 0, NULL, "print the findings as JSON", AT(json)},
        {"sarif", 0, NULL, "print the findings as SARIF 2.1.0", AT(sarif)},
        {"rules", 0, "FILE", "further rules (YAML); repeatable", AT(rules), .many = true},
        {"no-suppress", 0, NULL, "also report what 'hutch:allow RULE why' suppresses", AT(no_suppress)},
        {"max-size", 0, "SIZE", "scan files up to this size (default: 16M)", AT(max_size)},
        {0},
};

const struct verb verb_scan = {
        .name = "scan",
        .synopsis = "[OPTIONS] FILE|DIR…",
        .summary = "scan scripts for dangerous code",
        .min_args = 1,
        .max_args = -1,
        .options = options,
        .size = sizeof(struct scan_options),
        .run = scan,
};
