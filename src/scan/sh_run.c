/* Commands inside of commands: wrappers (sudo, env, xargs, …), interpreters that are given a text, scripts that the
 * script itself wrote or fetched; and the few commands whose output is known without running them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sh_eval.h"

#define INNER_MOST 12
#define ALIAS_COST 256 /* of the bytes for calls */

static const struct value unknown;

/* Programs that run the command in their arguments. */
static const struct wrapper {
        const char *name, *valued; /* letters of options that take a value */
        unsigned positional;       /* own words before the command */
} wrappers[] = {
        {"env", "uCS", 0},
        {"sudo", "ugpCcrtThD", 0},
        {"doas", "uC", 0},
        {"xargs", "IdEnPsLa", 0},
        {"timeout", "ks", 1},
        {"nice", "n", 0},
        {"ionice", "cnp", 0},
        {"nohup", "", 0},
        {"setsid", "", 0},
        {"stdbuf", "ioe", 0},
        {"command", "", 0},
        {"builtin", "", 0},
        {"exec", "a", 0},
        {"busybox", "", 0},
        {"time", "fo", 0},
        {"chroot", "", 1},
        {"unshare", "", 0},
        {"nsenter", "t", 0},
        {"strace", "eops", 0},
        {"watch", "n", 0},
        {"parallel", "jI", 0},
        {"torify", "", 0},
        {"proxychains", "f", 0},
        {"flock", "wE", 1},
        {"toybox", "", 0},
        {"setarch", "", 0},
        {"taskset", "", 1},
        {"chrt", "", 1},
        {"runuser", "ugs", 0},
        {"systemd-run", "pu", 0},
        {"ltrace", "eo", 0},
        {"firejail", "", 0},
        {"fakeroot", "", 0},
        {"catchsegv", "", 0},
        {"rlwrap", "", 0},
        {"daemonize", "cpoe", 0},
        {"start-stop-daemon", "nxpu", 0},
        {"sg", "", 1},
        {"coproc", "", 0},
        {"then", "", 0},
};

bool is_shell_name(const char *name) {
        static const char *const shells[] = {"sh",   "bash",  "dash", "ash",   "ksh", "zsh",
                                             "mksh", "rbash", "fish", "ksh93", "posh"};

        for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
                if (streq(name, shells[i]))
                        return true;
        return false;
}

static enum scan_language interpreter(const char *name, char *ret_letter) {
        static const struct {
                const char *name;
                enum scan_language language;
                char letter;
        } known[] = {{"python", LANG_PYTHON, 'c'},     {"pypy", LANG_PYTHON, 'c'},    {"node", LANG_JAVASCRIPT, 'e'},
                     {"nodejs", LANG_JAVASCRIPT, 'e'}, {"bun", LANG_JAVASCRIPT, 'e'}, {"deno", LANG_JAVASCRIPT, 'e'},
                     {"perl", LANG_OTHER, 'e'},        {"ruby", LANG_OTHER, 'e'},     {"php", LANG_OTHER, 'r'},
                     {"lua", LANG_OTHER, 'e'},         {"awk", LANG_OTHER, 0},        {"gawk", LANG_OTHER, 0},
                     {"mawk", LANG_OTHER, 0},          {"tclsh", LANG_OTHER, 0},      {"expect", LANG_OTHER, 'c'},
                     {"osascript", LANG_OTHER, 'e'},   {"pwsh", LANG_OTHER, 'c'}};

        if (is_shell_name(name)) {
                *ret_letter = 'c';
                return LANG_SHELL;
        }
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                size_t n = strlen(known[i].name);

                if (strncmp(name, known[i].name, n) == 0 && name[n + strspn(name + n, "0123456789.")] == 0) {
                        *ret_letter = known[i].letter;
                        return known[i].language;
                }
        }
        return 0;
}

/* ---- texts that are run ---- */

