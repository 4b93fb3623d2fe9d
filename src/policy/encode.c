/* A policy as bytes, for another process of the same build of hutch: its settings, with their origins. Keys are
 * identified by name, so that their order does not matter; an unknown key is an error. */
#include <errno.h>

#include "../base/strv.h"
#include "../base/wire.h"
#include "policy.h"

#define MAGIC 0x32504848u /* "HHP2" */

static void put_value(struct buf *b, enum key key, const struct value *v) {
        wire_put_str(b, key_info(key)->id);
        wire_put_str(b, v->origin);
        wire_put_u64(b, v->number);
        wire_put_str(b, v->text);
        wire_put_strv(b, v->list);
        wire_put_strv(b, v->origins);
}

int policy_encode(const struct hutch_policy *p, struct buf *ret) {
        uint32_t n = 0;

        for (enum key key = 0; key < N_KEYS; key++)
                n += policy_is_set(p, key);
        wire_put_u32(ret, MAGIC);
        wire_put_str(ret, HUTCH_VERSION);
        wire_put_str(ret, p->base_dir);
        wire_put_str(ret, p->home);
        wire_put_u32(ret, p->preset);
        wire_put_u32(ret, n);
        for (enum key key = 0; key < N_KEYS; key++)
                if (policy_is_set(p, key))
                        put_value(ret, key, &p->values[key]);
        wire_put_u32(ret, (uint32_t) p->n_paths);
        for (size_t i = 0; i < p->n_paths; i++) {
                wire_put_u32(ret, p->paths[i].access);
                wire_put_str(ret, p->paths[i].path);
                wire_put_str(ret, p->paths[i].dest);
                wire_put_str(ret, p->paths[i].origin);
        }
        wire_put_u32(ret, (uint32_t) p->n_kept);
        for (size_t i = 0; i < p->n_kept; i++) {
                wire_put_str(ret, p->kept[i].path);
                wire_put_strv(ret, p->kept[i].keys);
                wire_put_str(ret, p->kept[i].origin);
        }
        wire_put_strv(ret, p->arguments);
        wire_put_u32(ret, (uint32_t) p->n_env);
        for (size_t i = 0; i < p->n_env; i++) {
                wire_put_str(ret, p->env[i].name);
                wire_put_str(ret, p->env[i].value);
                wire_put_str(ret, p->env[i].origin);
        }
        wire_put_u32(ret, (uint32_t) p->n_hosts);
        for (size_t i = 0; i < p->n_hosts; i++) {
                wire_put_str(ret, p->hosts[i].host);
                wire_put_u32(ret, p->hosts[i].port);
                wire_put_str(ret, p->hosts[i].origin);
        }
        return ret->oom ? -ENOMEM : 0;
}

static enum key key_by_id(const char *id) {
        for (enum key key = 0; key < N_KEYS; key++)
                if (id && streq(key_info(key)->id, id))
                        return key;
        return N_KEYS;
}

static bool is_choice(enum key key, uint64_t number) {
        uint64_t n = 0;

        while (key_info(key)->names[n])
                n++;
        return number < n;
}

static int get_value(struct wire_reader *r, struct hutch_policy *p) {
        _cleanup_(freep) char *id = wire_get_str(r);
        enum key key = key_by_id(id);
        struct value *v;

        if (key == N_KEYS || policy_is_set(p, key))
                return -EBADMSG;
        v = &p->values[key];
        v->origin = wire_get_str(r);
        v->number = wire_get_u64(r);
        v->text = wire_get_str(r);
        v->list = wire_get_strv(r);
        v->origins = wire_get_strv(r);
        if (!v->origin || strv_length(v->list) != strv_length(v->origins))
                return -EBADMSG;
        if (key_info(key)->type == TYPE_CHOICE && !is_choice(key, v->number))
                return -EBADMSG;
        return 0;
}

static int get_rest(struct wire_reader *r, struct hutch_policy *p) {
        int result = 0;

        for (uint32_t n = wire_get_count(r, 16); n > 0 && result >= 0; n--) {
                uint32_t access = wire_get_u32(r);
                _cleanup_(freep) char *path = wire_get_str(r), *dest = wire_get_str(r), *origin = wire_get_str(r);

                if (!path || !origin || access > HUTCH_SOCKET)
                        return -EBADMSG;
                result = policy_add_path(p, (enum hutch_access) access, path, dest, origin, NULL);
        }
        for (uint32_t n = wire_get_count(r, 12); n > 0 && result >= 0; n--) {
                _cleanup_(freep) char *path = wire_get_str(r), *origin = NULL;
                _cleanup_(strv_freep) char **keys = wire_get_strv(r);

                origin = wire_get_str(r);
                if (!path || path[0] != '/' || !origin)
                        return -EBADMSG;
                result = policy_add_kept(p, path, keys, origin);
        }
        p->arguments = wire_get_strv(r);
        for (uint32_t n = wire_get_count(r, 12); n > 0 && result >= 0; n--) {
                _cleanup_(freep) char *name = wire_get_str(r), *value = wire_get_str(r), *origin = wire_get_str(r);

                if (!name || !origin)
                        return -EBADMSG;
                result = policy_add_env(p, name, value, origin, NULL);
        }
        for (uint32_t n = wire_get_count(r, 12); n > 0 && result >= 0; n--) {
                _cleanup_(freep) char *host = wire_get_str(r), *origin = NULL;
                uint32_t port = wire_get_u32(r);

                origin = wire_get_str(r);
                if (!host || !origin || port > UINT16_MAX)
                        return -EBADMSG;
                result = policy_add_host(p, host, (uint16_t) port, origin, NULL);
        }
        return result;
}

int policy_decode(struct wire_reader *r, struct hutch_policy **ret) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL;
        uint32_t magic = wire_get_u32(r), preset;
        _cleanup_(freep) char *version = wire_get_str(r), *base = wire_get_str(r), *home = wire_get_str(r);
        int result;

        if (magic != MAGIC || !version || !streq(version, HUTCH_VERSION) || !base)
                return -EBADMSG;
        result = policy_new(base, home, &p);
        if (result < 0)
                return result;
        preset = wire_get_u32(r);
        result = policy_use_preset(p, (enum hutch_preset) preset, NULL);
        for (uint32_t n = wire_get_count(r, 28); n > 0 && result >= 0; n--)
                result = get_value(r, p);
        if (result >= 0)
                result = get_rest(r, p);
        if (result < 0 || r->failed)
                return result == -ENOMEM ? result : -EBADMSG;
        *ret = take_ptr(p);
        return 0;
}
