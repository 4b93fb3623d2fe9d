/* hutch export, import: a box's changes as a file, and back. */
#include "cli.h"

#include <stdlib.h>

/* The one word that both take. */
static const char *file_of(const struct cli *cli) {
        if (!cli->paths || cli->paths[1]) {
                cli_complain("%s: name one file: `hutch %s FILE.tar.zst`", cli->verb, cli->verb);
                return NULL;
        }
        return cli->paths[0];
}

int cli_export(struct cli *cli) {
        const char *file = file_of(cli);
        hutch_review *review;
        hutch_error err = {0};
        uint64_t left_out = 0;
        int r;

        if (!file)
                return EXIT_HUTCH;
        if (cli->session) {
                r = hutch_session_export(cli->session, file, &left_out, &err);
                if (r >= 0)
                        printf("session %s exported to %s\n", cli->session, file);
        } else
                r = hutch_review_open(cli->box, cli->dir, &review, &err);
        if (r >= 0 && !cli->session) {
                r = hutch_review_export(review, file, &left_out, &err);
                if (r >= 0)
                        printf("box %s exported to %s\n", hutch_review_id(review), file);
                hutch_review_close(review);
        }
        if (r < 0)
                cli_complain("%s: %s", cli->verb, err.message);
        else if (left_out)
                cli_complain("export: %llu left out: FIFOs, sockets, or names too deep", (unsigned long long) left_out);
        return r < 0 ? EXIT_HUTCH : 0;
}

int cli_import(struct cli *cli) {
        hutch_import_options options = {.struct_size = sizeof(options), .workspace = cli->dir, .force = cli->force};
        const char *file = file_of(cli);
        hutch_error err = {0};
        char *id = NULL;

        if (!file)
                return EXIT_HUTCH;
        if (cli->max_size && hutch_parse_size(cli->max_size, &options.max_bytes, &err) < 0) {
                cli_complain("--max-size: '%s' is not a size (256M, 2G)", cli->max_size);
                return EXIT_HUTCH;
        }
        if (cli->max_entries) {
                char *end;

                options.max_entries = strtoull(cli->max_entries, &end, 10);
                if (*end || !options.max_entries || cli->max_entries[0] == '-') {
                        cli_complain("--max-entries: '%s' is not a number", cli->max_entries);
                        return EXIT_HUTCH;
                }
        }
        if (hutch_import(file, &options, &id, &err) < 0) {
                cli_complain("%s: %s", cli->verb, err.message);
                return EXIT_HUTCH;
        }
        printf("imported as box %s: `hutch diff` shows, `hutch apply` takes, `hutch discard` drops its changes\n", id);
        free(id);
        return 0;
}
