/* A plan as bytes and back: between the library and its warden, and for an init that is a separate program. Both ends
 * are of one build; the version detects a mismatch. */
#include "plan.h"

#include <errno.h>

#include "../base/strv.h"
#include "../base/wire.h"

#define PLAN_MAGIC 0x686c7037u /* "hlp7"; named sessions find processes of the same format by it */

/* More than a box could ever be about. Not the number of steps: a box may have more layers than a run attaches. */
#define LAYERS_MOST 10000

enum {
        PLAN_NET_OPEN = 1,
        PLAN_NESTED = 4,
        PLAN_MAP_BY_PARENT = 16,
        PLAN_TRUNCATE = 32,
        PLAN_GROUP = 64,
        PLAN_MEMORY_BY_GROUP = 128,
        PLAN_EPHEMERAL = 256,
        PLAN_OPEN_ROOT = 512,
        PLAN_SESSION = 1024,
        PLAN_COMMANDS = 2048,
        PLAN_BRIDGE = 4096,
        PLAN_MAY_DEGRADE_SHIFT = 16, /* and above it a bit for each guarantee */
};

int plan_encode(const struct plan *p, struct buf *b) {
        wire_put_u32(b, PLAN_MAGIC);
        wire_put_u32(b, (p->nested ? PLAN_NESTED : 0u) | (p->net_open ? PLAN_NET_OPEN : 0u) |
                                (p->map_by_parent ? PLAN_MAP_BY_PARENT : 0u) | (p->truncate ? PLAN_TRUNCATE : 0u) |
                                (p->group ? PLAN_GROUP : 0u) | (p->memory_by_group ? PLAN_MEMORY_BY_GROUP : 0u) |
                                (p->ephemeral ? PLAN_EPHEMERAL : 0u) | (p->open_root ? PLAN_OPEN_ROOT : 0u) |
                                (p->session ? PLAN_SESSION : 0u) | (p->commands ? PLAN_COMMANDS : 0u) |
                                (p->bridge ? PLAN_BRIDGE : 0u) | p->may_degrade << PLAN_MAY_DEGRADE_SHIFT);
        wire_put_u32(b, p->traits);
        wire_put_str(b, p->backend);
        wire_put_str(b, p->channel);
        wire_put_u32(b, p->uid);
        wire_put_u32(b, p->gid);
        wire_put_u32(b, p->host_uid);
        wire_put_u32(b, p->host_gid);
        wire_put_str(b, p->user);
        wire_put_str(b, p->home);
        wire_put_str(b, p->host_name);
        wire_put_str(b, p->cwd);
        wire_put_strv(b, p->argv);
        wire_put_strv(b, p->env);
        wire_put_strv(b, p->env_origins);
        wire_put_strv(b, p->search);
        events_put(b, &p->events);
        wire_put_strv(b, p->commands_allow);
        wire_put_strv(b, p->commands_deny);
        wire_put_strv(b, p->commands_named);
        wire_put_strv(b, p->env_block);
        wire_put_str(b, p->guard.quarantine);
        wire_put_strv(b, p->guard.tops);
        wire_put_strv(b, p->guard.git);
        wire_put_strv(b, p->guard.spared);
        wire_put_strv(b, p->guard.names);
        relay_config_encode(&p->network, b);
        wire_put_strv(b, p->engine_env);
        wire_put_str(b, p->engine);
        wire_put_str(b, p->image);
        wire_put_u32(b, p->build_image);
#define NUMBER(field, key, label, unit, json) wire_put_u64(b, p->field);
#include "numbers.def"
#undef NUMBER
        wire_put_u32(b, p->n_layers);
        for (int g = 0; g < HUTCH_G_COUNT; g++)
                wire_put_u32(b, p->enforced[g]);
        wire_put_u32(b, (uint32_t) p->n_steps);
        for (size_t i = 0; i < p->n_steps; i++) {
                const struct step *s = &p->steps[i];

                wire_put_u32(b, s->kind);
                wire_put_u32(b, s->flags);
                wire_put_u32(b, s->mode);
                wire_put_u32(b, s->owner);
                wire_put_u32(b, s->group);
                wire_put_u32(b, s->layer);
                wire_put_u64(b, s->dev);
                wire_put_u64(b, s->ino);
                wire_put_str(b, s->source);
                wire_put_str(b, s->dest);
                wire_put_str(b, s->text);
                wire_put_str(b, s->origin);
                wire_put_strv(b, s->below);
        }
        return b->oom ? -ENOMEM : 0;
}

static bool below_is_whole(const struct step *s) {
        for (char **directory = s->below; directory && *directory; directory++)
                if (s->kind != STEP_COW || s->text || (*directory)[0] != '/')
                        return false;
        return s->below;
}

