/* A list of mounts: mount points may hold any byte, written as octal. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        _cleanup_(freep) char *text = strndup((const char *) data, len);
        char *next = text, *end = text ? text + strlen(text) : NULL;

        for (char *path; next;) {
                unsigned long long id = 0;

                path = path_next_mount(&next, &id);
                if (!path)
                        break;
                if (path < text || path + strlen(path) > end)
                        abort();
        }
        return 0;
}
