/* hutch apply --patch: shows each hunk and asks whether to apply it, as git does.
 *
 * All questions come first, so that nothing is applied while the user is still choosing. What is in a version control
 * directory belongs together, and is one question. Answers are lines of the standard input; its end is a `q`. */
#include "patch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs.h"

enum answer { YES, NO, QUIT, ALL_OF_FILE, NONE_OF_FILE };

struct asking {
        const hutch_review *review;
        unsigned diff_flags;
        bool quit;
};

static enum answer ask(struct asking *a, const char *question, bool hunk) {
        static const char help[] = "y - apply it\nn - do not apply it\nq - quit; do not apply it or any of the rest\n"
                                   "a - apply it and all later hunks of the file\n"
                                   "d - do not apply it or any later hunk of the file\n? - print help\n";
        char line[64];

        for (;;) {
                printf("%s [y,n,q,%s?]? ", question, hunk ? "a,d," : "");
                fflush(stdout);
                if (!fgets(line, sizeof(line), stdin)) {
                        putchar('\n');
                        a->quit = true;
                        return QUIT;
                }
                if (!isatty(STDIN_FILENO))
                        putchar('\n');
                switch (line[0]) {
                case 'y':
                        return YES;
                case 'n':
                        return NO;
                case 'q':
                        a->quit = true;
                        return QUIT;
                case 'a':
                        if (hunk)
                                return ALL_OF_FILE;
                        break;
                case 'd':
                        if (hunk)
                                return NONE_OF_FILE;
                        break;
                default:
                        break;
                }
                fputs(help, stdout);
        }
}

/* Where hunks begin in a diff, the end of the last one too. Lines of content begin with a sign; only a hunk's head
 * begins with "@@", or with the colour that it is shown in. */
static size_t find_hunks(const char *text, size_t len, size_t **ret) {
        size_t n = 0, room = 0, *starts = NULL;

        for (size_t i = 0; i <= len;) {
                const char *newline = i < len ? memchr(text + i, '\n', len - i) : NULL;
                bool head = i == len || strncmp(text + i, "@@ ", 3) == 0 || strncmp(text + i, "\x1b[36m@@ ", 8) == 0;

                if (head && n + 1 > room) {
                        size_t *grown = reallocarray(starts, room ? room * 2 : 16, sizeof(*grown));

                        if (!grown) {
                                free(starts);
                                return 0;
                        }
                        starts = grown;
                        room = room ? room * 2 : 16;
                }
                if (head)
                        starts[n++] = i;
                if (i == len)
                        break;
                i = newline ? (size_t) (newline - text) + 1 : len;
        }
        *ret = starts;
        return n > 0 ? n - 1 : 0;
}

static int ask_hunks(struct asking *a, const char *text, const size_t *starts, size_t n, struct patch_choice *choice) {
        bool all = false, none = false;
        size_t taken = 0;

        choice->take = calloc(n, sizeof(*choice->take));
        if (!choice->take)
                return -1;
        choice->n = n;
        fwrite(text, 1, starts[0], stdout);
        for (size_t i = 0; i < n && !a->quit && !none; i++) {
                enum answer answer = YES;

                fwrite(text + starts[i], 1, starts[i + 1] - starts[i], stdout);
                if (!all)
                        answer = ask(a, "Apply this hunk", true);
                all = all || answer == ALL_OF_FILE;
                none = answer == NONE_OF_FILE;
                choice->take[i] = answer == YES || answer == ALL_OF_FILE;
                taken += choice->take[i];
        }
        choice->whole = taken == n;
        choice->part = taken > 0 && taken < n;
        return 0;
}

static int ask_change(struct asking *a, size_t index, const hutch_change *change, struct patch_choice *choice) {
        hutch_error err = {0};
        size_t len, n, *starts = NULL;
        char *text;
        int r = 0;

        if (hutch_review_diff(a->review, index, a->diff_flags, &text, &len, &err) < 0) {
                cli_complain("%s", err.message);
                return -1;
        }
        n = find_hunks(text, len, &starts);
        if (n > 1 && change->kind == HUTCH_MODIFIED && (change->new_mode & S_IFMT) == S_IFREG &&
            (change->old_mode & S_IFMT) == S_IFREG)
                r = ask_hunks(a, text, starts, n, choice);
        else {
                fwrite(text, 1, len, stdout);
                choice->whole = ask(a, n > 0 ? "Apply this hunk" : "Apply this change", false) == YES;
        }
        free(starts);
        hutch_free(text);
        return r;
}

int patch_choose(const hutch_review *review, const size_t *chosen, size_t n, unsigned diff_flags,
                 struct patch_choice *choices) {
        struct asking a = {.review = review, .diff_flags = diff_flags};
        bool asked = false, git = false;
        hutch_change change;

        for (size_t i = 0; i < n && !a.quit && hutch_review_change(review, chosen[i], &change); i++) {
                if (!review_is_in_git(change.short_path) || change.is_protected) {
                        if (ask_change(&a, chosen[i], &change, &choices[i]) < 0)
                                return -1;
                        continue;
                }
                if (!asked)
                        git = ask(&a, "Apply all that changed in .git", false) == YES;
                asked = true;
                choices[i].whole = git;
        }
        return 0;
}

void patch_done(struct patch_choice *choices, size_t n) {
        for (size_t i = 0; choices && i < n; i++)
                free(choices[i].take);
        free(choices);
}
