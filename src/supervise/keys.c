/* See keys.h. The box's text is hostile: its size is bounded by the caller, its depth by jansson, and nothing of it is
 * copied but the values of listed keys. */
#include "keys.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "../base/macro.h"
#include "../base/strv.h"

#define PARTS_MOST 8

static void json_freep(json_t **json) {
        json_decref(*json);
}

static json_t *read_object(const char *text, size_t len) {
        json_t *json = text ? json_loadb(text, len, JSON_ALLOW_NUL, NULL) : json_object();

        if (json_is_object(json))
                return json;
        json_decref(json);
        return NULL;
}

static int carry(json_t *host, json_t *box, json_t *base, const char *const *parts, size_t n);

/* The object of the host at one key, made where the box has one and the host nothing. */
static int carry_into(json_t *host, const char *key, json_t *box, json_t *base, const char *const *parts, size_t n) {
        json_t *there = json_object_get(host, key);
        _cleanup_(json_freep) json_t *made = there ? json_incref(there) : json_object();
        int r;

        if (!made)
                return -ENOMEM;
        if (!json_is_object(box) || !json_is_object(made))
                return 0;
        r = carry(made, box, base, parts, n);
        if (r > 0 && !there && json_object_set(host, key, made) < 0)
                return -ENOMEM;
        return r;
}

static int carry_key(json_t *host, json_t *box, json_t *base, const char *key, const char *const *parts, size_t n) {
        json_t *value = json_object_get(box, key), *was = json_object_get(base, key);

        if (!value)
                return 0;
        if (n > 0)
                return carry_into(host, key, value, was, parts, n);
        if ((was && json_equal(was, value)) || json_equal(json_object_get(host, key), value))
                return 0;
        return json_object_set(host, key, value) < 0 ? -ENOMEM : 1;
}

static int carry(json_t *host, json_t *box, json_t *base, const char *const *parts, size_t n) {
        const char *key;
        json_t *value;
        int r = 0;

        if (!streq(parts[0], "*"))
                return carry_key(host, box, base, parts[0], parts + 1, n - 1);
        json_object_foreach(box, key, value) {
                int one = carry_key(host, box, base, key, parts + 1, n - 1);

                if (one < 0)
                        return one;
                r |= one;
        }
        return r;
}

static int carry_rule(json_t *host, json_t *box, json_t *base, char *rule, const char *workspace) {
        const char *parts[PARTS_MOST];
        size_t n = 0;

        for (char *next = rule, *part; n < PARTS_MOST && (part = strsep(&next, "."));)
                parts[n++] = streq(part, "${WORKSPACE}") ? workspace : part;
        return n > 0 && parts[0][0] ? carry(host, box, base, parts, n) : 0;
}

int keys_merge(const char *rules, const char *host, size_t host_len, const char *box, size_t box_len, const char *base,
               size_t base_len, char **ret, size_t *ret_len) {
        _cleanup_(json_freep) json_t *to = read_object(host, host_len), *from = read_object(box, box_len),
                                     *was = read_object(base, base_len);
        _cleanup_(freep) char *lines = strdup(rules), *text = NULL;
        char *next = lines;
        const char *workspace;
        int changed = 0;

        if (!lines)
                return -ENOMEM;
        if (!to || !from)
                return to ? -EBADMSG : -EUCLEAN;
        workspace = strsep(&next, "\n");
        for (char *rule; (rule = strsep(&next, "\n"));) {
                int r = carry_rule(to, from, was, rule, workspace);

                if (r < 0)
                        return r;
                changed |= r;
        }
        if (!changed)
                return 0;
        text = json_dumps(to, JSON_INDENT(2));
        if (!text)
                return -ENOMEM;
        *ret_len = strlen(text);
        *ret = take_ptr(text);
        return 1;
}

int keys_check(const char *text, size_t len) {
        _cleanup_(json_freep) json_t *json = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

        return json ? 0 : -EBADMSG;
}
