/* An index of git that a box wrote: read with both sizes of object ids, and compared with itself. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "protect/gitindex.h"

struct seen {
        uint32_t n;
        char last[GITINDEX_MOST_NAME + 1];
};

static int check(void *user, const struct gitindex_entry *now, const struct gitindex_entry *before, bool same) {
        struct seen *seen = user;

        if (!before || !same || strlen(now->name) != now->name_len || now->name_len == 0)
                abort();
        if (seen->n > 0 && strcmp(seen->last, now->name) > 0)
                abort();
        memcpy(seen->last, now->name, now->name_len + 1);
        seen->n++;
        return 0;
}

static int check_new(void *user, const struct gitindex_entry *now _unused_, const struct gitindex_entry *before,
                     bool same) {
        if (before || same)
                abort();
        return ++*(uint32_t *) user == 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        for (size_t id_size = 20; id_size <= 32; id_size += 12) {
                struct gitindex index;
                struct seen seen = {0};
                uint32_t n = 0;

                if (gitindex_open(data, len, id_size, &index) < 0)
                        continue;
                if (gitindex_compare(&index, &index, check, &seen) != 0 || seen.n != index.n)
                        abort();
                if (gitindex_compare(NULL, &index, check_new, &n) != (index.n >= 3))
                        abort();
        }
        return 0;
}
