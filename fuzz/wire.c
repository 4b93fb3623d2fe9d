/* A reader driven by the bytes themselves: the first half says what to read, the second is read. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/strv.h"
#include "base/wire.h"

static void read_one(struct wire_reader *r, uint8_t what) {
        size_t len = 0;

        switch (what % 6) {
        case 0:
                if (wire_get_u32(r) && r->failed)
                        abort();
                break;
        case 1:
                if (wire_get_u64(r) && r->failed)
                        abort();
                break;
        case 2: {
                const uint8_t *bytes = wire_get_bytes(r, &len);
                volatile uint8_t sum = 0;

                for (size_t i = 0; i < len; i++)
                        sum = (uint8_t) (sum + bytes[i]);
                if (r->failed && len)
                        abort();
                break;
        }
        case 3:
                free(wire_get_str(r));
                break;
        case 4:
                strv_free(wire_get_strv(r));
                break;
        default:
                if (wire_get_count(r, what / 6 + 1u) > r->left)
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        struct wire_reader r = {.data = data + len / 2, .left = len - len / 2};

        for (size_t i = 0; i < len / 2; i++) {
                bool failed = r.failed;
                size_t left = r.left;

                read_one(&r, data[i]);
                if (r.left > left || (failed && (!r.failed || r.left != left)))
                        abort(); /* a reader never gives back, and never recovers */
        }
        return 0;
}
