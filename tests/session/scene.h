/* What the programs of this suite share: sessions, and scenes: a few texts run one after the other in one session, with
 * what each must print. Every scene ends with a random token, which the session must answer in step. */
#pragma once

#include "../conformance/tap.h"

enum { ANY = -1 }; /* as an exit status: whatever it is */

struct act {
        const char *text, *out, *err; /* out and err NULL: whatever is printed */
        int code;
        const char *notice; /* a part of a notice that must be there; NULL: there is none; "*": whatever there is */
};

struct scene {
        const char *name;
        struct act acts[8];
};

/* A session with the API's defaults; shell NULL: the default one. */
hutch_box *open_session(hutch_context *context, const char *shell);
hutch_box *open_session_with(hutch_context *context, const hutch_policy *policy, const char *shell);

/* Plays each in a session of its own; a line of TAP for each. */
void play(hutch_context *context, const char *shell, const struct scene *scenes, size_t n);

/* Runs a text with more than a text; never NULL. The return value lies in tap_ret. */
hutch_result *run_request(hutch_box *box, const hutch_request *request);
hutch_result *run_for(hutch_box *box, const char *text, unsigned timeout_ms);

/* Runs the text and compares stdout; a line of TAP. */
bool says(hutch_box *box, const char *text, const char *want, const char *what);
/* The session answers a random token with this token and nothing else. */
bool in_step(hutch_box *box);
const char *notice_of(const hutch_result *r); /* the first that speaks of the session, or "" */
bool is_long(void);                           /* HUTCH_LONG */
