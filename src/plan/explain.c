/* A plan in words, and as JSON. Values of variables that a person set or passed are not shown: they may be secrets. */
#include "plan.h"

#include <errno.h>

#include "../base/buf.h"
#include "../base/json.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "../net/proxy.h"
#include "../policy/show.h"

static const char *const kind_names[] = {
        [STEP_COW] = "cow",   [STEP_BIND] = "bind", [STEP_TMPFS] = "tmpfs",   [STEP_SYMLINK] = "symlink",
        [STEP_FILE] = "file", [STEP_PROC] = "proc", [STEP_DEVPTS] = "devpts", [STEP_HIDE] = "hide",
        [STEP_SEAL] = "seal", [STEP_PIN] = "pin",   [STEP_KEEP] = "copy",
};

static bool is_secret(const struct plan *plan, size_t i) {
        return !streq(plan->env_origins[i], "default") && !streq(plan->env_origins[i], "credential");
}

static void put_quoted(struct buf *b, const char *s) {
        bool plain = s[0] && s[strcspn(s, " \t\n'\"\\$`*?[]{}()<>|&;#~!")] == 0;

        if (!plain)
                buf_puts(b, "'");
        text_put_clean(b, s, strlen(s));
        if (!plain)
                buf_puts(b, "'");
}

static const char *access_of(const struct step *s) {
        if (s->kind == STEP_HIDE || s->kind == STEP_SYMLINK || s->kind == STEP_SEAL || s->kind == STEP_PIN)
                return "";
        return s->flags & STEP_WRITABLE || s->kind == STEP_KEEP ? "rw" : "ro";
}

static void put_steps(struct buf *b, const struct plan *plan) {
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                buf_printf(b, "  %-8s%-3s", kind_names[s->kind], access_of(s));
                put_quoted(b, s->dest);
                if ((s->kind == STEP_BIND || s->kind == STEP_COW) && s->source && !streq(s->source, s->dest)) {
                        buf_puts(b, "  from ");
                        put_quoted(b, s->source);
                }
                if (s->kind == STEP_COW) /* made, or found among those of the box, when it starts */
                        buf_printf(b, "  layer %s%u", plan->ephemeral ? "in memory, " : "", s->layer);
                if (strv_length(s->below) > 0)
                        buf_printf(b, "  with %zu layer%s", strv_length(s->below),
                                   strv_length(s->below) == 1 ? "" : "s");
                if (s->kind == STEP_SYMLINK) {
                        buf_puts(b, " -> ");
                        put_quoted(b, s->text);
                }
                if (!streq(s->origin, "default")) {
                        buf_puts(b, "  (");
                        text_put_clean(b, s->origin, strlen(s->origin));
                        buf_puts(b, ")");
                }
                buf_puts(b, "\n");
        }
}

static void put_event(struct buf *b, const struct hutch_event *e) {
        buf_printf(b, "note: %s", e->text);
        if (e->fix)
                buf_printf(b, " (%s)", e->fix);
        buf_puts(b, "\n");
}

static void put_list(struct buf *b, const char *label, char *const *list) {
        for (; list && *list; list++)
                buf_printf(b, "%s%s\n", label, *list);
}

