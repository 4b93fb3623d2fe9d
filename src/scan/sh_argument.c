/* Programs that run a command line which is part of an argument: git -c alias.x='!…', tar --to-command, ssh -o
 * ProxyCommand, sed e, editors, crontab and make from a here-document. */
#include <string.h>

#include "sh_eval.h"

/* A piece of an argument as shell. */
static void inner_piece(struct eval *ev, const struct field *f, const char *from) {
        size_t len = f->len - (size_t) (from - f->s);

        if (len > 0)
                scan_inner(ev->s, ev->unit, f->off, from, len, LANG_SHELL, false);
}

/* What stands behind one of these words, in the argument or in the next one. */
static void behind(struct eval *ev, const struct command *c, const char *const *words) {
        for (size_t i = 1; i < c->argc; i++)
                for (const char *const *w = words; *w; w++) {
                        size_t n = strlen(*w);

                        if (strncasecmp(c->argv[i].s, *w, n) != 0)
                                continue;
                        if (c->argv[i].len > n)
                                inner_piece(ev, &c->argv[i], c->argv[i].s + n + (c->argv[i].s[n] == '='));
                        else if (i + 1 < c->argc)
                                inner_field(ev, &c->argv[i + 1], LANG_SHELL);
                }
}

/* -c KEY=VALUE and config KEY VALUE: values that begin with "!", and those of keys that name a program. */
static void in_git(struct eval *ev, const struct command *c) {
        static const char *const keys[] = {"core.sshcommand", "core.pager",    "core.editor",     "core.fsmonitor",
                                           "core.askpass",    "diff.external", "sequence.editor", "pager.",
                                           "filter.",         "difftool.",     "mergetool.",      "credential.helper",
                                           "diff.",           "gpg.program",   "uploadpack."};

        for (size_t i = 1; i < c->argc; i++) {
                const struct field *f = &c->argv[i];
                const char *bang = memchr(f->s, '!', f->len), *equals = memchr(f->s, '=', f->len);

                if (bang && (bang == f->s || bang[-1] == '='))
                        inner_piece(ev, f, bang + 1);
                for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
                        if (strncasecmp(f->s, keys[k], strlen(keys[k])) != 0)
                                continue;
                        if (equals)
                                inner_piece(ev, f, equals + 1);
                        else if (i + 1 < c->argc)
                                inner_field(ev, &c->argv[i + 1], LANG_SHELL);
                }
        }
}

/* :!COMMAND of an editor. */
static void in_editor(struct eval *ev, const struct command *c) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *bang = memmem(c->argv[i].s, c->argv[i].len, "!", 1);

                if (bang && (bang == c->argv[i].s || bang[-1] == ':' || bang[-1] == '+'))
                        inner_piece(ev, &c->argv[i], bang + 1);
        }
}

/* The e command of GNU sed runs the rest of its line. */
static void in_sed(struct eval *ev, const struct command *c, struct value input) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *s = c->argv[i].s;
                const char *at = s + strspn(s, "0123456789$,{ \t");

                if (*s == '-')
                        continue;
                if (at[0] == 'e' && (at[1] == ' ' || at[1] == '\t'))
                        inner_piece(ev, &c->argv[i], at + 2);
                else if (at[0] == 'e' && !at[1] && input.known)
                        inner_value(ev, c->off, input, LANG_SHELL);
        }
}

/* parallel COMMAND ::: WORDS… */
static void in_parallel(struct eval *ev, const struct command *c) {
        bool words = false;

        for (size_t i = 1; i < c->argc; i++) {
                if (words)
                        inner_field(ev, &c->argv[i], LANG_SHELL);
                words = words || strncmp(c->argv[i].s, ":::", 3) == 0;
        }
}

/* Lines of a crontab: the command stands behind five fields. */
static void in_crontab(struct eval *ev, const struct command *c, struct value input) {
        const char *at = input.s, *end = input.s + input.len;

        while (input.known && at < end) {
                const char *line_end = memchr(at, '\n', (size_t) (end - at)), *p = at;

                line_end = line_end ? line_end : end;
                for (unsigned fields = *p == '@' ? 4 : 0; fields < 5 && p < line_end; fields++) {
                        while (p < line_end && *p != ' ' && *p != '\t')
                                p++;
                        while (p < line_end && (*p == ' ' || *p == '\t'))
                                p++;
                }
                if (p < line_end)
                        inner_value(ev, c->off, known(p, (size_t) (line_end - p)), LANG_SHELL);
                at = line_end + 1;
        }
}

