/* Filters whose output is known where their input is: head, tail, cut, sed and awk in the forms that scripts use to put
 * a text together. */
#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "sh_eval.h"

static const struct value unknown;

static struct value take(struct text *t) {
        return known(text_str(t), t->len);
}

static size_t line_end(struct value in, size_t from) {
        const char *end = from < in.len ? memchr(in.s + from, '\n', in.len - from) : NULL;

        return end ? (size_t) (end - in.s) : in.len;
}

/* -n N, -nN, -N; `sign` is what stands before the number, else 0. */
static long count_option(const struct command *c, char *sign) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *a = c->argv[i].s;
                long n = 0;

                *sign = 0;
                if (a[0] != '-')
                        return a[0] == '+' || i > 1 ? -1 : -2;
                if (a[1] == 'n' && !a[2] && i + 1 < c->argc)
                        a = c->argv[++i].s;
                else
                        a += a[1] == 'n' ? 2 : 1;
                if (*a == '+' || *a == '-')
                        *sign = *a++;
                if (!isdigit((unsigned char) *a))
                        return -1;
                while (isdigit((unsigned char) *a) && n < 100000)
                        n = n * 10 + (*a++ - '0');
                return *a || i + 1 < c->argc ? -1 : n;
        }
        *sign = 0;
        return 10;
}

static struct value first_lines(const struct command *c, struct value in) {
        char sign;
        long n = count_option(c, &sign);
        size_t at = 0;

        if (n < 0 || sign)
                return unknown;
        for (; n > 0 && at < in.len; n--)
                at = line_end(in, at) + 1;
        return known(in.s, at < in.len ? at : in.len);
}

static struct value last_lines(const struct command *c, struct value in) {
        char sign;
        long n = count_option(c, &sign), total = 0;
        size_t at = 0;

        if (n < 0 || sign == '-')
                return unknown;
        for (size_t i = 0; i < in.len; i = line_end(in, i) + 1)
                total++;
        for (long skip = sign ? n - 1 : total - n; skip > 0 && at < in.len; skip--)
                at = line_end(in, at) + 1;
        return at < in.len ? known(in.s + at, in.len - at) : known("", 0);
}

/* The value of a one-letter option, attached or behind it. */
static const char *option_value(const struct command *c, char letter) {
        for (size_t i = 1; i < c->argc; i++)
                if (c->argv[i].s[0] == '-' && c->argv[i].s[1] == letter)
                        return c->argv[i].s[2] ? c->argv[i].s + 2 : i + 1 < c->argc ? c->argv[i + 1].s : NULL;
        return NULL;
}

static bool in_list(const char *list, unsigned n) {
        while (*list) {
                unsigned from = 0, to;

                while (isdigit((unsigned char) *list))
                        from = from * 10 + (unsigned) (*list++ - '0');
                to = from;
                if (*list == '-') {
                        list++;
                        for (to = 0; isdigit((unsigned char) *list); list++)
                                to = to * 10 + (unsigned) (*list - '0');
                        to = to ? to : ~0u;
                }
                if (n >= from && n <= to)
                        return true;
                if (*list != ',')
                        return false;
                list++;
        }
        return false;
}

static struct value run_cut(struct eval *ev, const struct command *c, struct value in) {
        const char *fields = option_value(c, 'f'), *characters = option_value(c, 'c'), *by = option_value(c, 'd');
        char separator = by ? by[0] : '\t';
        struct text t = {.arena = ev->arena};
        unsigned n = 1;
        bool first = true;

        if (!fields == !characters)
                return unknown;
        for (size_t i = 0; i < in.len; i++) {
                char ch = in.s[i];

                if (ch == '\n') {
                        text_addc(&t, ch);
                        n = 1;
                        first = true;
                } else if (fields && ch == separator) {
                        n++;
                        if (in_list(fields, n) && !first)
                                text_addc(&t, ch);
                } else {
                        if (in_list(fields ? fields : characters, n)) {
                                text_addc(&t, ch);
                                first = false;
                        }
                        n += !fields;
                }
        }
        return take(&t);
}

/* '{print $N}' and '{print $A $B}' */
static struct value run_awk(struct eval *ev, const struct command *c, struct value in) {
        const char *by = option_value(c, 'F'), *program = c->argc > 1 ? c->argv[c->argc - 1].s : "";
        struct text t = {.arena = ev->arena};

        program += strspn(program, " \t{");
        if (strncmp(program, "print", 5) != 0)
                return unknown;
        for (size_t line = 0; line < in.len; line = line_end(in, line) + 1) {
                size_t end = line_end(in, line);

                for (const char *p = program + 5; *p && *p != '}'; p++) {
                        size_t at = line;
                        unsigned wanted = 0, n = 1;

                        if (*p == ',') {
                                text_addc(&t, ' ');
                                continue;
                        }
                        if (*p == ' ' || *p == ';')
                                continue;
                        if (*p != '$' || !isdigit((unsigned char) p[1]))
                                return unknown;
                        while (isdigit((unsigned char) p[1]) && wanted < 1000)
                                wanted = wanted * 10 + (unsigned) (*++p - '0');
                        for (; at < end && n <= wanted; n++) {
                                size_t from = at;

                                while (!by && from < end && isspace((unsigned char) in.s[from]))
                                        from++;
                                for (at = from;
                                     at < end && (by ? in.s[at] != by[0] : !isspace((unsigned char) in.s[at]));)
                                        at++;
                                if (n == wanted)
                                        text_add(&t, in.s + from, at - from);
                                at += at < end;
                        }
                        if (wanted == 0)
                                text_add(&t, in.s + line, end - line);
                }
                text_addc(&t, '\n');
        }
        return take(&t);
}