static void put_network(struct buf *b, const struct plan *plan) {
        char proxy[PROXY_SHOWN];

        if (plan->network.shared && plan->network.outbound)
                buf_printf(b, "network   allowed hosts, by TCP%s\n", plan->network.rules ? "" : ": none");
        else if (!(plan->traits & TRAIT_OWN_NET))
                buf_printf(b, "network   %s\n",
                           !plan->net_open ? "none, not even a loopback"
                           : plan->bridge  ? "the container engine's"
                                           : "the host's");
        else if (!plan->network.outbound)
                buf_puts(b, "network   none but the box's own loopback\n");
        else
                buf_printf(b, "network   allowed hosts%s%s\n",
                           plan->network.strict ? ", which TLS or plain HTTP must name" : "",
                           plan->network.rules ? "" : ": none");
        if (plan->network.proxy)
                buf_printf(b, "proxy     %s\n", proxy_shown(plan->network.proxy, proxy));
        for (size_t i = 0; plan->network.rules && plan->network.rules[i]; i++)
                buf_printf(b, "allow     %s  (%s)\n", plan->network.rules[i], plan->network.origins[i]);
        for (size_t i = 0; plan->network.credentials && plan->network.credentials[i]; i++)
                buf_printf(b, "credential %s, value not shown  (%s)\n", plan->network.credentials[i],
                           plan->network.credential_origins[i]);
        put_list(b, "publish   ", plan->network.publish);
        if (plan->network.publish_auto)
                buf_puts(b, "publish   every TCP port that the box listens on\n");
        put_list(b, "host port ", plan->network.host_ports);
}

static void put_words(struct buf *b, const char *title, char *const *words) {
        if (strv_length(words) == 0)
                return;
        buf_printf(b, "%s", title);
        for (; *words; words++) {
                buf_puts(b, " ");
                put_quoted(b, *words);
        }
        buf_puts(b, "\n");
}

static void put_commands(struct buf *b, const struct plan *plan) {
        put_words(b, "commands  only", plan->commands_allow);
        put_words(b, "commands  never", plan->commands_deny);
}

static void put_limits(struct buf *b, const struct plan *plan) {
        const struct {
                const char *label, *unit;
                uint64_t value;
        } all[] = {
#define NUMBER(field, key, label, unit, json) {label, unit, plan->field},
#include "numbers.def"
#undef NUMBER
        };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (all[i].label && all[i].value)
                        buf_printf(b, "%-10s%llu%s\n", all[i].label, (unsigned long long) all[i].value, all[i].unit);
}

/* The origin of each value; nothing where only defaults apply. */
static int put_settings(struct buf *b, const struct hutch_policy *policy) {
        struct setting *settings = NULL;
        size_t n = 0;
        int r;

        r = policy ? policy_settings(policy, &settings, &n) : 0;
        if (r < 0)
                return r;
        if (n > 0)
                buf_puts(b, "settings:\n");
        for (size_t i = 0; i < n; i++) {
                buf_printf(b, "  %s", settings[i].key);
                if (settings[i].value) {
                        buf_puts(b, " ");
                        put_quoted(b, settings[i].value);
                }
                buf_puts(b, "  (");
                text_put_clean(b, settings[i].origin, strlen(settings[i].origin));
                buf_puts(b, ")\n");
        }
        settings_free(settings, n);
        return 0;
}

int plan_explain(const struct plan *plan, const struct hutch_policy *policy, char **ret) {
        _cleanup_(buf_done) struct buf b = {0};

        buf_puts(&b, "command   ");
        for (char **a = plan->argv; *a; a++) {
                if (a != plan->argv)
                        buf_puts(&b, " ");
                put_quoted(&b, *a);
        }
        buf_puts(&b, "\ndirectory ");
        put_quoted(&b, plan->cwd);
        buf_printf(&b, "\nbackend   %s\n", plan->backend);
        if (plan->traits) {
                buf_printf(&b, "identity  %s, uid %u gid %u inside, uid %u gid %u outside\n", plan->user, plan->uid,
                           plan->gid, plan->host_uid, plan->host_gid);
                put_network(&b, plan);
                buf_printf(&b, "walls     %sno capabilities, no new privileges, system call filter%s%s\n",
                           plan->traits & TRAIT_OWN_ROOT ? "namespaces, " : "",
                           plan->traits & TRAIT_LANDLOCK ? ", Landlock" : "", plan->nested ? " (nesting allowed)" : "");
        } else
                buf_puts(&b, "walls     none: the command runs as you, on your files\n");
        put_commands(&b, plan);
        put_limits(&b, plan);
        if (plan->n_steps) {
                buf_puts(&b, "files, in the order in which they are put in place:\n");
                put_steps(&b, plan);
        }
        buf_puts(&b, "environment:\n");
        for (size_t i = 0; plan->env && plan->env[i]; i++) {
                size_t n = strcspn(plan->env[i], "=");

                buf_puts(&b, "  ");
                text_put_clean(&b, plan->env[i], n);
                if (is_secret(plan, i))
                        buf_printf(&b, "  (%s, value not shown)\n", plan->env_origins[i]);
                else {
                        buf_puts(&b, "=");
                        put_quoted(&b, plan->env[i] + n + 1);
                        buf_puts(&b, "\n");
                }
        }
        buf_puts(&b, "guarantees:\n");
        for (int g = 0; g < HUTCH_G_COUNT; g++)
                buf_printf(&b, "  %-12s%s\n", hutch_guarantee_name(g), hutch_enforcement_name(plan->enforced[g]));
        if (put_settings(&b, policy) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < plan->events.n; i++)
                put_event(&b, plan->events.items[i]);
        *ret = buf_take_string(&b);
        return *ret ? 0 : -ENOMEM;
}