/* Whether the field is a verbatim piece of the source: then findings in it have their own lines. */
void inner_field(struct eval *ev, const struct field *f, enum scan_language language) {
        const struct unit *u = ev->unit;
        size_t skip = 0;

        if (f->off < u->len && (u->src[f->off] == '\'' || u->src[f->off] == '"'))
                skip = 1;
        if (f->off + skip + f->len <= u->len && memcmp(u->src + f->off + skip, f->s, f->len) == 0)
                scan_inner(ev->s, u, f->off + skip, f->s, f->len, language, true);
        else
                scan_inner(ev->s, u, f->off, f->s, f->len, language, false);
}

void inner_value(struct eval *ev, uint32_t off, struct value v, enum scan_language language) {
        const struct unit *u = ev->unit;

        if (v.s >= u->src && v.s < u->src + u->len)
                scan_inner(ev->s, u, (size_t) (v.s - u->src), v.s, v.len, language, true);
        else
                scan_inner(ev->s, u, off, v.s, v.len, language, false);
}

void emit_pseudo(struct eval *ev, const struct command *c, const char *name) {
        struct command pseudo = *c;

        pseudo.name = name;
        pseudo.n_redirs = 0;
        eval_emit(ev, &pseudo);
}

/* A text is run as a program of that language. */
static void run_value(struct eval *ev, const struct command *c, uint32_t off, struct value v,
                      enum scan_language language) {
        if (v.known)
                inner_value(ev, off, v, language);
        else if (v.fetched)
                emit_pseudo(ev, c, "(run-download)");
        else if (v.hidden)
                emit_pseudo(ev, c, "(hidden)");
}

/* A file of the script's own making is run. */
static void run_file(struct eval *ev, const struct command *c, const struct field *path, struct value input,
                     enum scan_language language) {
        const struct variable *file;

        if (path->process) {
                if (path->process->output.fetched)
                        emit_pseudo(ev, c, "(run-substitution)");
                else
                        run_value(ev, c, path->off, path->process->output, language);
                return;
        }
        if (streq(path->s, "/dev/stdin") || streq(path->s, "/dev/fd/0") || streq(path->s, "/proc/self/fd/0")) {
                run_value(ev, c, path->off, input, language);
                return;
        }
        file = strncmp(path->s, "/dev/fd/", 8) == 0 ? eval_variable(ev, path->s, path->len, false)
                                                    : find_file(ev, path->s, path->len);
        if (!file)
                file = find_tree(ev, path->s, path->len);
        if (file)
                run_value(ev, c, path->off, file->file, language);
}

/* ---- the command in the arguments ---- */

static const struct wrapper *find_wrapper(const char *name) {
        static const struct wrapper loader = {"ld", "", 0};

        if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-musl", 7) == 0 || strncmp(name, "ld.so", 5) == 0)
                return &loader;
        for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
                if (streq(name, wrappers[i].name))
                        return &wrappers[i];
        return NULL;
}

static void inner_command(struct eval *ev, const struct command *c, size_t from, size_t to, struct value input,
                          unsigned depth) {
        struct command inner = *c;
        const char *slash;

        if (from >= to)
                return;
        inner.argv = c->argv + from;
        inner.argc = to - from;
        inner.n_redirs = 0;
        slash = memrchr(inner.argv[0].s, '/', inner.argv[0].len);
        inner.name = slash ? slash + 1 : inner.argv[0].s;
        inner.glob = inner.argv[0].glob;
        eval_emit(ev, &inner);
        eval_inner_commands(ev, &inner, input, c->element, depth + 1);
}

/* xargs with what it reads: behind the command, or in the place of the word that -I names. */
static void with_words(struct eval *ev, const struct command *c, size_t from, struct value input, unsigned depth) {
        struct command inner = *c;
        const char *mark = NULL;
        struct fields words = {0};
        bool placed = false;

        for (size_t i = 1; i + 1 < c->argc && i < from; i++)
                if (strncmp(c->argv[i].s, "-I", 2) == 0)
                        mark = c->argv[i].s[2] ? c->argv[i].s + 2 : c->argv[i + 1].s;
        while (input.len > 0 && isspace((unsigned char) input.s[input.len - 1]))
                input.len--;
        if (input.len > 65536)
                return;
        for (size_t i = from; i < c->argc; i++)
                if (mark && streq(c->argv[i].s, mark)) {
                        fields_add(ev, &words,
                                   (struct field){.s = arena_copy(ev->arena, input.s, input.len),
                                                  .len = input.len,
                                                  .off = c->off});
                        placed = true;
                } else
                        fields_add(ev, &words, c->argv[i]);
        for (size_t at = 0; !mark && at < input.len;) {
                size_t end;

                while (at < input.len && isspace((unsigned char) input.s[at]))
                        at++;
                for (end = at; end < input.len && !isspace((unsigned char) input.s[end]);)
                        end++;
                if (end > at)
                        fields_add(ev, &words,
                                   (struct field){.s = arena_copy(ev->arena, input.s + at, end - at),
                                                  .len = end - at,
                                                  .off = c->off});
                at = end;
                placed = true;
        }
        if (!placed)
                return;
        inner.argv = words.v;
        inner.argc = words.n;
        inner_command(ev, &inner, 0, inner.argc, unknown, depth);
}

