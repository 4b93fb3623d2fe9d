/* Random shell text: whatever a text is, the next run answers in step, within its time. Texts come from a grammar of
 * shell (some of it cut, doubled or with bytes changed) and some are random bytes. Seeds are fixed; HUTCH_LONG=1 takes
 * more of them, from the clock, and SESSION_SEED takes one. */
#include "scene.h"

#include <time.h>

static uint64_t state;

static unsigned draw(unsigned n) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (unsigned) ((state >> 11) % n);
}

struct text {
        char data[4096];
        size_t len;
};

static void put(struct text *t, const char *s) {
        size_t n = strlen(s);

        if (t->len + n < sizeof(t->data) - 1) {
                memcpy(t->data + t->len, s, n);
                t->len += n;
        }
}

static const char *pick(const char *const *list, size_t n) {
        return list[draw((unsigned) n)];
}
#define PICK(list) pick(list, sizeof(list) / sizeof((list)[0]))

static const char *const words[] = {"a",         "b c",      "$x",       "\"$x\"", "'q'",  "${x:-d}", "${y[@]}",
                                    "$(echo s)", "`echo t`", "$((1+x))", "*",      "~",    "$?",      "$!",
                                    "$$",        "{1..3}",   "-n",       "--",     "\\\\", "$'\\n'",  "<(echo p)",
                                    "${x:?}",    "${!x}",    "${x@Q}",   "ä",      "\xff", "''",      "\"\"",
                                    "1",         "[",        "]"};
static const char *const simple[] = {"echo",
                                     "printf",
                                     "true",
                                     "false",
                                     ":",
                                     "cd /",
                                     "cd -",
                                     "cd",
                                     "x=1",
                                     "x=",
                                     "y=(1 2)",
                                     "declare -A m",
                                     "export x",
                                     "unset x y",
                                     "read v",
                                     "test -f",
                                     "[ a = b ]",
                                     "set",
                                     "set --",
                                     "set -e",
                                     "set +e",
                                     "set -u",
                                     "set +u",
                                     "set -f",
                                     "set +f",
                                     "set -x",
                                     "set +x",
                                     "set -o pipefail",
                                     "shopt -s nullglob",
                                     "umask 022",
                                     "trap 'echo t' USR1",
                                     "trap - USR1",
                                     "trap 'x=2' EXIT",
                                     "trap - EXIT",
                                     "trap 'echo e' ERR",
                                     "trap 'echo d' DEBUG",
                                     "trap - DEBUG ERR",
                                     "trap '' INT",
                                     "trap - INT",
                                     "kill -USR1 $$",
                                     "kill -INT $$",
                                     "kill -TERM $$",
                                     "kill -9 $$",
                                     "exit",
                                     "exit 3",
                                     "return",
                                     "return 2",
                                     "exec true",
                                     "exec 2>&1",
                                     "exec >/dev/null",
                                     "exec 5>&1",
                                     "exec 5>&-",
                                     "eval echo",
                                     "eval 'echo '",
                                     "history",
                                     "jobs",
                                     "wait",
                                     "fg",
                                     "bg",
                                     "disown",
                                     "alias a=echo",
                                     "unalias -a",
                                     "a",
                                     "f",
                                     "g",
                                     "type f",
                                     "hash -r",
                                     "cat",
                                     "cat /dev/null",
                                     "ls /",
                                     "head -c 10 /dev/zero",
                                     "sleep 0.01",
                                     "env",
                                     "sh -c 'exit 4'",
                                     "bash -c 'kill -9 $$'",
                                     "nonsense",
                                     "builtin echo",
                                     "command echo",
                                     "let x=1",
                                     "((x++))",
                                     "[[ a == b ]]",
                                     "shift",
                                     "getopts ab o",
                                     "break",
                                     "continue",
                                     "local z",
                                     "readonly r=1",
                                     "r=2",
                                     "times",
                                     "ulimit -c 0",
                                     "pushd /",
                                     "popd",
                                     "dirs",
                                     "source /dev/null",
                                     ". /nonexistent",
                                     "suspend",
                                     "logout",
                                     "set -m",
                                     "set +m",
                                     "set -n",
                                     "set -v",
                                     "set +v",
                                     "enable -n echo",
                                     "enable echo",
                                     "unset -f f",
                                     "PROMPT_COMMAND='x=3'",
                                     "PS1='$ '",
                                     "IFS=:",
                                     "IFS=",
                                     "unset IFS",
                                     "PATH=",
                                     "PATH=/usr/bin:/bin",
                                     "LC_ALL=C",
                                     "BASH_ENV=/dev/null",
                                     "unset HOME",
                                     "printf '\\0'",
                                     "printf 'R1 0\\0'",
                                     "echo 'D'",
                                     "exec 198>&-",
                                     "exec 9>&-",
                                     "exec <&-",
                                     "exec 0</dev/null",
                                     "kill -STOP $$",
                                     "set -o posix",
                                     "set +o posix"};
static const char *const joints[] = {"; ", " && ", " || ", " | ", "\n", " & ", " |& ", ";", "\n\n", " ; ; "};
static const char *const redirections[] = {
        " >/dev/null",        " 2>&1",         " </dev/null", " >>/tmp/f", " >&2", " <<<w",
        " <<X\nhere $x\nX\n", " <<'Y'\nraw\n", " 3>&1",       " >&-",      " <&-", " >/no/such",
        " &>/dev/null",       " 198>&1",       " <>/dev/null"};

static void command(struct text *t, int depth);

static void list(struct text *t, int depth) {
        command(t, depth);
        while (draw(3) == 0) {
                put(t, PICK(joints));
                command(t, depth);
        }
}