/* A string of the host or of a request: JSON text where it is UTF-8, else {"base64": …}. */
static json_t *json_steps(const struct plan *plan) {
        json_t *steps = json_array();

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];
                json_t *o = json_pack("{s:s, s:o}", "kind", kind_names[s->kind], "dest", json_text(s->dest));

                if (s->source)
                        json_object_set_new(o, "source", json_text(s->source));
                if (s->text && s->kind == STEP_SYMLINK)
                        json_object_set_new(o, "target", json_text(s->text));
                if (s->kind == STEP_COW)
                        json_object_set_new(o, "layer", json_integer(s->layer));
                if (strv_length(s->below) > 0)
                        json_object_set_new(o, "below", json_texts(s->below));
                if (access_of(s)[0])
                        json_object_set_new(o, "access", json_string(access_of(s)));
                if (s->flags & STEP_DEVICES)
                        json_object_set_new(o, "devices", json_true());
                json_object_set_new(o, "origin", json_text(s->origin));
                json_array_append_new(steps, o);
        }
        return steps;
}

static json_t *json_env(const struct plan *plan) {
        json_t *env = json_array();

        for (size_t i = 0; plan->env && plan->env[i]; i++) {
                size_t n = strcspn(plan->env[i], "=");
                _cleanup_(freep) char *name = strndup(plan->env[i], n);

                json_array_append_new(env, json_pack("{s:o, s:o, s:o}", "name", json_text(name), "value",
                                                     is_secret(plan, i) ? json_null() : json_text(plan->env[i] + n + 1),
                                                     "origin", json_text(plan->env_origins[i])));
        }
        return env;
}

static json_t *json_identity(const struct plan *plan) {
        return json_pack("{s:o, s:I, s:I, s:I, s:I, s:o, s:s?}", "user", json_text(plan->user), "uid",
                         (json_int_t) plan->uid, "gid", (json_int_t) plan->gid, "host_uid", (json_int_t) plan->host_uid,
                         "host_gid", (json_int_t) plan->host_gid, "home", json_text(plan->home), "host_name",
                         plan->host_name);
}

/* A limit that is not set is null. */
static json_t *json_number(uint64_t n) {
        return n ? json_integer((json_int_t) n) : json_null();
}

static json_t *json_limits(const struct plan *plan) {
        const struct {
                const char *name;
                uint64_t value;
        } all[] = {
#define NUMBER(field, key, label, unit, json) {json, plan->field},
#include "numbers.def"
#undef NUMBER
        };
        json_t *limits =
                json_pack("{s:s, s:b}", "overflow", plan->truncate ? "truncate" : "kill", "control_group", plan->group);

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (all[i].name)
                        json_object_set_new(limits, all[i].name, json_number(all[i].value));
        return limits;
}

