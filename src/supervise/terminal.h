/* The user's terminal while a box has control of it.
 *
 * The box gets a separate pseudo terminal; input is sent to it byte by byte, so the user's terminal is put into raw
 * mode and the box sets modes on its own terminal only. A guard, a separate process, restores the modes if hutch is
 * killed before it can.
 *
 * Where only some of the three streams are terminals (`hutch x | less`), another program may be reading the keyboard:
 * then the box starts without control of the terminal, and takes it only when it reads from its own or changes its
 * modes. */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "../base/error.h"

/* What the guard has to know at hutch's end. */
struct terminal_shared {
        bool full; /* the alternate screen is on */
        bool raw;  /* the terminal is hutch's */
};

struct terminal {
        int fd;                          /* the person's terminal, -1: none */
        struct termios modes, raw_modes; /* as they were, as hutch set them */
        struct winsize size;             /* when it was opened */
        struct terminal_shared *shared;  /* with the guard */
        int seen;                        /* how far into a private mode sequence the output is */
        unsigned mode;                   /* the number in it */
        bool full_in;                    /* one of its numbers is the alternate screen */
        bool midline;                    /* the last byte of output did not end a line */
        bool streams[3];                 /* which of them are the terminal */
        bool eager;                      /* has the floor from the beginning */
        bool raw;
        pid_t guard;
        int guard_pipe;
};

/* Finds the terminal among the streams; .fd is -1 if none is one. */
int terminal_open(struct terminal *t, const int fds[3], struct hutch_error *err);
bool terminal_in_foreground(const struct terminal *t);
int terminal_take(struct terminal *t); /* raw mode, with a guard */
void terminal_give_back(struct terminal *t);
bool terminal_size(const struct terminal *t, struct winsize *ret);

/* After a command that was killed: puts back what full-screen programs change and a killed one leaves (alternate
 * screen, hidden cursor, mouse, colours), and begins a new line. Does nothing unless the terminal is still hutch's. */
void terminal_restore_screen(const struct terminal *t);
/* Follows the box's output: what was switched on must be switched off, and only that. */
void terminal_see(struct terminal *t, const uint8_t *bytes, size_t len);
void terminal_close(struct terminal *t);