static bool is_editor(const char *n) {
        return streq(n, "vim") || streq(n, "vi") || streq(n, "nvim") || streq(n, "ex") || streq(n, "view") ||
               streq(n, "less") || streq(n, "more") || streq(n, "ed");
}

/* Programs that run a command line elsewhere, or that have one in an argument. */
static bool carries(const char *name) {
        static const char *const names[] = {"tmux",    "screen", "ssh",     "sshpass", "docker",  "podman",
                                            "kubectl", "expect", "gdb",     "npm",     "npx",     "man",
                                            "sqlite3", "dpkg",   "apt-get", "apt",     "zip",     "dtach",
                                            "lxc",     "mosh",   "psql",    "mysql",   "nerdctl", "machinectl"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

/* Its arguments that hold a command line, behind "shell", "spawn" or "!", and the words that may be a command. */
static void in_carrier(struct eval *ev, const struct command *c) {
        static const char *const marks[] = {"shell ", ".shell ", "spawn ", "\\! ", "exec "};

        for (size_t i = 1; i < c->argc && i < 24; i++) {
                const struct field *f = &c->argv[i];
                const char *from = f->s, *equals = strstr(f->s, "=");

                if (!memchr(f->s, ' ', f->len)) {
                        struct command inner = *c;

                        if (f->s[0] == '-' || f->dynamic || i < 2)
                                continue;
                        inner.argv = c->argv + i;
                        inner.argc = c->argc - i;
                        inner.n_redirs = 0;
                        inner.name = strrchr(f->s, '/') ? strrchr(f->s, '/') + 1 : f->s;
                        eval_emit(ev, &inner);
                        continue;
                }
                for (size_t k = 0; k < ARRAY_SIZE(marks); k++)
                        if (strncmp(from, marks[k], strlen(marks[k])) == 0)
                                from += strlen(marks[k]);
                if (from == f->s && equals && equals < strchr(f->s, ' '))
                        from = equals + 1;
                if (from == f->s)
                        inner_field(ev, f, LANG_SHELL);
                else
                        inner_piece(ev, f, from);
        }
}

void eval_arguments(struct eval *ev, struct command *c, struct value input) {
        static const char *const of_tar[] = {"--checkpoint-action=exec",
                                             "--to-command",
                                             "--use-compress-program",
                                             "--info-script",
                                             "--new-volume-script",
                                             "-I",
                                             NULL},
                                 *const of_ssh[] = {"ProxyCommand",
                                                    "-oProxyCommand",
                                                    "LocalCommand",
                                                    "-oLocalCommand",
                                                    "KnownHostsCommand",
                                                    "-oKnownHostsCommand",
                                                    NULL},
                                 *const of_rsync[] = {"-e", "--rsh", NULL};
        const char *n = c->name;

        if (carries(n))
                in_carrier(ev, c);
        if (streq(n, "git"))
                in_git(ev, c);
        else if (streq(n, "tar") || streq(n, "bsdtar"))
                behind(ev, c, of_tar);
        else if (streq(n, "ssh") || streq(n, "sftp") || streq(n, "scp"))
                behind(ev, c, of_ssh);
        else if (streq(n, "rsync"))
                behind(ev, c, of_rsync);
        else if (is_editor(n))
                in_editor(ev, c);
        else if (streq(n, "sed"))
                in_sed(ev, c, input);
        else if (streq(n, "parallel"))
                in_parallel(ev, c);
        else if (streq(n, "crontab"))
                in_crontab(ev, c, input);
        else if ((streq(n, "make") || streq(n, "gmake")) && input.known && c->argc > 1)
                inner_value(ev, c->off, input, LANG_SHELL);
        else if (streq(n, "test") || streq(n, "[") || streq(n, "unset"))
                for (size_t i = 1; i < c->argc; i++) {
                        const char *at = memmem(c->argv[i].s, c->argv[i].len, "[$(", 3);

                        if (at)
                                inner_piece(ev, &c->argv[i], at + 1);
                }
}
