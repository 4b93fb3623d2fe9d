/* hutch boxes, diff, apply: what boxes left, shown or taken. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "patch.h"
#include "verbs.h"

struct review_options {
        const char *box;
        bool json, stat, name_only, force, dry_run, all, merge, patch;
};

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

struct listing {
        bool json;
        size_t n;
};

static void put_box_json(const hutch_box_info *info, size_t n) {
        printf("%s{\"id\":\"%s\",\"in_use\":%s", n ? ",\n " : "[", info->id, info->in_use ? "true" : "false");
        if (!info->in_use) {
                printf(",\"created\":%llu,\"changes\":%llu,\"bytes\":%llu,\"workspace\":",
                       (unsigned long long) info->created, (unsigned long long) info->changes,
                       (unsigned long long) info->bytes);
                cli_put_json(stdout, info->workspace);
                fputs(",\"command\":", stdout);
                cli_put_json(stdout, info->command);
        }
        fputc('}', stdout);
}

static void show_box(void *user, const hutch_box_info *info) {
        struct listing *l = user;
        char age[32];

        if (l->json) {
                put_box_json(info, l->n++);
                return;
        }
        if (l->n++ == 0)
                printf("%-16s %-9s %8s %10s  %-20s  %s\n", "BOX", "AGE", "CHANGES", "BYTES", "WORKSPACE", "COMMAND");
        if (info->in_use) {
                printf("%-16s in use\n", info->id);
                return;
        }
        printf("%-16s %-9s %8llu %10llu  ", info->id, cli_age(info->created, age, sizeof(age)),
               (unsigned long long) info->changes, (unsigned long long) info->bytes);
        cli_put_path(stdout, info->workspace);
        if (info->command && info->command[0]) {
                fputs("  ", stdout);
                cli_put_path(stdout, info->command);
        }
        fputc('\n', stdout);
}

static int boxes(const struct invocation *in) {
        const struct review_options *o = in->options;
        struct listing l = {.json = o->json};
        hutch_error err = {0};

        if (cli_confine(NULL, NULL, 0, NULL) < 0)
                return EXIT_HUTCH;
        if (hutch_boxes(show_box, &l, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        if (l.json)
                puts(l.n ? "]" : "[]");
        else if (l.n == 0)
                puts("no boxes with changes");
        return 0;
}

/* ---- which changes ---- */

int cli_confine(const char *id, const char *dir, unsigned flags, const char *const *writable) {
        hutch_error err = {0};

        if (hutch_review_confine(id, dir, flags, writable, &err) >= 0)
                return 0;
        cli_complain("%s", err.message);
        return -1;
}

static const char *const *paths_of(const struct invocation *in) {
        return in->n_args > 0 ? in->args : NULL; /* NULL: all */
}

