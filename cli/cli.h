/* What the files of the command share. The command stands on the public header alone. */
#pragma once

#include <hutch/hutch.h>
#include <stdio.h>

enum { EXIT_HUTCH = 125 };

/* What the command line said, policy apart. */
struct cli {
        hutch_policy *policy;
        const char *verb;        /* "run", "explain", … */
        const char *command;     /* -c */
        const char *const *argv; /* the command and its arguments */
        const char *stdin_from;  /* inherit, none or a file */
        const char *result_file;
        bool json, capture, help, version;
        /* of the verbs that review */
        const char *const *paths; /* NULL: all */
        const char *box, *dir, *older_than;
        const char *max_size, *max_entries; /* of import */
        bool stat, name_only, force;
        /* of sessions */
        const char *shell, *idle_timeout, *timeout, *output_cap;
        const char *env[64];    /* NAME=VALUE for one run */
        size_t n_env;           /* may be more than there is room for */
        const char *box_option; /* the last one that shapes a box, beside those that a run may have too */
        bool discard, stop, copy;
        const char *session; /* which one to snapshot, restore or fork */
        const char *remove;  /* of snapshots */
        bool list;
};

/* Reads argv; complains and returns -1 if it makes no sense. */
int cli_parse(int argc, char **argv, struct cli *ret);

int cli_run(struct cli *cli);
int cli_explain(struct cli *cli);
int cli_doctor(struct cli *cli);
int cli_shell(struct cli *cli);
int cli_session(struct cli *cli);
int cli_boxes(struct cli *cli);
int cli_diff(struct cli *cli);
int cli_apply(struct cli *cli);
int cli_discard(struct cli *cli);
int cli_snapshot(struct cli *cli);
int cli_restore(struct cli *cli);
int cli_fork(struct cli *cli);
int cli_export(struct cli *cli);
int cli_import(struct cli *cli);

void cli_usage(FILE *to);

/* A path or a name as git shows it, and how long ago something was. */
void cli_put_path(FILE *to, const char *path);
const char *cli_age(uint64_t created, char *text, size_t room);

/* One line on stderr, `hutch: …`, cleaned of whatever a terminal would obey. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether a notice is told without being asked for; the others `hutch explain` tells. */
bool cli_notice_matters(const char *notice);
