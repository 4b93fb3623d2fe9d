/* hutch export, import: a box's changes as a file, and back. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

struct archive_options {
        const char *box, *session, *max_size, *max_entries, *map;
        bool force, workspace_only;
};

/* The file is made beside its place first. */
static int confine_to_directory_of(const char *file) {
        const char *slash = strrchr(file, '/');
        size_t n = slash ? (size_t) (slash - file) : 0;
        char *directory = !slash ? strdup(".") : n == 0 ? strdup("/") : strndup(file, n);
        const char *writable[] = {directory, NULL};
        int r = directory ? cli_confine(NULL, NULL, 0, writable) : -1;

        free(directory);
        return r;
}

static int export_box(const struct invocation *in) {
        const struct archive_options *o = in->options;
        const char *file = in->args[0];
        hutch_review *review;
        hutch_error err = {0};
        uint64_t left_out = 0;
        int r;

        if (!o->session && confine_to_directory_of(file) < 0)
                return EXIT_HUTCH;
        if (o->session) {
                r = o->workspace_only ? hutch_session_export_workspace(o->session, file, &left_out, &err)
                                      : hutch_session_export(o->session, file, &left_out, &err);
                if (r >= 0)
                        printf("session %s exported to %s\n", o->session, file);
        } else
                r = hutch_review_open(o->box, cli_value(in, "dir"), &review, &err);
        if (r >= 0 && !o->session) {
                r = o->workspace_only ? hutch_review_export_workspace(review, file, &left_out, &err)
                                      : hutch_review_export(review, file, &left_out, &err);
                if (r >= 0)
                        printf("box %s exported to %s\n", hutch_review_id(review), file);
                hutch_review_close(review);
        }
        if (r < 0)
                cli_complain("%s: %s", cli_verb_name(in), err.message);
        else if (left_out)
                cli_complain("export: %llu left out: FIFOs, sockets, or names too deep", (unsigned long long) left_out);
        return r < 0 ? EXIT_HUTCH : 0;
}

#define MAPS_MOST 32

struct maps {
        char *text;
        const char *list[MAPS_MOST + 1]; /* NULL-terminated, into the text */
};

/* "/a=b,/c=d": a comma begins the next one if an absolute path follows. */
static int split_maps(const char *option, struct maps *ret) {
        size_t n = 0;

        ret->text = strdup(option);
        for (char *at = ret->text; at && n < MAPS_MOST; n++) {
                char *comma = strstr(at, ",/"), *equals;

                if (comma)
                        *comma = 0;
                equals = strchr(at, '=');
                if (at[0] != '/' || !equals || !equals[1])
                        break;
                ret->list[n] = at;
                at = comma ? comma + 1 : NULL;
                if (!at)
                        return 0;
        }
        cli_complain("--map: '%s' is not OLD=NEW, where OLD is an absolute path; commas separate several", option);
        free(ret->text);
        return -1;
}

static int import_box(const struct invocation *in) {
        const struct archive_options *o = in->options;
        hutch_import_options options = {.struct_size = sizeof(options),
                                        .workspace = cli_value(in, "dir"),
                                        .force = o->force,
                                        .workspace_only = o->workspace_only};
        const char *file = in->args[0];
        hutch_error err = {0};
        struct maps maps = {0};
        char *id = NULL;
        int r;

        if (o->max_size && hutch_parse_size(o->max_size, &options.max_bytes, &err) < 0) {
                cli_complain("--max-size: '%s' is not a size (256M, 2G)", o->max_size);
                return EXIT_HUTCH;
        }
        if (o->max_entries) {
                char *end;

                options.max_entries = strtoull(o->max_entries, &end, 10);
                if (*end || !options.max_entries || o->max_entries[0] == '-') {
                        cli_complain("--max-entries: '%s' is not a number", o->max_entries);
                        return EXIT_HUTCH;
                }
        }
        if (o->map && split_maps(o->map, &maps) < 0)
                return EXIT_HUTCH;
        options.maps = maps.list;
        if (cli_confine(NULL, NULL, HUTCH_CONFINE_IMPORT, NULL) < 0)
                return EXIT_HUTCH;
        r = hutch_import(file, &options, &id, &err);
        free(maps.text);
        if (r < 0) {
                cli_complain("%s: %s", cli_verb_name(in), err.message);
                return EXIT_HUTCH;
        }
        puts(id);
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "imported %s; review with 'hutch diff'\n", file);
        free(id);
        return 0;
}

#define AT(field) OPTION_AT(struct archive_options, field)

#define WORKSPACE_ONLY                                                                                                 \
        { "workspace-only", 0, NULL, "without a session's home, /tmp and system", AT(workspace_only) }

static const struct option export_options[] = {
        {"box", 0, "ID", "which box (default: the newest of the workspace)", AT(box)},
        {"session", 0, "NAME", "of a session instead of a box", AT(session)},
        WORKSPACE_ONLY,
        {0},
};

static const struct option import_options[] = {
        WORKSPACE_ONLY,
        {"force", 0, NULL, "also links that lead out of the workspace", AT(force)},
        {"max-size", 0, "SIZE", "the most bytes it may hold (default: 16G)", AT(max_size)},
        {"map", 0, "OLD=NEW", "where a further directory of the box is here; commas separate several", AT(map)},
        {"max-entries", 0, "NUMBER", "the most entries it may hold (default: 1000000)", AT(max_entries)},
        {0},
};

const struct verb verb_export = {
        .name = "export",
        .synopsis = "[OPTIONS] FILE.tar.zst",
        .summary = "write a box's changes to a file",
        .min_args = 1,
        .max_args = 1,
        .box_options = HUTCH_OPTION_REVIEW,
        .options = export_options,
        .size = sizeof(struct archive_options),
        .run = export_box,
};

const struct verb verb_import = {
        .name = "import",
        .synopsis = "[OPTIONS] FILE.tar.zst",
        .summary = "make a box from an exported file",
        .min_args = 1,
        .max_args = 1,
        .box_options = HUTCH_OPTION_REVIEW,
        .options = import_options,
        .size = sizeof(struct archive_options),
        .run = import_box,
        .page = "export",
};