static void unwrap(struct eval *ev, const struct wrapper *w, const struct command *c, struct value input,
                   unsigned depth) {
        unsigned positional = w->positional;
        size_t i = 1;

        for (; i < c->argc; i++) {
                const char *a = c->argv[i].s;
                size_t len = c->argv[i].len;

                if (streq(a, "--")) {
                        i++;
                        break;
                }
                if (a[0] == '-' && len > 1) {
                        if (a[1] != '-' && streq(w->name, "env") && a[1] == 'S') {
                                if (a[2])
                                        scan_inner(ev->s, ev->unit, c->argv[i].off, a + 2, len - 2, LANG_SHELL, false);
                                else if (i + 1 < c->argc)
                                        inner_field(ev, &c->argv[i + 1], LANG_SHELL);
                                return;
                        }
                        if ((streq(w->name, "flock") || streq(w->name, "runuser") || streq(w->name, "sg")) &&
                            streq(a, "-c")) {
                                if (i + 1 < c->argc)
                                        inner_field(ev, &c->argv[i + 1], LANG_SHELL);
                                return;
                        }
                        if (a[1] != '-' && len == 2 && strchr(w->valued, a[1]))
                                i++;
                        else if (a[1] == '-' && !memchr(a, '=', len) && i + 2 < c->argc) /* may take a value */
                                inner_command(ev, c, i + 2 + w->positional, c->argc, input, depth);
                        continue;
                }
                if (memchr(a, '=', len) && (isalpha((unsigned char) a[0]) || a[0] == '_'))
                        continue;
                if (positional == 0)
                        break;
                positional--;
        }
        if (streq(w->name, "xargs") && input.known)
                with_words(ev, c, i, input, depth);
        inner_command(ev, c, i, c->argc, input, depth);
}

static void unwrap_find(struct eval *ev, const struct command *c, unsigned depth) {
        for (size_t i = 1; i < c->argc; i++) {
                size_t end;

                if (strcmp(c->argv[i].s, "-exec") != 0 && strcmp(c->argv[i].s, "-execdir") != 0 &&
                    strcmp(c->argv[i].s, "-ok") != 0)
                        continue;
                for (end = i + 1; end < c->argc && strcmp(c->argv[end].s, ";") != 0 && strcmp(c->argv[end].s, "+") != 0;
                     end++)
                        ;
                inner_command(ev, c, i + 1, end, unknown, depth);
                i = end;
        }
}

/* All arguments as one text, as eval does it. */
static void run_joined(struct eval *ev, const struct command *c, size_t from) {
        struct text t = {.arena = ev->arena};
        bool dynamic = false;

        if (c->argc == from + 1) {
                inner_field(ev, &c->argv[from], LANG_SHELL);
                return;
        }
        for (size_t i = from; i < c->argc; i++) {
                if (i > from)
                        text_addc(&t, ' ');
                text_add(&t, c->argv[i].s, c->argv[i].len);
                dynamic = dynamic || c->argv[i].dynamic;
        }
        if (t.len)
                scan_inner(ev->s, ev->unit, c->argv[from].off, text_str(&t), t.len, LANG_SHELL, false);
}

