/* A plain sh: dash, busybox and others. Best effort: it keeps its variables and its directory while it lives, and they
 * are read from it after each run; functions are not. An interrupt costs it its life. */
#include "dialect.h"

#include "../base/macro.h"
#include "session_sh.h"

static void put_run(struct buf *b, const struct dialect_run *run) {
        dialect_put_source(b, &dialect_plain, run);
}

/* Assignments in front of a special builtin, as `.` is one here, would stay: `command` makes it an ordinary one. */
static void put_env(struct buf *b, const char *channel, const char *env, size_t len) {
        dialect_put_assignments(b, env, len);
        buf_printf(b, "\\command . %s/run\n", channel);
}

static void put_state(struct buf *b, const char *dump, size_t len) {
        buf_put(b, dump, len);
}

static void put_visitor(struct buf *b, const char *channel, const struct buf *history _unused_) {
        buf_printf(b,
                   "unset ENV\n. %s/prelude\n. %s/state >/dev/null 2>&1\n"
                   "trap '__hutch_dump \"$@\" >&9 2>/dev/null' EXIT\n\\unset HISTFILE\nPS1='$ ' PS2='> '\n",
                   channel, channel);
}

/* `command` keeps an error in a text from discarding the answer together with what else the shell has read ahead.
 * busybox treats any signal during a read of stdin as end of file, and shares what it has read ahead with the programs
 * that it starts: so the lines come from a FIFO that is opened by name. */
const struct dialect dialect_plain = {.prelude = session_sh,
                                      .answers = 9,
                                      .print = "\\command printf",
                                      .source = "\\command .",
                                      .unset = "\\unset",
                                      .exit = "\\exit",
                                      .by_name = true,
                                      .put_run = put_run,
                                      .put_env = put_env,
                                      .put_state = put_state,
                                      .put_visitor = put_visitor};
