/* A plan from bytes: whatever is taken can be explained, and encoded again to the same bytes. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        _cleanup_(plan_freep) struct plan *plan = NULL, *again = NULL;
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(freep) char *words = NULL, *json = NULL;

        if (plan_decode(data, len, &plan) < 0) {
                if (plan)
                        abort(); /* outputs are untouched on failure */
                return 0;
        }
        if (plan_explain(plan, NULL, &words) < 0)
                abort();
        plan_explain_json(plan, NULL, &json);
        /* Unknown flags are dropped on the way, nothing else is: the second encoding is a fixed point. */
        if (plan_encode(plan, &b) < 0 || b.len != len || plan_decode(b.data, b.len, &again) < 0)
                abort();
        return 0;
}