static void run_interpreter(struct eval *ev, const struct command *c, struct value input, enum scan_language language,
                            char letter) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *a = c->argv[i].s;

                if (a[0] == '-' && a[1] && a[1] != '-') {
                        const char *at = letter ? strchr(a + 1, letter) : NULL;

                        if (!at && language == LANG_OTHER && letter == 'e')
                                at = strchr(a + 1, 'E');
                        if (at && at[1] && language != LANG_SHELL) { /* -cTEXT */
                                scan_inner(ev->s, ev->unit, c->argv[i].off, at + 1, strlen(at + 1), language, false);
                                return;
                        }
                        if (at) {
                                while (i + 1 < c->argc && c->argv[i + 1].s[0] == '-' && language == LANG_SHELL)
                                        i++;
                                if (i + 1 < c->argc)
                                        inner_field(ev, &c->argv[i + 1], language);
                                return;
                        }
                        if (language == LANG_SHELL && (streq(a, "-s")))
                                break;
                        continue;
                }
                if (strncmp(a, "--eval", 6) == 0 || strncmp(a, "--print", 7) == 0) {
                        if (i + 1 < c->argc)
                                inner_field(ev, &c->argv[i + 1], language);
                        return;
                }
                if (a[0] == '-' && a[1] == '-')
                        continue;
                if (streq(a, "-"))
                        break;
                if (!letter && language == LANG_OTHER) /* awk: the program is a word */
                        inner_field(ev, &c->argv[i], language);
                else
                        run_file(ev, c, &c->argv[i], input, language);
                return;
        }
        if (input.known || input.fetched || input.hidden)
                run_value(ev, c, c->off, input, language);
        else
                emit_pseudo(ev, c, "(run-stdin)");
}

/* What is known of a file is known of its copy. */
static void copy_file(struct eval *ev, const struct command *c, struct value input) {
        const struct field *to = &c->argv[c->argc - 1], *from = c->argc > 2 ? &c->argv[c->argc - 2] : NULL;
        const struct variable *file;

        if (streq(c->name, "tee")) {
                for (size_t i = 1; i < c->argc; i++)
                        if (c->argv[i].s[0] != '-' && (input.known || input.fetched || input.hidden))
                                note_file(ev, c->argv[i].s, c->argv[i].len, input);
                return;
        }
        file = from ? find_file(ev, from->s, from->len) : NULL;
        if (from && !file)
                file = find_tree(ev, from->s, from->len);
        if (file) {
                const char *slash = memrchr(from->s, '/', from->len), *base = slash ? slash + 1 : from->s;
                struct field inside = path_join(ev, to->s, to->len, base, from->len - (size_t) (base - from->s));

                note_file(ev, to->s, to->len, file->file);
                note_file(ev, inside.s, inside.len, file->file); /* where `to` is a directory */
        } else if (from && memchr(from->s, '/', from->len)) {    /* a program by another name */
                const char *base = strrchr(from->s, '/') + 1;

                if (*base && !from->dynamic && !from->glob)
                        eval_variable(ev, to->s, to->len, true)->alias = known(base, strlen(base));
        }
}

static void note_alias(struct eval *ev, const struct command *c) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *equals = memchr(c->argv[i].s, '=', c->argv[i].len);

                if (!equals || equals == c->argv[i].s)
                        continue;
                eval_variable(ev, c->argv[i].s, (size_t) (equals - c->argv[i].s), true)->alias =
                        (struct value){equals + 1, c->argv[i].len - (size_t) (equals + 1 - c->argv[i].s), true};
        }
}

/* hash -p FILE NAME… */
static void note_hashed(struct eval *ev, const struct command *c) {
        const struct variable *other;

        if (c->argc < 4 || !streq(c->argv[1].s, "-p"))
                return;
        other = eval_variable(ev, c->argv[2].s, c->argv[2].len, false);
        for (size_t i = 3; i < c->argc; i++)
                eval_variable(ev, c->argv[i].s, c->argv[i].len, true)->alias =
                        other && other->alias.known ? other->alias : known(c->argv[2].s, c->argv[2].len);
}

