/* Text from strangers: is it UTF-8, how to carry it if not, how to show it without obeying it; and a word's nearest
 * kin. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* The word that shell text begins with, if it is a plain one: *ret is NULL if not. 0 or -ENOMEM. */
int text_first_word(const char *text, char **ret);

bool text_is_utf8(const void *data, size_t len);

/* How many bytes at the end are the begun but unfinished part of a character: 0 to 3. */
size_t text_cut_tail(const void *data, size_t len);

void text_put_base64(struct buf *b, const void *data, size_t len);

/* Appends text that may have come from a box so that a terminal shows it and obeys none of it: control characters, C1
 * included, and bytes that are not UTF-8 become \xNN. */
void text_put_clean(struct buf *b, const void *data, size_t len);

/* Cleans a NUL-terminated string in place by replacing each such byte with '?'. */
void text_clean_in_place(char *s);

/* The program that a "#!" line runs, without its directory: what stands behind env(1), its options and assignments.
 * False: there is no such line, or the name does not fit. */
bool text_interpreter(const char *text, size_t len, char *ret, size_t room);

/* The candidate nearest to `word` if it is near enough to be what was meant, else NULL. */
const char *text_nearest(const char *word, const char *const *candidates, size_t n);
