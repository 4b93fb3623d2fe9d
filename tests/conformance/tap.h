/* What the api_*.c programs share: TAP, and looking at the processes of the host. They use the public header only. */
#pragma once

#include <errno.h>
#include <hutch/hutch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line of TAP; `what` is a format. */
bool ok(bool good, const char *what, ...) __attribute__((format(printf, 2, 3)));
bool is(const char *got, const char *want, const char *what);
/* Prints the plan; what main() returns. */
int done_testing(void);

/* A call of the library that must not fail, or the program ends. */
#define MUST(call)                                             \
        do {                                                   \
                if ((call) < 0)                                \
                        bail_out(__FILE__, __LINE__, #call);   \
        } while (0)
extern __thread hutch_error tap_err;
_Noreturn void bail_out(const char *file, int line, const char *call);

hutch_context *new_context(void);
/* A box with the API's own defaults; context NULL: one of its own. */
hutch_box *new_box(hutch_context *context);
hutch_box *new_box_with(hutch_context *context, const hutch_policy *policy);
/* Runs shell text; never NULL. The return value of the run lies in tap_ret. */
hutch_result *run_text(hutch_box *box, const char *text);
extern __thread int tap_ret;

void nap(unsigned ms);
double now_ms(void);
int count_fds(void);

/* A duration for sleep(1) that no other process has in its arguments, one for each `which`. */
const char *mark_of(int which);
/* How many processes of the host, this one apart, have the text in their arguments. */
int count_processes(const char *text);
/* Waits until so many have; at most 20 s. */
bool await_processes(const char *text, int n);
/* The warden above the process that has the text in its arguments, 0 if there is none. */
int warden_of(const char *text);
bool is_alive(int pid);
/* Waits until the process is gone; at most 20 s. */
bool await_end(int pid);
