/* hutch boxes, diff, apply, discard: what boxes left, shown, taken or dropped. */
#include "cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- words ---- */

static const char letters[] = {[HUTCH_CREATED] = 'A', [HUTCH_MODIFIED] = 'M', [HUTCH_DELETED] = 'D'};

void cli_put_path(FILE *to, const char *path) {
        char *text;

        if (hutch_quote_path(path, &text) < 0)
                return;
        fputs(text, to);
        free(text);
}

const char *cli_age(uint64_t created, char *text, size_t room) {
        uint64_t now = (uint64_t) time(NULL), age = now > created ? now - created : 0;

        if (age < 120)
                snprintf(text, room, "%llu s", (unsigned long long) age);
        else if (age < 7200)
                snprintf(text, room, "%llu min", (unsigned long long) age / 60);
        else if (age < 172800)
                snprintf(text, room, "%llu h", (unsigned long long) age / 3600);
        else
                snprintf(text, room, "%llu days", (unsigned long long) age / 86400);
        return text;
}

/* ---- boxes ---- */

static void show_box(void *user, const hutch_box_info *info) {
        size_t *n = user;
        char age[32];

        if ((*n)++ == 0)
                printf("%-16s %-9s %8s %10s  %s\n", "BOX", "AGE", "CHANGES", "BYTES", "WORKSPACE");
        if (info->in_use) {
                printf("%-16s in use\n", info->id);
                return;
        }
        printf("%-16s %-9s %8llu %10llu  ", info->id, cli_age(info->created, age, sizeof(age)),
               (unsigned long long) info->changes, (unsigned long long) info->bytes);
        cli_put_path(stdout, info->workspace);
        fputc('\n', stdout);
}

