/* A git configuration that a box wrote: two of them, split at the first NUL, the new one and the host's. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/strv.h"
#include "base/text.h"
#include "protect/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        const char *text = (const char *) data, *end = len ? memchr(text, 0, len) : NULL;
        size_t first = end ? (size_t) (end - text) : len;
        _cleanup_(freep) char *found = NULL, *same = NULL;
        _cleanup_(strv_freep) char **all = NULL;

        if (gitconfig_find_programs(text, first, end ? end + 1 : NULL, end ? len - first - 1 : 0, &found) >= 0 && found)
                for (const char *p = found; *p; p++)
                        if ((unsigned char) *p < 0x20 || *p == 0x7f)
                                abort(); /* it is printed */
        if (gitconfig_find_programs(text, first, text, first, &same) >= 0 && same)
                abort(); /* nothing is new in the same text */
        if (gitconfig_list(text, first, &all) < 0)
                return 0;
        for (size_t i = 0; all && all[i]; i++) {
                char *equals = strchr(all[i], '=');

                if (!equals)
                        abort();
                free(gitconfig_unquote(equals + 1));
                *equals = 0;
                gitconfig_key_runs(all[i], equals + 1);
        }
        return 0;
}