static void command(struct text *t, int depth) {
        switch (depth > 3 ? 0 : draw(14)) {
        case 1:
                put(t, "if ");
                list(t, depth + 1);
                put(t, "; then ");
                list(t, depth + 1);
                put(t, "; fi");
                break;
        case 2:
                put(t, "for i in ");
                put(t, PICK(words));
                put(t, "; do ");
                list(t, depth + 1);
                put(t, "; done");
                break;
        case 3:
                put(t, "(");
                list(t, depth + 1);
                put(t, ")");
                break;
        case 4:
                put(t, "{ ");
                list(t, depth + 1);
                put(t, "; }");
                break;
        case 5:
                put(t, draw(2) ? "f() { " : "function g { ");
                list(t, depth + 1);
                put(t, "; }");
                break;
        case 6:
                put(t, "case ");
                put(t, PICK(words));
                put(t, " in *) ");
                list(t, depth + 1);
                put(t, ";; esac");
                break;
        case 7:
                put(t, "x=$(");
                list(t, depth + 1);
                put(t, ")");
                break;
        case 8:
                put(t, "! ");
                command(t, depth + 1);
                break;
        case 9:
                put(t, "while ");
                list(t, depth + 1);
                put(t, "; do ");
                list(t, depth + 1);
                put(t, "; break; done");
                break;
        default:
                put(t, PICK(simple));
                for (unsigned n = draw(4); n > 0; n--) {
                        put(t, " ");
                        put(t, PICK(words));
                }
        }
        if (draw(5) == 0)
                put(t, PICK(redirections));
}

static void make(struct text *t) {
        t->len = 0;
        if (draw(12) == 0)
                for (unsigned n = draw(200) + 1; n > 0; n--)
                        t->data[t->len++] = (char) (draw(255) + 1);
        else
                list(t, 0);
        for (unsigned n = draw(4) == 0 ? draw(4) + 1 : 0; n > 0 && t->len > 1; n--)
                switch (draw(4)) {
                case 0:
                        t->len = draw((unsigned) t->len) + 1;
                        break; /* cut */
                case 1:
                        t->data[draw((unsigned) t->len)] = (char) (draw(255) + 1);
                        break; /* changed */
                case 2:
                        t->data[draw((unsigned) t->len)] = "'\"`$(){}\\\n;&|<>#"[draw(16)];
                        break; /* meaning */
                default:
                        put(t, "\n'");
                        break;
                }
        t->data[t->len] = 0;
}

/* The token is printed by a path and not by a name: texts may have given the name another meaning. */
static bool answers(hutch_box *box, unsigned i) {
        char text[96], want[32];
        hutch_result *r;
        bool good;

        snprintf(want, sizeof(want), "T%08x%06x\n", (unsigned) (state & 0xffffffff), i);
        snprintf(text, sizeof(text), "/bin/echo %s", want);
        r = run_for(box, text, 20000);
        /* A trap of an earlier text may add lines; a token of another run is never there. */
        good = tap_ret == 0 && !r->killed && strstr(r->output[1], want);
        for (const char *at = r->output[1]; good && (at = strchr(at, 'T')); at++)
                if (strspn(at + 1, "0123456789abcdef") == 14 && strncmp(at, want, 15))
                        good = false;
        if (!good)
                printf("#   want '%s', got '%s', stderr '%s', exit %d, reason %d, notice '%s', error '%s'\n", want,
                       r->output[1], r->output[2], r->exit_code, r->kill_reason, notice_of(r), r->error.message);
        hutch_result_free(r);
        return good;
}

/* One session, many texts, with a new one now and then; true if all of it was in step. */
static bool feed(hutch_context *context, const char *shell, uint64_t seed, unsigned n) {
        hutch_box *box = open_session(context, shell);
        struct text t;
        bool good = true;

        state = seed * 0x9e3779b97f4a7c15u + 1;
        for (unsigned i = 0; good && i < n; i++) {
                hutch_result *r;
                double began = now_ms();

                make(&t);
                if (getenv("SESSION_SEED"))
                        printf("# %u: %s\n", i, t.data), fflush(stdout);
                r = run_for(box, t.data, 400);
                good = (tap_ret == 0 || r->error.code == HUTCH_E_USAGE) && now_ms() - began < 25000;
                hutch_result_free(r);
                good = good && answers(box, i);
                if (!good)
                        printf("#   seed %llu, text %u (%.0f ms): %s\n#   %s\n", (unsigned long long) seed, i,
                               now_ms() - began, t.data, tap_err.message);
                if (i % 40 == 39)
                        good = good && hutch_box_reset(box, &tap_err) == 0 && in_step(box);
        }
        hutch_box_close(box);
        return good;
}

int main(void) {
        const char *one = getenv("SESSION_SEED");
        hutch_context *context = new_context();
        uint64_t first = one ? strtoull(one, NULL, 10) : is_long() ? (uint64_t) time(NULL) * 1000 : 1;
        unsigned seeds = one ? 1 : is_long() ? 60 : 3, texts = is_long() ? 300 : 80;

        for (uint64_t seed = first; seed < first + seeds; seed++) {
                ok(feed(context, "/bin/bash", seed, texts), "bash, seed %llu: %u texts, in step after each",
                   (unsigned long long) seed, texts);
                ok(feed(context, "/bin/dash", seed, texts), "dash, seed %llu: the same", (unsigned long long) seed);
                if (access("/bin/busybox", X_OK) == 0)
                        ok(feed(context, "/bin/busybox", seed, texts), "busybox, seed %llu: the same",
                           (unsigned long long) seed);
                else
                        ok(true, "busybox # SKIP there is no busybox: install busybox-static");
        }
        hutch_context_free(context);
        return done_testing();
}
