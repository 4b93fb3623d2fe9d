/* What the shell remembers: its state, which is read after each run and given to a new shell, and the texts that were
 * run.
 *
 * A dump is shell text that the box could have written itself: it is bounded in size and time, kept as bytes, and only
 * ever read by a shell in a box. */
#include "internal.h"

#include <errno.h>

#include "../base/macro.h"

#define HISTORY_TEXT_MOST 16384 /* bash takes seconds to read a megabyte of quotes */
#define DUMP_MOST_MS 5000       /* a shell that does not report its state in this time never will */

static void history_put_all(struct session *s, struct buf *text, size_t from) {
        for (size_t i = from; i < s->history.n; i++) {
                buf_puts(text, "builtin history -s -- ");
                dialect_put_quoted(text, s->history.texts[i], strlen(s->history.texts[i]));
                buf_puts(text, "\n");
        }
}

void history_put(struct session *s, struct buf *lines, const char *text) {
        _cleanup_(buf_done) struct buf missing = {0};

        if (!s->shell.dialect->history || s->history.sent == s->history.n ||
            (text && !strstr(text, "history") && !strstr(text, "fc")))
                return;
        history_put_all(s, &missing, text ? s->history.sent : 0);
        if (!text) {
                buf_put(lines, missing.data, missing.len);
                return;
        }
        s->history.sent = s->history.n;
        if (!missing.oom && channel_put(&s->channel, "history", missing.data, missing.len) >= 0)
                buf_printf(lines, ". %s/history\n", s->channel.path);
}

void history_add(struct session *s, const char *text) {
        struct history *h = &s->history;

        if (startswith(text, "__hutch_")) /* ours */
                return;
        if (h->n == HISTORY_MOST) {
                free(h->texts[0]);
                memmove(h->texts, h->texts + 1, (HISTORY_MOST - 1) * sizeof(char *));
                h->n--;
                h->sent -= h->sent > 0;
        }
        h->texts[h->n] = strndup(text, HISTORY_TEXT_MOST);
        h->n += h->texts[h->n] != NULL;
}

void dump_request(struct session *s) {
        _cleanup_(buf_done) struct buf lines = {0};

        buf_puts(&lines, "\n");
        dialect_put_dump(&lines, s->shell.dialect);
        s->shell.probe.key = 0; /* what is known of another dump is not known of this one */
        s->dump.pending = shell_send(s, &lines) >= 0;
        if (s->dump.pending)
                timer_set(s->loop, &s->dump.limit, s->shell.failures ? 2 * DUMP_MOST_MS : DUMP_MOST_MS);
}

/* The dump comes from a function that the box can change. Everything waits for it, and the deadlines of commands have
 * not begun. */
static void on_limit(void *data) {
        struct session *s = data;

        if (s->dump.pending)
                shell_kill(s);
}

void dump_init(struct session *s) {
        s->dump.stale = true;
        s->dump.limit = (struct timer){.fire = on_limit, .data = s};
}

void dump_take(struct session *s, const char *dump, size_t len) {
        struct buf state = {0};
        char *text;

        s->shell.dialect->put_state(&state, dump, len);
        len = state.len;
        text = buf_take_string(&state);
        if (!text)
                return;
        free(s->dump.text);
        s->dump.text = text;
        s->dump.len = len;
        s->dump.stale = false;
}

void dump_report(struct session *s) {
        session_state_fn receive = s->dump.receive;

        s->dump.receive = NULL;
        if (receive)
                receive(s->dump.user, s->dump.text, s->dump.len);
}

/* A dump that an interrupt cut short is requested again by the probe. */
void dump_received(struct session *s, const char *dump, size_t len) {
        if (len < strlen(DIALECT_END) ||
            memcmp(dump + len - strlen(DIALECT_END), DIALECT_END, strlen(DIALECT_END)) != 0)
                return;
        dump_take(s, dump, len);
        s->shell.reported = true;
        if (!s->dump.pending) /* a shell that exits */
                return;
        dump_forget_request(s);
        session_next(s);
}

void dump_forget_request(struct session *s) {
        s->dump.pending = false;
        timer_clear(s->loop, &s->dump.limit);
}

int session_ask_state(struct session *s, session_state_fn receive, void *user) {
        if (s->dump.receive)
                return -EBUSY;
        if (s->over)
                return -EPIPE;
        s->dump.receive = receive;
        s->dump.user = user;
        if (!s->dump.stale && !s->dump.pending && !s->queue.now && !s->queue.acting && s->dump.text)
                dump_report(s);
        else
                session_next(s);
        return 0;
}
