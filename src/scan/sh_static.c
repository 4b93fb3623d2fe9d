/* Commands whose output is known without running them: how scripts hide what they run. */
#include <ctype.h>
#include <string.h>

#include "sh_eval.h"

static const struct value unknown;

static int hex_value(int c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

static bool any_dynamic(const struct command *c, size_t from) {
        for (size_t i = from; i < c->argc; i++)
                if (c->argv[i].dynamic)
                        return true;
        return false;
}

/* Backslash escapes of echo -e and printf. */
static void put_escaped(struct text *t, const char *s, size_t len) {
        static const char from[] = "abefnrtv\\\"'", to[] = "\a\b\033\f\n\r\t\v\\\"'";

        for (size_t i = 0; i < len; i++) {
                const char *found;
                unsigned v = 0, n = 0;

                if (s[i] != '\\' || i + 1 >= len) {
                        text_addc(t, s[i]);
                        continue;
                }
                found = s[++i] ? strchr(from, s[i]) : NULL;
                if (found)
                        text_addc(t, to[found - from]);
                else if (s[i] == 'x') {
                        while (n < 2 && i + 1 < len && hex_value(s[i + 1]) >= 0) {
                                v = v * 16 + (unsigned) hex_value(s[++i]);
                                n++;
                        }
                        text_addc(t, (char) v);
                } else if (s[i] >= '0' && s[i] <= '7') {
                        v = (unsigned) (s[i] - '0');
                        while (n < 3 && i + 1 < len && s[i + 1] >= '0' && s[i + 1] <= '7' && v < 64) {
                                v = v * 8 + (unsigned) (s[++i] - '0');
                                n++;
                        }
                        text_addc(t, (char) v);
                } else {
                        text_addc(t, '\\');
                        text_addc(t, s[i]);
                }
        }
}

static struct value take(struct text *t) {
        return (struct value){text_str(t), t->len, true};
}

static struct value run_echo(struct eval *ev, const struct command *c) {
        struct text t = {.arena = ev->arena};
        bool escapes = false, newline = true;
        size_t i = 1;

        for (; i < c->argc && c->argv[i].s[0] == '-' && c->argv[i].len > 1 &&
               strspn(c->argv[i].s + 1, "neE") == c->argv[i].len - 1;
             i++) {
                escapes = escapes || strchr(c->argv[i].s, 'e');
                newline = newline && !strchr(c->argv[i].s, 'n');
        }
        for (size_t first = i; i < c->argc; i++) {
                if (i > first)
                        text_addc(&t, ' ');
                if (escapes)
                        put_escaped(&t, c->argv[i].s, c->argv[i].len);
                else
                        text_add(&t, c->argv[i].s, c->argv[i].len);
        }
        if (newline)
                text_addc(&t, '\n');
        return take(&t);
}

static struct value run_printf(struct eval *ev, const struct command *c) {
        struct text t = {.arena = ev->arena};
        const char *f;
        size_t len, arg = 2, rounds = 0;

        if (c->argc < 2)
                return unknown;
        f = c->argv[1].s;
        len = c->argv[1].len;
        if (strcmp(f, "--") == 0 && c->argc > 2) {
                f = c->argv[2].s;
                len = c->argv[2].len;
                arg = 3;
        }
        do {
                size_t before = arg, from = 0;

                for (size_t i = 0; i < len; i++) {
                        if (f[i] != '%' || i + 1 >= len)
                                continue;
                        put_escaped(&t, f + from, i - from);
                        i++;
                        while (i < len && strchr("0123456789.-+ #", f[i]))
                                i++;
                        from = i + 1;
                        if (i < len && f[i] == '%')
                                text_addc(&t, '%');
                        else if (i < len && arg < c->argc) {
                                if (f[i] == 'b')
                                        put_escaped(&t, c->argv[arg].s, c->argv[arg].len);
                                else
                                        text_add(&t, c->argv[arg].s, c->argv[arg].len);
                                arg++;
                        }
                }
                if (from < len)
                        put_escaped(&t, f + from, len - from);
                if (arg == before)
                        break;
        } while (arg < c->argc && ++rounds < 1000);
        return take(&t);
}

static bool has(const struct command *c, const char *option) {
        for (size_t i = 1; i < c->argc; i++)
                if (strcmp(c->argv[i].s, option) == 0)
                        return true;
        return false;
}

static struct value decode_base64(struct eval *ev, struct value in) {
        char *out;
        size_t n;

        if (in.len > ev->budget)
                return eval_give_up(ev);
        ev->budget -= in.len;
        out = arena_alloc(ev->arena, in.len + 1);
        if (ev->arena->failed)
                return unknown;
        n = scan_decode_base64(in.s, in.len, out);
        return n ? (struct value){out, n, true} : unknown;
}

static struct value decode_hex(struct eval *ev, struct value in) {
        struct text t = {.arena = ev->arena};
        int high = -1;

        for (size_t i = 0; i < in.len; i++) {
                int v = hex_value(in.s[i]);

                if (v < 0)
                        continue;
                if (high < 0)
                        high = v;
                else {
                        text_addc(&t, (char) (high * 16 + v));
                        high = -1;
                }
        }
        return take(&t);
}

static struct value reverse(struct eval *ev, struct value in) {
        struct text t = {.arena = ev->arena};
        size_t from = 0;

        for (size_t i = 0; i <= in.len; i++)
                if (i == in.len || in.s[i] == '\n') {
                        for (size_t k = i; k-- > from;)
                                text_addc(&t, in.s[k]);
                        if (i < in.len)
                                text_addc(&t, '\n');
                        from = i + 1;
                }
        return take(&t);
}

static size_t tr_class(const char *s, size_t len, unsigned char *out, size_t n) {
        static const struct {
                const char *name;
                int (*is)(int);
        } classes[] = {{"[:upper:]", isupper}, {"[:lower:]", islower}, {"[:digit:]", isdigit},
                       {"[:alpha:]", isalpha}, {"[:space:]", isspace}, {"[:punct:]", ispunct}};

        for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
                if (strlen(classes[i].name) == len && memcmp(classes[i].name, s, len) == 0)
                        for (int ch = 1; ch < 128 && n < 256; ch++)
                                if (classes[i].is(ch))
                                        out[n++] = (unsigned char) ch;
        return n;
}

/* A set of tr: characters, ranges and classes. */
static size_t tr_set(const char *s, size_t len, unsigned char *out) {
        size_t n = 0;

        for (size_t i = 0; i < len && n < 256; i++) {
                if (len - i >= 9 && s[i] == '[' && s[i + 1] == ':' && s[i + 8] == ']') {
                        n = tr_class(s + i, 9, out, n);
                        i += 8;
                } else if (i + 2 < len && s[i + 1] == '-') {
                        for (int ch = (unsigned char) s[i]; ch <= (unsigned char) s[i + 2] && n < 256; ch++)
                                out[n++] = (unsigned char) ch;
                        i += 2;
                } else if (s[i] == '\\' && i + 1 < len) {
                        i++;
                        out[n++] = (unsigned char) (s[i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i]);
                } else
                        out[n++] = (unsigned char) s[i];
        }
        return n;
}

static struct value run_tr(struct eval *ev, const struct command *c, struct value in) {
        unsigned char from[256], to[256];
        struct text t = {.arena = ev->arena};
        bool delete = c->argc == 3 && strcmp(c->argv[1].s, "-d") == 0;
        size_t n, m;

        if (c->argc != 3)
                return unknown;
        n = tr_set(c->argv[delete ? 2 : 1].s, c->argv[delete ? 2 : 1].len, from);
        m = delete ? 0 : tr_set(c->argv[2].s, c->argv[2].len, to);
        if (!delete &&m == 0)
                return unknown;
        for (size_t i = 0; i < in.len; i++) {
                unsigned char *found = memchr(from, (unsigned char) in.s[i], n);
                size_t at = found ? (size_t) (found - from) : 0;

                if (!found)
                        text_addc(&t, in.s[i]);
                else if (!delete)
                        text_addc(&t, (char) to[at < m ? at : m - 1]);
        }
        return take(&t);
}

static struct value compute(struct eval *ev, const struct command *c, struct value input) {
        if (strcmp(c->name, "echo") == 0)
                return run_echo(ev, c);
        if (strcmp(c->name, "printf") == 0 && !has(c, "-v"))
                return run_printf(ev, c);
        if ((strcmp(c->name, "which") == 0 && c->argc == 2) ||
            (strcmp(c->name, "command") == 0 && c->argc == 3 && strcmp(c->argv[1].s, "-v") == 0)) {
                struct text t = {.arena = ev->arena};

                text_adds(&t, "/usr/bin/");
                text_add(&t, c->argv[c->argc - 1].s, c->argv[c->argc - 1].len);
                return take(&t);
        }
        if (strcmp(c->name, "mktemp") == 0) {
                struct text t = {.arena = ev->arena};

                text_adds(&t, "/tmp/mktemp.");
                for (uint32_t n = c->off + 1; n; n /= 10)
                        text_addc(&t, (char) ('0' + n % 10));
                return take(&t);
        }
        if (!input.known)
                return unknown;
        if (strcmp(c->name, "cat") == 0 || strcmp(c->name, "tee") == 0)
                return c->argc == 1 || strcmp(c->argv[1].s, "-") == 0 || c->name[0] == 't' ? input : unknown;
        if (strcmp(c->name, "base64") == 0 &&
            (has(c, "-d") || has(c, "-D") || has(c, "--decode") || has(c, "-di") || has(c, "-id")))
                return decode_base64(ev, input);
        if (strcmp(c->name, "openssl") == 0 && has(c, "-d") && (has(c, "base64") || has(c, "-base64") || has(c, "-a")))
                return decode_base64(ev, input);
        if (strcmp(c->name, "xxd") == 0 && (has(c, "-r") || has(c, "-rp") || has(c, "-ps")))
                return decode_hex(ev, input);
        if (strcmp(c->name, "rev") == 0)
                return reverse(ev, input);
        if (strcmp(c->name, "tr") == 0)
                return run_tr(ev, c, input);
        return unknown;
}

/* Tools that make a text of another one. */
static bool transforms(const char *name) {
        static const char *const names[] = {
                "sed",     "awk",   "gawk",     "mawk",    "cut",     "tr",   "rev",   "base64", "base32", "xxd",
                "od",      "perl",  "python",   "python3", "gunzip",  "zcat", "gzip",  "xz",     "bzip2",  "zstd",
                "openssl", "gpg",   "uudecode", "basenc",  "head",    "tail", "fold",  "paste",  "iconv",  "jq",
                "hexdump", "ruby",  "node",     "php",     "unzip",   "bc",   "dc",    "tac",    "sort",   "grep",
                "xzcat",   "bzcat", "unxz",     "bunzip2", "busybox", "uniq", "column"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

/* Where what is not known comes from. */
static struct value origin(struct eval *ev, const struct command *c, struct value input) {
        struct value out = {.s = "", .fetched = input.fetched || is_fetch_name(c->name)};
        bool pure = input.known && !memchr(input.s, '\1', input.len) && !any_dynamic(c, 1);

        out.fetched = out.fetched || (input.known && memchr(input.s, '\2', input.len));
        for (size_t i = 1; i < c->argc; i++) {
                const struct variable *file = find_file(ev, c->argv[i].s, c->argv[i].len);

                out.fetched = out.fetched || (file && file->file.fetched);
        }
        out.hidden = !out.fetched &&
                     ((pure && input.len > 1 && transforms(c->name)) || (input.hidden && !any_dynamic(c, 1)));
        return out;
}

struct value static_output(struct eval *ev, const struct command *c, struct value input) {
        struct value out;

        if (any_dynamic(c, 1) && strcmp(c->name, "echo") != 0 && strcmp(c->name, "printf") != 0)
                return origin(ev, c, input);
        if (input.len > ev->budget / 4)
                return eval_give_up(ev);
        if (strcmp(c->name, "cat") == 0 && c->argc == 2) {
                const struct variable *file = find_file(ev, c->argv[1].s, c->argv[1].len);

                if (!file)
                        file = find_tree(ev, c->argv[1].s, c->argv[1].len);
                if (file)
                        return file->file;
        }
        out = compute(ev, c, input);
        if (!out.known)
                out = filter_output(ev, c, input);
        return out.known ? out : origin(ev, c, input);
}

struct value unescaped(struct eval *ev, struct value v) {
        struct text t = {.arena = ev->arena};

        put_escaped(&t, v.s, v.len);
        return take(&t);
}

/* ---- files that the script writes ---- */

static void plain_path(const char **name, size_t *len) {
        while (*len > 2 && (*name)[0] == '.' && (*name)[1] == '/') {
                *name += 2;
                *len -= 2;
        }
}

static void set_file(struct eval *ev, const char *name, size_t len, struct value content, bool program) {
        struct variable *var = eval_variable(ev, name, len, true);

        var->is_file = true;
        var->is_program = program;
        ev->any_file = true;
        ev->any_program = ev->any_program || program;
        var->file = content;
}

void note_file(struct eval *ev, const char *name, size_t len, struct value content) {
        char full[PATH_MOST];
        const char *slash;

        plain_path(&name, &len);
        if (len == 0 || memchr(name, '\1', len) || strncmp(name, "/dev/", len < 5 ? len : 5) == 0)
                return;
        set_file(ev, name, len, content, false);
        if (path_from_here(ev, name, len, full, &len)) {
                set_file(ev, full, len, content, false);
                name = full;
        }
        slash = memrchr(name, '/', len);
        if (slash && slash - name >= 3 && memcmp(slash - 3, "bin", 3) == 0 && (slash - name == 3 || slash[-4] == '/'))
                set_file(ev, slash - 3, len - (size_t) (slash - 3 - name), content, true);
}

const struct variable *find_file(struct eval *ev, const char *name, size_t len) {
        const struct variable *var;
        char full[PATH_MOST];

        plain_path(&name, &len);
        var = len ? eval_variable(ev, name, len, false) : NULL;
        if (var && (var->is_file || var->file.known || var->file.fetched))
                return var;
        if (!ev->any_file)
                return NULL;
        var = path_from_here(ev, name, len, full, &len) ? eval_variable(ev, full, len, false) : NULL;
        return var && var->is_file ? var : NULL;
}

void store_output(struct eval *ev, const struct command *c, struct value out) {
        for (size_t i = 0; i < c->n_redirs; i++) {
                const struct redirect *r = &c->redirs[i];
                const struct variable *before;
                struct text t = {.arena = ev->arena};

                if (!r->write || r->target.len == 0 || isdigit((unsigned char) r->target.s[0]) ||
                    (!out.known && !out.fetched && !out.hidden))
                        continue;
                before = r->append ? find_file(ev, r->target.s, r->target.len) : NULL;
                if (before && before->file.known && out.known && before->file.len + out.len < ev->budget) {
                        text_add(&t, before->file.s, before->file.len);
                        text_add(&t, out.s, out.len);
                        ev->budget -= t.len;
                        note_file(ev, r->target.s, r->target.len, take(&t));
                } else
                        note_file(ev, r->target.s, r->target.len, out);
        }
}
