/* What the shell remembers: its state, which it is asked for and a new shell is given, and the texts that were run. */
#include "internal.h"

#include <errno.h>

#include "../base/macro.h"

#define HISTORY_TEXT_MOST 16384
#define IDLE_MS 3        /* a shell that was let be so long is asked for its state */
#define TELL_MS 300      /* and, if that is known, told the texts that were run */
#define ASK_MOST_MS 5000 /* a shell that does not tell its state in this time never will */

void session_put_history(struct session *s, struct buf *text, size_t from) {
        for (size_t i = from; i < s->n_history; i++) {
                buf_puts(text, "builtin history -s -- ");
                shell_put_quoted(text, s->history[i], strlen(s->history[i]));
                buf_puts(text, "\n");
        }
}

/* The texts that were run, for `history`: told to the shell when there is time. */
static void put_history(struct session *s, struct buf *lines) {
        struct buf text = {0};

        if (s->n_told == s->n_history || !s->kind->is_bash)
                return;
        session_put_history(s, &text, s->n_told);
        s->n_told = s->n_history;
        if (!text.oom && channel_put(&s->channel, "history", text.data, text.len) >= 0)
                buf_puts(lines, ". " SHELL_CHANNEL "/history\n");
        buf_done(&text);
}

bool state_wants_history(const struct session *s, const char *text) {
        return s->kind->is_bash && (strstr(text, "history") || strstr(text, "fc"));
}

/* Of a long text the beginning: bash takes seconds to read a megabyte of quotes. */
void session_remember(struct session *s, const char *text) {
        if (startswith(text, "__hutch_")) /* ours */
                return;
        if (s->n_history == HISTORY_MOST) {
                free(s->history[0]);
                memmove(s->history, s->history + 1, (HISTORY_MOST - 1) * sizeof(char *));
                s->n_history--;
                s->n_told -= s->n_told > 0;
        }
        s->history[s->n_history] = strndup(text, HISTORY_TEXT_MOST);
        s->n_history += s->history[s->n_history] != NULL;
}

void session_ask(struct session *s) {
        struct buf lines = {0};

        session_put_guard(s, &lines);
        put_history(s, &lines);
        shell_put_dump(&lines, s->kind);
        s->probe.key = 0; /* what is known of another dump is not known of this one */
        s->asking = session_say(s, &lines) >= 0;
        if (s->asking)
                timer_set(s->loop, &s->ask, ASK_MOST_MS);
        buf_done(&lines);
}

/* What is asked for comes from a function that the box can change. Everything waits for it, deadlines of commands have
 * not begun: so it has one of its own. */
static void on_ask(void *data) {
        struct session *s = data;

        if (s->asking)
                run_interrupt(s->box, INTERRUPT_LAST, 0);
}

static void on_idle(void *data) {
        struct session *s = data;

        if (!s->now && !s->asking && s->shell_runs && (s->dirty || s->n_told < s->n_history))
                session_ask(s);
}

void state_init(struct session *s) {
        s->idle = (struct timer){.fire = on_idle, .data = s};
        s->ask = (struct timer){.fire = on_ask, .data = s};
}

void state_await_idle(struct session *s) {
        if (s->dirty || s->n_told < s->n_history)
                timer_set(s->loop, &s->idle, s->dirty ? IDLE_MS : TELL_MS);
}

/* Traps and options that print something of their own around each command. */
static bool talks_of_commands(const char *state) {
        static const char *const signs[] = {" ERR\n", " DEBUG\n", "\nset -o xtrace\n", "\nset -o verbose\n"};

        for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
                if (strstr(state, signs[i]))
                        return true;
        return false;
}

void session_take_state(struct session *s, const char *dump, size_t len) {
        struct buf state = {0};
        char *text;

        shell_put_state(&state, dump, len);
        len = state.len;
        text = buf_take_string(&state);
        if (text) {
                free(s->state);
                s->state = text;
                s->state_len = len;
                s->dirty = false;
                text = s->names;
                s->names = judge_names(s->state, text);
                free(text);
                s->names_known = true;
                s->talks = talks_of_commands(s->state);
        }
}

void state_heard(struct session *s, const char *dump, size_t len) {
        session_take_state(s, dump, len);
        s->asking = false;
        timer_clear(s->loop, &s->ask);
        if (s->told) {
                void (*told)(void *, const char *, size_t) = take_ptr(s->told);

                told(s->told_user, s->state, s->state_len);
        }
        session_next(s);
}

int session_ask_state(struct session *s, void (*told)(void *user, const char *state, size_t len), void *user) {
        if (s->told)
                return -EBUSY;
        if (s->over)
                return -EPIPE;
        s->told = told;
        s->told_user = user;
        if (!s->dirty && s->state)
                state_heard(s, s->state, s->state_len);
        else if (!s->now && !s->asking && s->shell_runs && s->interrupts == 0 && !session_is_restless(s))
                session_ask(s);
        return 0;
}