static void decode_steps(struct wire_reader *r, struct plan *p) {
        uint32_t n = wire_get_count(r, 11 * sizeof(uint32_t) + 2 * sizeof(uint64_t));

        p->steps = calloc((size_t) n + 1, sizeof(*p->steps));
        if (!p->steps) {
                r->failed = true;
                return;
        }
        for (p->n_steps = 0; p->n_steps < n && !r->failed; p->n_steps++) {
                struct step *s = &p->steps[p->n_steps];

                s->kind = wire_get_u32(r);
                s->flags = wire_get_u32(r);
                s->mode = wire_get_u32(r);
                s->owner = wire_get_u32(r);
                s->group = wire_get_u32(r);
                s->layer = wire_get_u32(r);
                s->dev = wire_get_u64(r);
                s->ino = wire_get_u64(r);
                s->source = wire_get_str(r);
                s->dest = wire_get_str(r);
                s->text = wire_get_str(r);
                s->origin = wire_get_str(r);
                s->below = wire_get_strv(r);
                if (s->kind > STEP_LAST || !s->dest || !s->origin ||
                    ((s->kind == STEP_BIND || s->kind == STEP_COW || s->kind == STEP_KEEP) && !s->source) ||
                    (s->kind == STEP_COW && s->layer >= p->n_layers) || !below_is_whole(s) ||
                    ((s->kind == STEP_SYMLINK || s->kind == STEP_FILE) && !s->text))
                        r->failed = true;
        }
}

/* Each variable is NAME=VALUE and has its origin: explain relies on both. */
static bool env_is_whole(const struct plan *p) {
        for (size_t i = 0; p->env && p->env[i]; i++)
                if (!strchr(p->env[i], '='))
                        return false;
        return strv_length(p->env) == strv_length(p->env_origins);
}

int plan_decode(const void *data, size_t len, struct plan **ret) {
        struct wire_reader r = {.data = data, .left = len};
        _cleanup_(plan_freep) struct plan *p = calloc(1, sizeof(*p));
        uint32_t flags;

        if (!p)
                return -ENOMEM;
        if (wire_get_u32(&r) != PLAN_MAGIC)
                return -EBADMSG;
        flags = wire_get_u32(&r);
        p->net_open = flags & PLAN_NET_OPEN;
        p->bridge = flags & PLAN_BRIDGE;
        p->nested = flags & PLAN_NESTED;
        p->map_by_parent = flags & PLAN_MAP_BY_PARENT;
        p->truncate = flags & PLAN_TRUNCATE;
        p->group = flags & PLAN_GROUP;
        p->memory_by_group = flags & PLAN_MEMORY_BY_GROUP;
        p->ephemeral = flags & PLAN_EPHEMERAL;
        p->session = flags & PLAN_SESSION;
        p->commands = flags & PLAN_COMMANDS;
        p->may_degrade = flags >> PLAN_MAY_DEGRADE_SHIFT;
        p->open_root = flags & PLAN_OPEN_ROOT;
        p->traits = wire_get_u32(&r);
        p->backend = wire_get_str(&r);
        p->channel = wire_get_str(&r);
        p->uid = wire_get_u32(&r);
        p->gid = wire_get_u32(&r);
        p->host_uid = wire_get_u32(&r);
        p->host_gid = wire_get_u32(&r);
        p->user = wire_get_str(&r);
        p->home = wire_get_str(&r);
        p->host_name = wire_get_str(&r);
        p->cwd = wire_get_str(&r);
        p->argv = wire_get_strv(&r);
        p->env = wire_get_strv(&r);
        p->env_origins = wire_get_strv(&r);
        p->search = wire_get_strv(&r);
        events_get(&r, &p->events);
        p->commands_allow = wire_get_strv(&r);
        p->commands_deny = wire_get_strv(&r);
        p->commands_named = wire_get_strv(&r);
        p->env_block = wire_get_strv(&r);
        p->guard.quarantine = wire_get_str(&r);
        p->guard.tops = wire_get_strv(&r);
        p->guard.git = wire_get_strv(&r);
        p->guard.spared = wire_get_strv(&r);
        p->guard.names = wire_get_strv(&r);
        relay_config_get(&r, &p->network);
        p->engine_env = wire_get_strv(&r);
        p->engine = wire_get_str(&r);
        p->image = wire_get_str(&r);
        p->build_image = wire_get_u32(&r) == 1;
#define NUMBER(field, key, label, unit, json) p->field = wire_get_u64(&r);
#include "numbers.def"
#undef NUMBER
        p->n_layers = wire_get_u32(&r);
        for (int g = 0; g < HUTCH_G_COUNT; g++) {
                p->enforced[g] = wire_get_u32(&r);
                if (p->enforced[g] > HUTCH_DEGRADED)
                        r.failed = true;
        }
        decode_steps(&r, p);
        if (r.failed || r.left > 0 || !p->backend || !p->user || !p->home || !p->cwd || !strv_length(p->argv) ||
            p->n_layers > LAYERS_MOST || p->traits & ~(unsigned) TRAIT_ALL || (p->session && !p->channel) ||
            !env_is_whole(p))
                return -EBADMSG;
        *ret = take_ptr(p);
        return 0;
}
