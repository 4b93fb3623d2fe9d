/* A review as JSON, for programs: what `hutch diff --json` prints. */
#include <errno.h>
#include <jansson.h>
#include <sys/stat.h>

#include "../base/text.h"
#include "../base/json.h"
#include "reviewed.h"
#include "api.h"

static json_t *mode_json(uint32_t mode) {
        char text[16];

        if (!mode)
                return json_null();
        snprintf(text, sizeof(text), "%06o", S_ISLNK(mode) ? S_IFLNK : mode);
        return json_string(text);
}

static const char *type_of(const hutch_change *c) {
        uint32_t mode = c->new_mode ? c->new_mode : c->old_mode;

        return S_ISREG(mode)    ? "file"
               : S_ISDIR(mode)  ? "directory"
               : S_ISLNK(mode)  ? "link"
               : S_ISFIFO(mode) ? "fifo"
               : S_ISSOCK(mode) ? "socket"
                                : "device";
}

static int change_json(const hutch_review *review, size_t index, json_t **ret, struct hutch_error *err) {
        static const char *const kinds[] = {
                [HUTCH_CREATED] = "created", [HUTCH_MODIFIED] = "modified", [HUTCH_DELETED] = "deleted"};
        _cleanup_(buf_done) struct buf diff = {0};
        hutch_change c;
        int form;

        hutch_review_change(review, index, &c);
        form = review_diff_change(review, index, 0, &diff, err);
        if (form < 0)
                return form;
        *ret = json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:b, s:b, s:s?, s:o}", "kind", kinds[c.kind], "path",
                         json_bytes(c.short_path, strlen(c.short_path)), "host_path",
                         json_bytes(c.path, strlen(c.path)), "type", type_of(&c), "old_mode", mode_json(c.old_mode),
                         "new_mode", mode_json(c.new_mode), "old_size",
                         c.old_mode ? json_integer((json_int_t) c.old_size) : json_null(), "new_size",
                         c.new_mode ? json_integer((json_int_t) c.new_size) : json_null(), "binary",
                         form == DIFF_BINARY, "protected", c.is_protected, "note", c.note, "diff",
                         form == DIFF_TEXT ? json_bytes((const char *) diff.data, diff.len) : json_null());
        return *ret ? 0 : error_oom(err);
}

int hutch_review_to_json(const hutch_review *review, const char *const *paths, char **ret, hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        if (!ret)
                return api_null(err, __func__, "ret");
        _cleanup_(freep) size_t *chosen = NULL;
        json_t *all = json_array();
        size_t n = 0;
        int r = hutch_review_select(review, paths, &chosen, &n, err);

        for (size_t i = 0; r >= 0 && i < n; i++) {
                json_t *one = NULL;

                r = change_json(review, chosen[i], &one, err);
                if (r >= 0 && json_array_append_new(all, one) < 0)
                        r = error_oom(err);
        }
        if (r >= 0) {
                *ret = json_print(all, JSON_COMPACT);
                r = *ret ? 0 : error_oom(err);
        }
        json_decref(all);
        return r;
}