int cli_boxes(struct cli *cli) {
        hutch_error err = {0};
        size_t n = 0;

        (void) cli;
        if (hutch_boxes(show_box, &n, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        if (n == 0)
                puts("no box has changes");
        return 0;
}

/* ---- which changes ---- */

static int open_review(const struct cli *cli, hutch_review **ret) {
        hutch_error err = {0};

        if (hutch_review_open(cli->box, cli->dir, ret, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        return 0;
}

/* Whether each path of the command line chooses something. */
static int check_paths(const struct cli *cli, const hutch_review *review) {
        for (const char *const *p = cli->paths; p && *p; p++) {
                const char *one[] = {*p, NULL};
                hutch_change change;
                bool found = false;

                for (size_t i = 0; !found && hutch_review_change(review, i, &change); i++)
                        found = hutch_review_chooses(review, i, one);
                if (!found) {
                        cli_complain("diff: nothing at %s was changed", *p);
                        return -1;
                }
        }
        return 0;
}

/* ---- diff ---- */

static FILE *start_pager(pid_t *ret) {
        const char *pager = getenv("PAGER");
        int ends[2];
        pid_t pid;

        *ret = -1;
        if (!isatty(STDOUT_FILENO) || (pager && (!pager[0] || !strcmp(pager, "cat"))) || pipe(ends) < 0)
                return stdout;
        pid = fork();
        if (pid == 0) {
                dup2(ends[0], STDIN_FILENO);
                close(ends[0]);
                close(ends[1]);
                setenv("LESS", "FRX", 0);
                execl("/bin/sh", "sh", "-c",
                      pager ? pager : "if command -v less >/dev/null; then exec less; else exec cat; fi",
                      (char *) NULL);
                _exit(127);
        }
        close(ends[0]);
        if (pid < 0) {
                close(ends[1]);
                return stdout;
        }
        *ret = pid;
        signal(SIGINT, SIG_IGN); /* it is the pager's, and hutch ends after it */
        return fdopen(ends[1], "w");
}

static int show_changes(const struct cli *cli, const hutch_review *review, FILE *to) {
        const char *term = getenv("TERM");
        bool plain = getenv("NO_COLOR") || !term || !strcmp(term, "dumb");
        unsigned flags = isatty(STDOUT_FILENO) ? HUTCH_DIFF_CLEAN | (plain ? 0 : HUTCH_DIFF_COLOUR) : 0;
        hutch_change change;

        for (size_t i = 0; hutch_review_change(review, i, &change); i++) {
                hutch_error err = {0};
                char *text;
                size_t len;

                if (!hutch_review_chooses(review, i, cli->paths))
                        continue;
                if (cli->name_only) {
                        cli_put_path(to, change.short_path);
                        fputc('\n', to);
                        continue;
                }
                if (cli->stat) {
                        fprintf(to, " %c ", letters[change.kind]);
                        cli_put_path(to, change.short_path);
                        fprintf(to, " (%llu -> %llu bytes)%s%s\n", (unsigned long long) change.old_size,
                                (unsigned long long) change.new_size, change.is_protected ? " protected" : "",
                                change.note ? ": " : "");
                        if (change.note)
                                fprintf(to, "     %s\n", change.note);
                        continue;
                }
                if (hutch_review_diff(review, i, flags, &text, &len, &err) < 0) {
                        cli_complain("%s", err.message);
                        return EXIT_HUTCH;
                }
                fwrite(text, 1, len, to);
                free(text);
        }
        return 0;
}

static int show_json(const struct cli *cli, const hutch_review *review) {
        hutch_error err = {0};
        char *text;

        if (hutch_review_to_json(review, cli->paths, &text, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        puts(text);
        free(text);
        return 0;
}

static int show_paged(const struct cli *cli, const hutch_review *review) {
        pid_t pager;
        FILE *to = start_pager(&pager);
        int status = to ? show_changes(cli, review, to) : EXIT_HUTCH;

        if (to && to != stdout)
                fclose(to);
        if (pager > 0)
                waitpid(pager, NULL, 0);
        return status;
}

int cli_diff(struct cli *cli) {
        hutch_review *review;
        int status;

        if (open_review(cli, &review) < 0)
                return EXIT_HUTCH;
        if (check_paths(cli, review) < 0)
                status = EXIT_HUTCH;
        else if (cli->json)
                status = show_json(cli, review);
        else
                status = show_paged(cli, review);
        hutch_review_close(review);
        return status;
}

/* ---- apply ---- */

struct tally {
        size_t applied, left;
        bool held;
};

static void show_fate(void *user, const hutch_change *change, hutch_apply_status status, const char *reason) {
        struct tally *tally = user;

        if (status == HUTCH_APPLIED) {
                tally->applied++;
                return;
        }
        tally->left++;
        tally->held = tally->held || status == HUTCH_HELD_BACK || status == HUTCH_CONFLICT;
        fputs("hutch: not applied: ", stderr);
        cli_put_path(stderr, change->short_path);
        fprintf(stderr, ": %s\n", reason ? reason : "");
}

int cli_apply(struct cli *cli) {
        hutch_review *review;
        hutch_error err = {0};
        struct tally tally = {0};
        int r;

        if (open_review(cli, &review) < 0)
                return EXIT_HUTCH;
        r = hutch_review_apply(review, cli->paths, cli->force ? HUTCH_APPLY_FORCE : 0, show_fate, &tally, &err);
        if (r < 0)
                cli_complain("apply: %s", err.message);
        else
                printf("%zu applied%s", tally.applied, tally.left ? "" : "\n");
        if (r >= 0 && tally.left)
                printf(", %zu not%s\n", tally.left,
                       tally.held ? " (--force takes held and conflicting ones: look at them first)" : "");
        hutch_review_close(review);
        return r < 0 ? EXIT_HUTCH : tally.left ? 1 : 0;
}

/* ---- discard ---- */

struct old {
        uint64_t before;
        size_t n;
        char ids[4096][32];
};

static void note_old(void *user, const hutch_box_info *info) {
        struct old *old = user;

        if (!info->in_use && info->created <= old->before && old->n < sizeof(old->ids) / sizeof(old->ids[0]))
                snprintf(old->ids[old->n++], sizeof(old->ids[0]), "%s", info->id);
}

static int discard_box(const char *id, const char *dir, const char *const *paths) {
        hutch_review *review;
        hutch_error err = {0};
        int r;

        r = hutch_review_open(id, dir, &review, &err);
        if (r >= 0) {
                r = hutch_review_discard(review, paths, &err);
                hutch_review_close(review);
        }
        if (r < 0)
                cli_complain("discard: %s", err.message);
        return r < 0 ? -1 : 0;
}

static int discard_old(const char *age) {
        struct old *old = calloc(1, sizeof(*old));
        hutch_error err = {0};
        uint64_t seconds;
        int status = 0;

        if (!old || hutch_parse_duration(age, &seconds, &err) < 0) {
                cli_complain("--older-than: %s", old ? err.message : "out of memory");
                free(old);
                return EXIT_HUTCH;
        }
        seconds /= 1000;
        old->before = (uint64_t) time(NULL) > seconds ? (uint64_t) time(NULL) - seconds : 0;
        if (hutch_boxes(note_old, old, &err) < 0) {
                cli_complain("%s", err.message);
                status = EXIT_HUTCH;
        }
        for (size_t i = 0; i < old->n; i++)
                if (discard_box(old->ids[i], NULL, NULL) < 0)
                        status = EXIT_HUTCH;
        printf("%zu box%s discarded\n", old->n, old->n == 1 ? "" : "es");
        free(old);
        return status;
}

int cli_discard(struct cli *cli) {
        if (cli->older_than)
                return discard_old(cli->older_than);
        return discard_box(cli->box, cli->dir, cli->paths) < 0 ? EXIT_HUTCH : 0;
}