const char *trait_name(enum trait trait) {
        static const char *const names[N_TRAITS] = {"own_root", "own_pids", "own_net",   "own_ids", "own_ipc",
                                                    "filter",   "landlock", "delegated", "image",   "own_limits"};

        return names[__builtin_ctz(trait)];
}

static json_t *json_traits(const struct plan *plan) {
        json_t *list = json_array();

        for (unsigned bit = 0; bit < N_TRAITS; bit++)
                if (plan->traits & 1u << bit)
                        json_array_append_new(list, json_string(trait_name((enum trait)(1u << bit))));
        return list;
}

static json_t *json_settings(const struct hutch_policy *policy) {
        struct setting *settings = NULL;
        json_t *list = json_array();
        size_t n = 0;

        if (policy && policy_settings(policy, &settings, &n) < 0)
                return list;
        for (size_t i = 0; i < n; i++)
                json_array_append_new(list,
                                      json_pack("{s:s, s:o, s:o}", "key", settings[i].key, "value",
                                                json_text(settings[i].value), "origin", json_text(settings[i].origin)));
        settings_free(settings, n);
        return list;
}

static json_t *json_network(const struct plan *plan) {
        json_t *allow = json_array(), *credentials = json_array();
        char proxy[PROXY_SHOWN];

        for (size_t i = 0; plan->network.rules && plan->network.rules[i]; i++)
                json_array_append_new(allow, json_pack("{s:o, s:o}", "rule", json_text(plan->network.rules[i]),
                                                       "origin", json_text(plan->network.origins[i])));
        for (size_t i = 0; plan->network.credentials && plan->network.credentials[i]; i++)
                json_array_append_new(credentials,
                                      json_pack("{s:o, s:o}", "credential", json_text(plan->network.credentials[i]),
                                                "origin", json_text(plan->network.credential_origins[i])));
        return json_pack("{s:b, s:b, s:o, s:o, s:o, s:b, s:o, s:b, s:o}", "open", plan->net_open, "allowlist",
                         plan->network.outbound, "allow", allow, "credentials", credentials, "publish",
                         json_texts(plan->network.publish), "publish_auto", plan->network.publish_auto, "host_ports",
                         json_texts(plan->network.host_ports), "strict", plan->network.strict, "upstream_proxy",
                         plan->network.proxy ? json_text(proxy_shown(plan->network.proxy, proxy)) : json_null());
}

int plan_explain_json(const struct plan *plan, const struct hutch_policy *policy, char **ret) {
        json_t *root, *enforced = json_object();

        for (int g = 0; g < HUTCH_G_COUNT; g++)
                json_object_set_new(enforced, hutch_guarantee_name(g),
                                    json_string(hutch_enforcement_name(plan->enforced[g])));
        root = json_pack("{s:o, s:o, s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "argv", json_texts(plan->argv),
                         "cwd", json_text(plan->cwd), "backend", plan->backend, "traits", json_traits(plan), "identity",
                         json_identity(plan), "nested", plan->nested, "limits", json_limits(plan), "steps",
                         json_steps(plan), "env", json_env(plan), "enforced", enforced, "notices",
                         json_events((const struct hutch_event *const *) plan->events.items));
        if (root)
                json_object_set_new(root, "network", json_network(plan));
        if (root && plan->commands)
                json_object_set_new(root, "commands",
                                    json_pack("{s:o, s:o}", "allow",
                                              strv_length(plan->commands_allow) > 0 ? json_texts(plan->commands_allow)
                                                                                    : json_null(),
                                              "deny", json_texts(plan->commands_deny)));
        if (root && policy)
                json_object_set_new(root, "settings", json_settings(policy));
        *ret = json_print(root, JSON_INDENT(2));
        json_decref(root);
        return *ret ? 0 : -ENOMEM;
}
