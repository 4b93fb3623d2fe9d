/* NULL-terminated vectors of strings that own their strings. The NULL pointer is the empty vector. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

size_t strv_length(char *const *v);
bool strv_contains(char *const *v, const char *s);
int strv_push(char ***v, const char *s); /* copies s; 0 or -ENOMEM */
int strv_push_take(char ***v, char *s);  /* takes s over, also on failure */
int strv_pushf(char ***v, const char *format, ...) __attribute__((format(printf, 2, 3)));
int strv_copy(char *const *v, char ***ret);
const char *strv_find_assignment(char *const *v, const char *name); /* the value of NAME in a vector of NAME=VALUE */
int strv_set_assignment(char ***v, const char *name, const char *value); /* NULL: remove */
void strv_free(char **v);
void strv_freep(char ***v);
