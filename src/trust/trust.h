/* Trust: which content of a workspace's own policy files (hutch.yaml, .jail) a person accepted.
 *
 * A box may have written these files, so they grant nothing until a person looked at them. Each is read once, from a
 * descriptor: only a regular file with one name and of a bounded size counts, and everything is decided on that copy.
 * What was accepted is kept as a copy below hutch's state directory, which no box may have, and compared byte by byte:
 * any change, a removed file included, needs the person again.
 *
 *   <state>/trust/<hash of the workspace's real path>/{workspace,hutch.yaml,.jail}
 *   <state>/trust/<hash>-profiles/NAME/{workspace,profile.yaml}
 *
 * The second is the profile of a language that a person accepted for a workspace: it has no file there, and what is
 * compared is the profile's present text.
 *
 * A record belongs to a path. A file that is not in a record did not exist when it was accepted. */
#pragma once

#include <stddef.h>

#include "../base/error.h"

enum trust_state {
        TRUST_NOTHING, /* neither file exists, and none was accepted */
        TRUST_GIVEN,   /* both are what was accepted */
        TRUST_NEW,     /* nothing was accepted for this workspace */
        TRUST_CHANGED, /* something else was accepted */
};

#define N_TRUST_FILES 2

struct trust_file {
        const char *name;
        char *path;
        char *text; /* NULL: does not exist, or: */
        size_t len;
        char *refused;  /* why it is not read */
        char *accepted; /* what was accepted; NULL: it did not exist then */
        size_t accepted_len;
};

struct trust {
        char *workspace; /* its real path */
        char *record;    /* the directory of its record, which may not exist */
        bool recorded;
        size_t n_files;
        struct trust_file
                files[N_TRUST_FILES]; /* .jail, hutch.yaml: in the order in which they are read; or a profile */
};

/* Reads a workspace's files and its record. `state` is hutch's state directory, NULL where none is known (then nothing
 * can be accepted). */
int trust_open(const char *state, const char *workspace, struct trust **ret, struct hutch_error *err);
/* The same for the profile NAME, whose text is `text`. */
int trust_open_profile(const char *state, const char *workspace, const char *name, const char *text, struct trust **ret,
                       struct hutch_error *err);
/* The names of the profiles that have a record; NULL: none. `workspace` is a real path. 0 or -ENOMEM. */
int trust_list_profiles(const char *state, const char *workspace, char ***ret);
void trust_free(struct trust *t);
void trust_freep(struct trust **t);

enum trust_state trust_state(const struct trust *t);

/* Records exactly the content that was read. Refused where a file was not read. */
int trust_accept(const struct trust *t, struct hutch_error *err);
int trust_forget(const struct trust *t, struct hutch_error *err);

/* One such file, by the same rules; for other policy files as well. 0 with *ret NULL where it does not exist, -EPERM
 * with *ret_refused where it is not a file that is read. */
#define TRUST_TEXT_MOST ((size_t) 256 << 10)
int trust_read_file(int dir, const char *name, char **ret, size_t *ret_len, char **ret_refused);
