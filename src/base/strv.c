/* String vectors; see strv.h. */
#include "strv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "macro.h"

size_t strv_length(char *const *v) {
        size_t n = 0;

        while (v && v[n])
                n++;
        return n;
}

bool strv_contains(char *const *v, const char *s) {
        for (; v && *v; v++)
                if (streq(*v, s))
                        return true;
        return false;
}

int strv_push_take(char ***v, char *s) {
        size_t n = strv_length(*v);
        char **grown;

        if (!s)
                return -ENOMEM;
        grown = reallocarray(*v, n + 2, sizeof(char *));
        if (!grown) {
                free(s);
                return -ENOMEM;
        }
        grown[n] = s;
        grown[n + 1] = NULL;
        *v = grown;
        return 0;
}

int strv_push(char ***v, const char *s) {
        return strv_push_take(v, strdup(s));
}

int strv_pushf(char ***v, const char *format, ...) {
        va_list args;
        char *s = NULL;
        int n;

        va_start(args, format);
        n = vasprintf(&s, format, args);
        va_end(args);
        return n < 0 ? -ENOMEM : strv_push_take(v, s);
}

int strv_copy(char *const *v, char ***ret) {
        size_t n = strv_length(v);
        char **copy = calloc(n + 1, sizeof(char *));

        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                copy[i] = strdup(v[i]);
                if (!copy[i]) {
                        strv_free(copy);
                        return -ENOMEM;
                }
        }
        *ret = copy;
        return 0;
}

static char **find_assignment(char *const *v, const char *name) {
        size_t n = strlen(name);

        for (; v && *v; v++)
                if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
                        return (char **) v;
        return NULL;
}

const char *strv_find_assignment(char *const *v, const char *name) {
        char **slot = find_assignment(v, name);

        return slot ? *slot + strlen(name) + 1 : NULL;
}

int strv_set_assignment(char ***v, const char *name, const char *value) {
        char **slot = find_assignment(*v, name), *s;
        size_t n;

        if (!value) {
                if (slot) {
                        free(*slot);
                        memmove(slot, slot + 1, (strv_length(slot + 1) + 1) * sizeof(char *));
                }
                return 0;
        }
        n = strlen(name);
        s = malloc(n + strlen(value) + 2);
        if (!s)
                return -ENOMEM;
        memcpy(s, name, n);
        s[n] = '=';
        strcpy(s + n + 1, value);
        if (!slot)
                return strv_push_take(v, s);
        free(*slot);
        *slot = s;
        return 0;
}

void strv_free(char **v) {
        for (char **p = v; p && *p; p++)
                free(*p);
        free(v);
}

void strv_freep(char ***v) {
        strv_free(*v);
}