#define SED_MOST 4096 /* bytes that sed is imitated on */

/* The part of an s command up to its next separator; an escaped separator is the character. */
static const char *sed_part(struct eval *ev, const char **at, char by) {
        struct text t = {.arena = ev->arena};

        for (; **at && **at != by; (*at)++) {
                if ((*at)[0] == '\\' && (*at)[1]) {
                        (*at)++;
                        if (**at != by)
                                text_addc(&t, '\\');
                }
                text_addc(&t, **at);
        }
        if (!**at)
                return NULL;
        (*at)++;
        return text_str(&t);
}

static void put_replacement(struct text *t, const char *to, const char *s, const regmatch_t *m) {
        for (; *to; to++) {
                int n = *to == '&' ? 0 : *to == '\\' && to[1] >= '0' && to[1] <= '9' ? to[1] - '0' : -1;

                if (n >= 0) {
                        to += *to == '\\';
                        if (m[n].rm_so >= 0)
                                text_add(t, s + m[n].rm_so, (size_t) (m[n].rm_eo - m[n].rm_so));
                } else if (*to == '\\' && to[1]) {
                        to++;
                        text_addc(t, *to == 'n' ? '\n' : *to == 't' ? '\t' : *to);
                } else
                        text_addc(t, *to);
        }
}

static void substitute_line(struct text *t, const regex_t *regex, const char *to, const char *line, bool all) {
        regmatch_t m[10];
        int flags = 0;

        while (regexec(regex, line, 10, m, flags) == 0) {
                text_add(t, line, (size_t) m[0].rm_so);
                put_replacement(t, to, line, m);
                line += m[0].rm_eo;
                if (m[0].rm_eo == m[0].rm_so) {
                        if (!*line)
                                return;
                        text_addc(t, *line++);
                }
                flags = REG_NOTBOL;
                if (!all)
                        break;
        }
        text_adds(t, line);
}

/* One s/from/to/g command, without an address. Returns what stands behind it; NULL: it is something else. */
static const char *substitute(struct eval *ev, const char *script, int flags, struct value *in) {
        struct text t = {.arena = ev->arena};
        const char *from, *to, *at = script + 2;
        bool all = false;
        regex_t regex;
        char by = script[1];

        if (script[0] != 's' || !by || isalnum((unsigned char) by) || by == '\\' || in->len > SED_MOST ||
            !(from = sed_part(ev, &at, by)) || !(to = sed_part(ev, &at, by)) || strlen(from) > 256)
                return NULL;
        for (; *at && strchr("gI", *at); at++) {
                all = all || *at == 'g';
                flags |= *at == 'I' ? REG_ICASE : 0;
        }
        if (regcomp(&regex, from, flags) != 0)
                return NULL;
        for (size_t line = 0; line < in->len && !ev->arena->failed; line = line_end(*in, line) + 1) {
                size_t stop = line_end(*in, line);

                substitute_line(&t, &regex, to, arena_copy(ev->arena, in->s + line, stop - line), all);
                if (stop < in->len)
                        text_addc(&t, '\n');
        }
        regfree(&regex);
        if (t.len > ev->budget)
                return NULL;
        ev->budget -= t.len;
        *in = take(&t);
        return at;
}

static bool run_script(struct eval *ev, const char *script, int flags, struct value *in) {
        do {
                script += strspn(script, " \t\n;");
                if (!*script)
                        return true;
                script = substitute(ev, script, flags, in);
        } while (script && (!*script || strchr(" \t\n;", *script)));
        return false;
}

static struct value run_sed(struct eval *ev, const struct command *c, struct value in) {
        bool any = false;
        int flags = 0;

        for (size_t i = 1; i < c->argc; i++) {
                const char *a = c->argv[i].s;

                if (strcmp(a, "-E") == 0 || strcmp(a, "-r") == 0)
                        flags = REG_EXTENDED;
                else if (strcmp(a, "-e") == 0)
                        continue;
                else if (a[0] == '-' || !run_script(ev, a, flags, &in))
                        return unknown;
                else
                        any = true;
        }
        return any ? in : unknown;
}

struct value filter_output(struct eval *ev, const struct command *c, struct value input) {
        if (!input.known || input.len < 2 || input.len > ev->budget / 8)
                return unknown;
        ev->budget -= input.len;
        if (streq(c->name, "head"))
                return first_lines(c, input);
        if (streq(c->name, "tail"))
                return last_lines(c, input);
        if (streq(c->name, "cut"))
                return run_cut(ev, c, input);
        if (streq(c->name, "sed"))
                return run_sed(ev, c, input);
        if (streq(c->name, "awk") || streq(c->name, "gawk") || streq(c->name, "mawk"))
                return run_awk(ev, c, input);
        return unknown;
}
