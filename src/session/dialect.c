/* See dialect.h: what bash and a plain sh share. */
#include "dialect.h"

#include <ctype.h>
#include <string.h>

#include "../base/macro.h"
#include "../base/path.h"

const struct dialect *dialect_of(const char *path) {
        return streq(path_basename(path), "bash") ? &dialect_bash : &dialect_plain;
}

void dialect_put_beginning(struct buf *b, const struct dialect *d, const char *channel, const char *state) {
        buf_printf(b, "__hutch_channel=%s\n. %s/prelude\n", channel, channel);
        if (state)
                buf_printf(b, ". %s/state >/dev/null 2>&1\n", channel);
        buf_printf(b, "%s '\\0\\001S\\0' >&%d\n", d->print, d->answers);
}

static void put_answer(struct buf *b, const struct dialect *d, unsigned long number, const char *status) {
        buf_printf(b, "%s '\\0\\001R%lu %%s\\0' \"${__hutch_ret-%s}\" >&%d; %s __hutch_ret\n", d->print, number, status,
                   d->answers, d->unset);
}

void dialect_put_answer(struct buf *b, const struct dialect *d, unsigned long number) {
        put_answer(b, d, number, "$?");
}

void dialect_put_dump(struct buf *b, const struct dialect *d) {
        buf_printf(b, "__hutch_dump \"$@\" >&%d\n", d->answers);
}

/* No text inherits the descriptor for answers. */
void dialect_put_outputs(struct buf *b, const struct dialect *d, const struct dialect_run *run, const char *status) {
        buf_printf(b, " >%s/%u.1 2>%s/%u.2", run->channel, run->pair, run->channel, run->pair);
        if (run->stdin_number < 0)
                buf_printf(b, " %d>&-", d->answers);
        buf_puts(b, "\n");
        put_answer(b, d, run->number, status);
}

void dialect_put_source(struct buf *b, const struct dialect *d, const struct dialect_run *run) {
        const char *file = run->with_env ? "env" : "run";

        if (run->last_status) /* of a list's first part no trap and no `set -e` takes notice */
                buf_printf(b, "(%s %d) || ", d->exit, run->last_status);
        if (run->stdin_number < 0)
                buf_printf(b, "%s %s/%s </dev/null", d->source, run->channel, file);
        else /* the first answer: the FIFO has a reader now */
                buf_printf(b, "{ %s '\\0\\001B%lu\\0' >&%d; %s %s/%s %d>&-; } <%s/%ld.0", d->print, run->number,
                           d->answers, d->source, run->channel, file, d->answers, run->channel, run->stdin_number);
        dialect_put_outputs(b, d, run, "$?");
}

void dialect_put_quoted(struct buf *b, const char *text, size_t len) {
        buf_puts(b, "'");
        for (size_t i = 0; i < len; i++)
                if (text[i] == '\'')
                        buf_puts(b, "'\\''");
                else
                        buf_put(b, text + i, 1);
        buf_puts(b, "'");
}

void dialect_put_assignments(struct buf *b, const char *env, size_t len) {
        for (const char *at = env; at < env + len; at += strlen(at) + 1) {
                size_t name = strcspn(at, "=");

                buf_put(b, at, name);
                buf_puts(b, "=");
                dialect_put_quoted(b, at + name + (at[name] == '='), strlen(at) - name - (at[name] == '='));
                buf_puts(b, " ");
        }
}

static bool is_line(const char *at, const char *next, const char *line) {
        return (size_t) (next - at) == strlen(line) && !memcmp(at, line, strlen(line));
}

/* The name that a line of a dump declares or assigns, if it does. */
static const char *declared(const char *line, size_t len, size_t *ret_len) {
        static const char *const before[] = {"declare -", "export "};
        const char *name = line, *end = line + len;

        for (size_t i = 0; i < ARRAY_SIZE(before); i++)
                if (len > strlen(before[i]) && !memcmp(line, before[i], strlen(before[i]))) {
                        name = memchr(line + strlen(before[i]) - (i == 1), ' ', len - strlen(before[i]) + (i == 1));
                        if (!name || (i == 0 && line[9] == 'f'))
                                return NULL;
                        name++;
                }
        for (*ret_len = 0; name + *ret_len < end && (name[*ret_len] == '_' || isalnum((unsigned char) name[*ret_len]));)
                ++*ret_len;
        return *ret_len > 0 && (name + *ret_len == end || name[*ret_len] == '=' || name[*ret_len] == '\n') ? name
                                                                                                           : NULL;
}

void dialect_put_without(struct buf *b, const char *state, size_t len, char *const *names) {
        const bool marked =
                memmem(state, len, DIALECT_BEHIND, strlen(DIALECT_BEHIND)); /* there each begins with the same word */
        bool dropping = false, variables = true;

        for (const char *at = state, *end = state + len; at < end;) {
                const char *newline = memchr(at, '\n', (size_t) (end - at)), *next = newline ? newline + 1 : end;
                size_t n = 0;
                const char *name = variables ? declared(at, (size_t) (next - at), &n) : NULL;

                if (is_line(at, next, DIALECT_BEHIND))
                        variables = dropping = false;
                else if (name && (!marked || at[0] == 'd')) { /* else more of the value before it */
                        dropping = false;
                        for (char *const *one = names; one && *one; one++)
                                dropping = dropping || (strlen(*one) == n && !memcmp(*one, name, n));
                }
                if (!dropping)
                        buf_put(b, at, (size_t) (next - at));
                at = next;
        }
}
