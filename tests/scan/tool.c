/* scan-tool RULES parse|time FILE…: the scanner's parts without the helper, for tests and the bench.
 *
 * parse: prints "ok" or "error" for each file, as `bash -n` would judge it. time: scans each file and prints bytes and
 * seconds of all. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "base/io.h"
#include "scan/scan.h"
#include "scan/sh.h"

static double now(void) {
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void parse(const char *file, const char *text, size_t len) {
        struct arena arena = {.most = (size_t) 1 << 30};
        struct sh_parse p;

        (void) sh_parse(&p, &arena, text, len, 0);
        printf("%s %s\n", p.has_error ? "error" : "ok", file);
        arena_done(&arena);
}

int main(int argc, char **argv) {
        struct rules *rules = NULL;
        struct hutch_error err = {0};
        double seconds = 0;
        size_t bytes = 0, len;
        char *text;

        if (argc < 3 || read_whole_file(AT_FDCWD, argv[1], 1 << 22, &text, &len) < 0)
                return 2;
        if (rules_new(false, &rules, &err) < 0 || rules_add_yaml(rules, argv[1], text, len, &err) < 0 ||
            rules_finish(rules, &err) < 0) {
                fprintf(stderr, "%s\n", err.message);
                return 2;
        }
        free(text);
        for (int i = 3; i < argc; i++) {
                struct scan s;
                double begun;

                if (read_whole_file(AT_FDCWD, argv[i], 1 << 28, &text, &len) < 0)
                        continue;
                if (strcmp(argv[2], "parse") == 0)
                        parse(argv[i], text, len);
                else {
                        begun = now();
                        scan_init(&s, rules);
                        scan_file(&s, argv[i], text, len, 0);
                        if (strcmp(argv[2], "list") == 0)
                                for (size_t k = 0; k < s.n_findings; k++)
                                        printf("%s:%u:%u %d %s\n", argv[i], s.findings[k].line, s.findings[k].column,
                                               (int) s.findings[k].severity, s.findings[k].rule);
                        scan_done(&s);
                        seconds += now() - begun;
                        bytes += len;
                }
                free(text);
        }
        if (strcmp(argv[2], "time") == 0)
                printf("%zu bytes %.6f seconds\n", bytes, seconds);
        rules_free(rules);
        return 0;
}
