/* First bytes of connections, as a box sends them. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "net/opening.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        struct opening o, again;
        char name[NAME_MAX_LENGTH + 1];
        enum opening_kind kind;

        if (len > OPENING_MOST)
                len = OPENING_MOST;
        (void) opening_read_answer(data, len);
        kind = opening_read_again(data, len, &again);
        if (kind == OPENING_HTTP || (kind == OPENING_TLS && (again.head > len || !again.name[0])))
                abort();
        kind = opening_read(data, len, &o);
        if (kind == OPENING_REFUSED && !o.why)
                abort();
        if (kind != OPENING_TLS && kind != OPENING_HTTP)
                return 0;
        if (o.name[0] ? name_normalise(o.name, strlen(o.name), name) < 0 || !streq(name, o.name)
                      : kind == OPENING_TLS || o.address.family == 0)
                abort(); /* what is asked for is one name, or one address */
        if (kind == OPENING_HTTP) {
                _cleanup_(freep) uint8_t *out = malloc(o.head + OPENING_GROWS), *exact = NULL;
                size_t n;

                if (!out || o.head > len)
                        abort();
                n = opening_rewrite(data, o.head, out);
                if (n > o.head + OPENING_GROWS)
                        abort();
                exact = malloc(n);
                memcpy(exact, out, n);
                if (n <= OPENING_MOST &&
                    (opening_read(exact, n, &again) != OPENING_HTTP || again.head != n || again.body != o.body ||
                     !streq(again.name, o.name) || !address_equal(&again.address, &o.address)))
                        abort(); /* what is passed on asks for the same */
        }
        return 0;
}
