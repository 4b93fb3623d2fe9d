/* The state that a hostile shell reported, and what is made of it for the next shell: each name that was to be left out
 * is, and nothing is longer than what came in but for a fixed frame. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "session/dialect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        static char secret[] = "SECRET", path[] = "PATH";
        char *names[] = {secret, path, NULL};
        const struct dialect *const all[] = {&dialect_bash, &dialect_plain};
        _cleanup_(freep) char *text = strndup((const char *) data, len);

        if (!text)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                struct buf state = {0}, without = {0}, beginning = {0}, env = {0};

                all[i]->put_state(&state, text, strlen(text));
                dialect_put_without(&without, text, strlen(text), names);
                dialect_put_beginning(&beginning, all[i], "/dev/hutch", text);
                all[i]->put_env(&env, "/dev/hutch", text, strlen(text));
                if (without.len > strlen(text) + 64)
                        abort();
                buf_done(&state);
                buf_done(&without);
                buf_done(&beginning);
                buf_done(&env);
        }
        return 0;
}