static void run_alias(struct eval *ev, const struct command *c, struct value alias) {
        struct text t = {.arena = ev->arena};

        if (ev->calls < ALIAS_COST) {
                ev->s->incomplete = true;
                return;
        }
        ev->calls -= ALIAS_COST;
        text_add(&t, alias.s, alias.len);
        for (size_t i = 1; i < c->argc; i++) {
                text_addc(&t, ' ');
                text_add(&t, c->argv[i].s, c->argv[i].len);
        }
        scan_inner(ev->s, ev->unit, c->off, text_str(&t), t.len, LANG_SHELL, false);
}

void eval_inner_commands(struct eval *ev, struct command *c, struct value input, unsigned element, unsigned depth) {
        const struct wrapper *w;
        const struct variable *var;
        enum scan_language language;
        const char *n = c->name;
        char letter = 0;

        (void) element;
        if (depth > INNER_MOST) {
                ev->s->incomplete = true;
                return;
        }
        var = eval_variable(ev, c->argv[0].s, c->argv[0].len, false);
        if (var && var->alias.known) {
                struct field first = {.s = var->alias.s, .len = strcspn(var->alias.s, " \t"), .off = c->off};

                first.s = arena_copy(ev->arena, first.s, first.len);
                if (memchr(first.s, '/', first.len))
                        run_file(ev, c, &first, input, LANG_SHELL);
                run_alias(ev, c, var->alias);
        }
        if ((c->argv[0].glob && strcspn(c->argv[0].s, "*?") < c->argv[0].len) ||
            (c->argv[0].odd && c->argv[0].len > 1 &&
             !(c->argv[0].off < ev->unit->len && ev->unit->src[c->argv[0].off] == '\\')))
                emit_pseudo(ev, c, "(disguised)");
        if (memchr(c->argv[0].s, '/', c->argv[0].len))
                run_file(ev, c, &c->argv[0], input, LANG_SHELL);
        else if (!var || (!var->function && !var->alias.known)) {
                struct field found = find_program(ev, &c->argv[0]);

                if (found.len)
                        run_file(ev, c, &found, input, LANG_SHELL);
        }
        if (fetch_note(ev, c, input))
                emit_pseudo(ev, c, "(run-download)");
        language = interpreter(n, &letter);
        if (language) {
                run_interpreter(ev, c, input, language, letter);
                return;
        }
        if (is_fetch_name(n)) {
                fetch_download(ev, c);
                eval_arguments(ev, c, input);
                for (size_t i = 0; i < c->n_redirs; i++)
                        if (c->redirs[i].write)
                                note_file(ev, c->redirs[i].target.s, c->redirs[i].target.len,
                                          (struct value){.s = "", .fetched = true});
                return;
        }
        w = find_wrapper(n);
        if (w) {
                unwrap(ev, w, c, input, depth);
                eval_arguments(ev, c, input); /* of parallel */
        } else if (streq(n, "find"))
                unwrap_find(ev, c, depth);
        else if (streq(n, "eval") && c->argc > 1)
                run_joined(ev, c, 1);
        else if (streq(n, "trap") && c->argc > 2)
                inner_field(ev, &c->argv[1], LANG_SHELL);
        else if ((streq(n, ".") || streq(n, "source")) && c->argc > 1)
                run_file(ev, c, &c->argv[1], input, LANG_SHELL);
        else if (streq(n, "alias"))
                note_alias(ev, c);
        else if (streq(n, "hash"))
                note_hashed(ev, c);
        else if (streq(n, "at") || streq(n, "batch")) {
                if (input.known)
                        inner_value(ev, c->off, input, LANG_SHELL);
        } else if ((streq(n, "su") || streq(n, "script")) && c->argc > 2) {
                for (size_t i = 1; i + 1 < c->argc; i++)
                        if (c->argv[i].s[0] == '-' && strchr(c->argv[i].s, 'c'))
                                inner_field(ev, &c->argv[i + 1], LANG_SHELL);
        } else if (streq(n, "cp") || streq(n, "mv") || streq(n, "ln") || streq(n, "install") || streq(n, "tee"))
                copy_file(ev, c, input);
        else if (streq(n, "set") && c->argc > 2 && streq(c->argv[1].s, "--")) {
                ev->positional = c->argv + 2;
                ev->n_positional = c->argc - 2;
        } else
                eval_arguments(ev, c, input);
}
