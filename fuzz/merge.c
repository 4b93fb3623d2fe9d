/* Texts of a box that are merged into those of the host: base, host and box, split at NUL bytes. As lines, as `hutch apply
 * --merge` does, and as JSON objects of which some keys are taken, as for an agent's settings. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "review/merge.h"
#include "supervise/keys.h"

static struct buf part(const uint8_t **data, size_t *left) {
        const uint8_t *end = memchr(*data, 0, *left);
        struct buf b = {0};
        size_t n = end ? (size_t) (end - *data) : *left;

        buf_put(&b, *data, n);
        *data += n + (end != NULL);
        *left -= n + (end != NULL);
        return b;
}

static void expect(const struct buf *base, const struct buf *host, const struct buf *box, const struct buf *want) {
        struct buf got = {0};
        int r = merge_texts(base, host, box, &got);

        if (r >= 0 && (r != 1 || got.len != want->len || (want->len && memcmp(got.data, want->data, want->len))))
                abort();
        buf_done(&got);
}

static void keys(const struct buf *base, const struct buf *host, const struct buf *box) {
        static const char rules[] = "oauthAccount\nprojects.${WORKSPACE}\n";
        char *merged = NULL;
        size_t len = 0;
        int r = keys_merge(rules, (const char *) host->data, host->len, (const char *) box->data, box->len,
                           (const char *) base->data, base->len, &merged, &len);

        if (r == 1 && keys_check(merged, len) < 0)
                abort(); /* the host reads it */
        if (r != 1 && merged)
                abort();
        free(merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        struct buf base = part(&data, &len), host = part(&data, &len), box = part(&data, &len), merged = {0};

        if (!base.oom && !host.oom && !box.oom) {
                merge_texts(&base, &host, &box, &merged);
                expect(&base, &base, &box, &box); /* one side alone changed something */
                expect(&base, &host, &base, &host);
                keys(&base, &host, &box);
        }
        buf_done(&base);
        buf_done(&host);
        buf_done(&box);
        buf_done(&merged);
        return 0;
}
