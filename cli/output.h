/* Where results go: stdout, a file, a FIFO, a descriptor; and the lines of --json-lines. */
#pragma once

#include "cli.h"

struct destination { /* of --result */
        const char *name;
        int fd;           /* -1: none */
        int dir;          /* the directory of a regular file, else -1 */
        char *dir_path;   /* how it is reached */
        const char *base; /* the name in it */
};

#define DESTINATION_NONE ((struct destination){.fd = -1, .dir = -1})

/* Opens it before the command starts, so that what cannot be written is known in time. -1 after a message. */
int destination_open(const char *name, struct destination *ret);

/* Writes the result there. What the box put in the place of a regular file is removed first, with a warning. */
int destination_write(struct destination *d, const hutch_result *result);
void destination_close(struct destination *d);

int output_write_result(const hutch_result *result); /* --json: to stdout */

/* --json-lines: one object a line, each with a "type": output, notice, denial, finding, published; last the result. */
struct lines {
        unsigned char rest[3][4]; /* the beginning of a character, by stream */
        size_t n_rest[3];
        bool failed;
};

void lines_on_output(void *lines, int stream, const void *data, size_t len);
void lines_on_event(void *lines, const hutch_event *event);
int lines_end(struct lines *lines, const hutch_result *result);
