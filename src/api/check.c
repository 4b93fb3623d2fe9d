/* See check.h. */
#include "check.h"

#include <errno.h>

#include "../base/macro.h"

int api_null(struct hutch_error *err, const char *function, const char *argument) {
        return error_set(err, HUTCH_E_USAGE, EINVAL, "%s: %s is NULL", function, argument);
}

void api_read_struct(const void *from, size_t first, void *ret, size_t size) {
        size_t has = 0;

        memset(ret, 0, size);
        if (!from)
                return;
        memcpy(&has, from, sizeof(has));
        if (has == 0)
                has = first;
        memcpy(ret, from, has < size ? has : size);
}

void api_write_struct(const void *from, size_t from_size, void *ret, size_t size) {
        memset(ret, 0, size);
        memcpy(ret, from, from_size < size ? from_size : size);
}

void hutch_free(void *data) {
        free(data);
}
