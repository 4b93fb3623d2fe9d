/* The state of a session's shell, as an object. It is hostile: unknown words are left out, and so is what is not text.
 */
#include <errno.h>
#include <jansson.h>

#include "../base/json.h"
#include "../base/text.h"
#include "../base/wire.h"
#include "api.h"

#define STATE_MOST_MS 10000
#define STATE_MOST (64u << 20)

static json_t *bytes_json(const char *data, size_t len) {
        _cleanup_(buf_done) struct buf b = {0};

        if (text_is_utf8(data, len))
                return json_stringn(data, len);
        text_put_base64(&b, data, len);
        return json_pack("{s:s%}", "base64", (const char *) b.data, b.len);
}

/* A name that is no text cannot be a key. */
static void put_json(json_t *object, const char *name, const char *value) {
        if (text_is_utf8(name, strlen(name)))
                json_object_set_new_nocheck(object, name, bytes_json(value, strlen(value)));
}

/* The output of __hutch_state, or what the box made of it: records of NUL-terminated strings, a kind and then one or
 * two more, as the kind requires. */
static json_t *state_json(const char *at, size_t len) {
        static const struct {
                const char *word, *into;
        } maps[] = {{"variable", "variables"},
                    {"exported", "exported"},
                    {"array", "arrays"},
                    {"function", "functions"},
                    {"alias", "aliases"}};
        static const char *const single[] = {"cwd", "umask", "previous", "options"};
        json_t *root = json_pack("{s:{}, s:{}, s:{}, s:{}, s:{}, s:[]}", "variables", "exported", "arrays", "functions",
                                 "aliases", "jobs");
        const char *end = at + len;

        while (root && at < end) {
                const char *word = at, *first = word + strlen(word) + 1, *second;
                bool known = false;

                if (first >= end)
                        break;
                second = first + strlen(first) + 1;
                for (size_t i = 0; !known && second < end && i < ARRAY_SIZE(maps); i++)
                        if (streq(word, maps[i].word)) {
                                put_json(json_object_get(root, maps[i].into), first, second);
                                known = true;
                        }
                if (known) {
                        at = second + strlen(second) + 1;
                        continue;
                }
                if (streq(word, "job"))
                        json_array_append_new(json_object_get(root, "jobs"), bytes_json(first, strlen(first)));
                for (size_t i = 0; i < ARRAY_SIZE(single); i++)
                        if (streq(word, single[i]))
                                put_json(root, word, first);
                at = second;
        }
        return root;
}

static json_t *late_json(const char *data, size_t len) {
        struct wire_reader r = {.data = (const uint8_t *) data, .left = len};
        json_t *list = json_array();

        while (r.left > 0 && !r.failed) {
                uint32_t run = wire_get_u32(&r), stream = wire_get_u32(&r);
                size_t n;
                const char *text = wire_get_bytes(&r, &n);

                if (!r.failed)
                        json_array_append_new(list, json_pack("{s:i, s:s, s:o}", "run", (int) run, "stream",
                                                              stream == 1 ? "stdout" : "stderr", "text",
                                                              bytes_json(text, n)));
        }
        return list;
}

int hutch_box_state(hutch_box *box, char **ret, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!ret)
                return api_null(err, __func__, "ret");
        /* The box may have put something else in the function's place. */
        const hutch_request request = {.struct_size = sizeof(request),
                                       .command = "__hutch_state",
                                       .no_changes = true,
                                       .timeout_ms = STATE_MOST_MS,
                                       .output_cap = STATE_MOST};
        _cleanup_(client_state_done) struct client_state known = {0};
        hutch_result *result = NULL;
        json_t *root;
        int r;

        if (!box_is_session(box))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "the box is not a session: it has no state");
        r = hutch_box_run(box, &request, &result, err);
        if (r < 0) {
                hutch_result_free(result);
                return r;
        }
        if (result->killed) {
                hutch_result_free(result);
                return error_set(err, HUTCH_E_IO, EIO, "the shell could not report its state");
        }
        root = state_json(result->output[1], result->output_len[1]);
        json_object_set_new(root, "notices", json_events(result->notices)); /* the next run does not have them */
        hutch_result_free(result);
        box_enter(box);
        r = warden_client_state(box->warden, box->session_id, &known, err);
        box_leave(box);
        if (r >= 0) {
                json_object_set_new(root, "late_output", late_json(known.late, known.late_len));
                *ret = json_print(root, JSON_COMPACT);
                r = *ret ? 0 : error_oom(err);
        }
        json_decref(root);
        return r;
}