static int open_review(const struct invocation *in, unsigned flags, hutch_review **ret) {
        const struct review_options *o = in->options;
        hutch_error err = {0};

        if (cli_confine(o->box, cli_value(in, "dir"), flags, NULL) < 0)
                return -1;
        if (hutch_review_open(o->box, cli_value(in, "dir"), ret, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        return 0;
}

/* Whether each path of the command line chooses something. */
static int check_paths(const struct invocation *in, const hutch_review *review) {
        for (const char *const *p = paths_of(in); p && *p; p++) {
                const char *one[] = {*p, NULL};
                size_t *chosen = NULL, n = 0;
                hutch_error err = {0};

                if (hutch_review_select(review, one, &chosen, &n, &err) < 0) {
                        cli_complain("%s", err.message);
                        return -1;
                }
                hutch_free(chosen);
                if (n == 0) {
                        cli_complain("no changes at '%s'", *p);
                        return -1;
                }
        }
        return 0;
}

/* Which box it is, so that no one has to guess. */
static void put_box(FILE *to, const hutch_review *review) {
        hutch_box_info info;
        char age[32];

        hutch_review_info(review, &info);
        fprintf(to, "box %s: %llu change%s by ", info.id, (unsigned long long) info.changes,
                info.changes == 1 ? "" : "s");
        cli_put_path(to, info.command);
        fprintf(to, ", %s ago\n", cli_age(info.created, age, sizeof(age)));
}

/* ---- diff ---- */

struct pager {
        pid_t pid; /* 0: none */
        FILE *to;
};

/* It is started before this process is confined, because it is the user's own program and may save files. It waits for
 * something to show, and ends where nothing comes. */
static void start_pager(struct pager *ret) {
        const char *pager = getenv("PAGER");
        int ends[2];
        pid_t pid;

        *ret = (struct pager){.to = stdout};
        if (!isatty(STDOUT_FILENO) || (pager && (!pager[0] || !strcmp(pager, "cat"))) || pipe(ends) < 0)
                return;
        pid = fork();
        if (pid == 0) {
                struct pollfd p = {.fd = ends[0], .events = POLLIN};

                dup2(ends[0], STDIN_FILENO);
                close(ends[1]);
                while (poll(&p, 1, -1) < 0 && errno == EINTR)
                        ;
                close(ends[0]);
                if (!(p.revents & POLLIN))
                        _exit(0);
                setenv("LESS", "FRX", 0);
                execl("/bin/sh", "sh", "-c",
                      pager ? pager : "if command -v less >/dev/null; then exec less; else exec cat; fi",
                      (char *) NULL);
                _exit(127);
        }
        close(ends[0]);
        if (pid < 0) {
                close(ends[1]);
                return;
        }
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        *ret = (struct pager){.pid = pid, .to = fdopen(ends[1], "w")};
}

static void end_pager(struct pager *p) {
        if (p->to && p->to != stdout)
                fclose(p->to);
        if (p->pid > 0)
                waitpid(p->pid, NULL, 0);
}

/* The lines that a diff adds and removes; those that hold `text` alone, if it is given. */
static void count_lines(const char *diff, size_t len, const char *text, size_t *added, size_t *removed) {
        bool hunk = false;

        *added = *removed = 0;
        for (const char *line = diff, *end = diff + len; line < end;) {
                const char *newline = memchr(line, '\n', (size_t) (end - line));
                size_t n = newline ? (size_t) (newline - line) : (size_t) (end - line);

                hunk = hunk || (n > 1 && line[0] == '@' && line[1] == '@');
                if (hunk && n > 0 && (!text || memmem(line, n, text, strlen(text)))) {
                        *added += line[0] == '+';
                        *removed += line[0] == '-';
                }
                line += n + 1;
        }
}

/* A line with what became of a change's content; binary and large files have sizes. */
static int show_stat(const hutch_review *review, size_t i, const hutch_change *change, FILE *to) {
        hutch_error err = {0};
        size_t len, added, removed;
        char *text;

        if (hutch_review_diff(review, i, 0, &text, &len, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        count_lines(text, len, NULL, &added, &removed);
        free(text);
        fprintf(to, " %c ", letters[change->kind]);
        cli_put_path(to, change->short_path);
        fprintf(to, " (%llu -> %llu bytes)", (unsigned long long) change->old_size,
                (unsigned long long) change->new_size);
        if (added || removed)
                fprintf(to, " +%zu -%zu", added, removed);
        if (change->kind == HUTCH_MODIFIED && (change->old_mode ^ change->new_mode) & 07777)
                fprintf(to, " mode %04o -> %04o", change->old_mode & 07777, change->new_mode & 07777);
        else if (change->kind == HUTCH_CREATED && S_ISREG(change->new_mode) && change->new_mode & 07002)
                fprintf(to, " mode %04o", change->new_mode & 07777);
        fprintf(to, "%s%s\n", change->is_protected ? " protected" : "", change->note ? ":" : "");
        if (change->note)
                fprintf(to, "     %s\n", change->note);
        return 0;
}

bool review_is_in_git(const char *path) {
        return !strcmp(path, ".git") || !strncmp(path, ".git/", 5) || strstr(path, "/.git/") ||
               (strlen(path) > 5 && !strcmp(path + strlen(path) - 5, "/.git"));
}

/* A directory that was added or removed, and is represented by its entries. */
static bool is_mere_directory(const hutch_review *review, size_t i, const hutch_change *change) {
        uint32_t mode = change->new_mode ? change->new_mode : change->old_mode;
        size_t n = strlen(change->path);
        hutch_change next;

        return (mode & S_IFMT) == S_IFDIR && change->kind != HUTCH_MODIFIED && !change->note &&
               hutch_review_change(review, i + 1, &next) && !strncmp(next.path, change->path, n) && next.path[n] == '/';
}

/* What happened in version control, read from the logs that it keeps of its branches: nothing of the host is run. */
static void show_git(const hutch_review *review, const size_t *chosen, size_t n, FILE *to) {
        static const char heads[] = ".git/logs/refs/heads/";
        size_t hidden = 0;
        hutch_change change;

        for (size_t i = 0; i < n && hutch_review_change(review, chosen[i], &change); i++) {
                const char *log = strstr(change.short_path, heads);
                size_t len, commits, removed;
                hutch_error err = {0};
                char *text;

                if (!review_is_in_git(change.short_path) || change.is_protected)
                        continue;
                hidden++;
                if (!log || (change.new_mode & S_IFMT) != S_IFREG ||
                    hutch_review_diff(review, chosen[i], 0, &text, &len, &err) < 0)
                        continue;
                count_lines(text, len, "\tcommit", &commits, &removed);
                free(text);
                if (commits == 0)
                        continue;
                fprintf(to, "git: %zu commit%s on ", commits, commits == 1 ? "" : "s");
                cli_put_path(to, log + strlen(heads));
                fputc('\n', to);
        }
        if (hidden)
                fprintf(to, "git: %zu change%s in .git (--all shows them)\n", hidden, hidden == 1 ? "" : "s");
}

static unsigned diff_flags(void) {
        const char *term = getenv("TERM");
        bool plain = getenv("NO_COLOR") || !term || !strcmp(term, "dumb");

        return isatty(STDOUT_FILENO) ? HUTCH_DIFF_CLEAN | (plain ? 0 : HUTCH_DIFF_COLOUR) : 0;
}

static int show_chosen(const struct invocation *in, const hutch_review *review, const size_t *chosen, size_t n,
                       FILE *to) {
        const struct review_options *o = in->options;
        unsigned flags = diff_flags();
        bool brief = !o->all && !o->name_only && in->n_args == 0;
        hutch_change change;

        if (!o->name_only)
                put_box(to, review);
        for (size_t i = 0; i < n && hutch_review_change(review, chosen[i], &change); i++) {
                hutch_error err = {0};
                char *text;
                size_t len;

                if (o->name_only) {
                        cli_put_path(to, change.short_path);
                        fputc('\n', to);
                        continue;
                }
                if (brief && ((review_is_in_git(change.short_path) && !change.is_protected) ||
                              (o->stat && is_mere_directory(review, chosen[i], &change))))
                        continue;
                if (o->stat) {
                        if (show_stat(review, chosen[i], &change, to) < 0)
                                return EXIT_HUTCH;
                        continue;
                }
                if (hutch_review_diff(review, chosen[i], flags, &text, &len, &err) < 0) {
                        cli_complain("%s", err.message);
                        return EXIT_HUTCH;
                }
                fwrite(text, 1, len, to);
                free(text);
        }
        if (brief)
                show_git(review, chosen, n, to);
        return 0;
}

static int show_changes(const struct invocation *in, const hutch_review *review, FILE *to) {
        size_t *chosen = NULL, n = 0;
        hutch_error err = {0};
        int status;

        if (hutch_review_select(review, paths_of(in), &chosen, &n, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        status = show_chosen(in, review, chosen, n, to);
        hutch_free(chosen);
        return status;
}

static int show_json(const struct invocation *in, const hutch_review *review) {
        hutch_error err = {0};
        char *text;

        if (hutch_review_to_json(review, paths_of(in), &text, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        puts(text);
        free(text);
        return 0;
}

static int show_diff(const struct invocation *in, const hutch_review *review, const struct pager *pager) {
        const struct review_options *o = in->options;

        if (check_paths(in, review) < 0 || !pager->to)
                return EXIT_HUTCH;
        if (o->json)
                return show_json(in, review);
        if (pager->pid > 0)
                signal(SIGINT, SIG_IGN); /* it is the pager's, and hutch ends after it */
        return show_changes(in, review, pager->to);
}

static int diff(const struct invocation *in) {
        const struct review_options *o = in->options;
        struct pager pager = {.to = stdout};
        hutch_review *review = NULL;
        int status = EXIT_HUTCH;

        if (!o->json)
                start_pager(&pager);
        if (open_review(in, 0, &review) >= 0)
                status = show_diff(in, review, &pager);
        end_pager(&pager);
        hutch_review_close(review);
        return status;
}

/* ---- apply ---- */

struct tally {
        size_t applied, left;
        bool held, conflict;
};

static void show_fate(void *user, const hutch_change *change, hutch_apply_status status, const char *reason) {
        struct tally *tally = user;

        if (status == HUTCH_APPLIED) {
                tally->applied++;
                return;
        }
        tally->left++;
        tally->conflict = tally->conflict || status == HUTCH_CONFLICT;
        tally->held = tally->held || status == HUTCH_HELD_BACK || status == HUTCH_CONFLICT;
        fputs("hutch: not applied: ", stderr);
        cli_put_path(stderr, change->short_path);
        fprintf(stderr, ": %s\n", reason ? reason : "");
}

static unsigned apply_flags(const struct review_options *o) {
        return (o->force ? HUTCH_APPLY_FORCE : 0) | (o->dry_run ? HUTCH_APPLY_DRY_RUN : 0) |
               (o->merge ? HUTCH_APPLY_MERGE : 0);
}

/* What was chosen hunk by hunk: parts of files one by one, then whole changes together. */
static int apply_choices(const struct review_options *o, hutch_review *review, const size_t *chosen, size_t n,
                         const struct patch_choice *choices, struct tally *tally, hutch_error *err) {
        const char **paths = calloc(n + 1, sizeof(*paths));
        size_t n_paths = 0;
        hutch_change change;
        int r = paths ? 0 : -1;

        for (size_t i = 0; r >= 0 && i < n; i++)
                if (choices[i].whole && hutch_review_change(review, chosen[i], &change))
                        paths[n_paths++] = change.path;
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (choices[i].part)
                        r = hutch_review_apply_hunks(review, chosen[i], choices[i].take, choices[i].n, apply_flags(o),
                                                     show_fate, tally, err);
        if (r >= 0 && n_paths > 0)
                r = hutch_review_apply(review, paths, apply_flags(o), show_fate, tally, err);
        free(paths);
        return r;
}

static int apply_patch(const struct invocation *in, hutch_review *review, struct tally *tally, hutch_error *err) {
        struct patch_choice *choices = NULL;
        size_t *chosen = NULL, n = 0;
        int r = hutch_review_select(review, paths_of(in), &chosen, &n, err);

        if (r >= 0) {
                choices = calloc(n + 1, sizeof(*choices));
                if (!choices || patch_choose(review, chosen, n, diff_flags(), choices) < 0)
                        exit(EXIT_HUTCH);
                r = apply_choices(in->options, review, chosen, n, choices, tally, err);
        }
        patch_done(choices, n);
        hutch_free(chosen);
        return r;
}

static int apply(const struct invocation *in) {
        const struct review_options *o = in->options;
        hutch_review *review;
        hutch_error err = {0};
        struct tally tally = {0};
        int r;

        if (open_review(in, HUTCH_CONFINE_APPLY, &review) < 0)
                return EXIT_HUTCH;
        put_box(stdout, review);
        fflush(stdout);
        r = o->patch ? apply_patch(in, review, &tally, &err)
                     : hutch_review_apply(review, paths_of(in), apply_flags(o), show_fate, &tally, &err);
        if (r < 0)
                cli_complain("apply: %s", err.message);
        else
                printf("%zu %sapplied%s", tally.applied, o->dry_run ? "would be " : "", tally.left ? "" : "\n");
        if (r >= 0 && tally.left)
                printf(", %zu not%s\n", tally.left,
                       tally.conflict && !o->merge && !o->force
                               ? " (--merge merges text files; --force takes held and conflicting ones: look first)"
                       : tally.held ? " (--force takes held and conflicting ones: look at them first)"
                                    : "");
        hutch_review_close(review);
        return r < 0 ? EXIT_HUTCH : tally.left ? 1 : 0;
}

/* ---- the verbs ---- */

#define AT(field) OPTION_AT(struct review_options, field)
#define BOX_OPTION                                                                                                     \
        { "box", 0, "ID", "which box (default: the newest of the workspace)", AT(box) }

static const struct option boxes_options[] = {
        {"json", 0, NULL, "print JSON", AT(json)},
        {0},
};

static const struct option diff_options[] = {
        BOX_OPTION,
        {"stat", 0, NULL, "one line for each file", AT(stat)},
        {"name-only", 0, NULL, "names only", AT(name_only)},
        {"all", 0, NULL, "also single changes in .git, and directories", AT(all)},
        {"json", 0, NULL, "print JSON", AT(json)},
        {0},
};

static const struct option apply_options[] = {
        BOX_OPTION,
        {"dry-run", 'n', NULL, "report what would be applied, change nothing", AT(dry_run)},
        {"merge", 0, NULL, "merge text files that the host changed, too", AT(merge)},
        {"patch", 'p', NULL, "choose hunks interactively", AT(patch)},
        {"force", 0, NULL, "also protected names, and files that the host changed since", AT(force)},
        {0},
};

const struct verb verb_boxes = {
        .name = "boxes",
        .synopsis = "[--json]",
        .summary = "list boxes that keep changes",
        .options = boxes_options,
        .size = sizeof(struct review_options),
        .run = boxes,
        .page = "diff",
};

const struct verb verb_diff = {
        .name = "diff",
        .synopsis = "[OPTIONS] [PATH…]",
        .summary = "show what a box changed",
        .max_args = -1,
        .box_options = HUTCH_OPTION_REVIEW,
        .options = diff_options,
        .size = sizeof(struct review_options),
        .run = diff,
};

const struct verb verb_apply = {
        .name = "apply",
        .synopsis = "[OPTIONS] [PATH…]",
        .summary = "apply what a box changed to the host",
        .max_args = -1,
        .box_options = HUTCH_OPTION_REVIEW,
        .options = apply_options,
        .size = sizeof(struct review_options),
        .run = apply,
        .page = "diff",
};
