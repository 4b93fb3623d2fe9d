/* The option loader; see options.h. Each option is a row: its name, what its value is called, its help, and the
 * function that puts it into the policy. Values never carry secrets into messages: an --env that cannot be parsed names
 * the variable only. */
#include "options.h"

#include <errno.h>

#include "../base/strv.h"
#include "../base/io.h"
#include "../base/parse.h"
#include "../base/text.h"

#include <fcntl.h>

struct option;
typedef int (*option_setter)(struct hutch_policy *p, const struct option *o, const char *value,
                             struct hutch_error *err);

struct option {
        const char *name;
        char letter;
        const char *value_name, *help;
        option_setter set;
        int which; /* the limit, the access: whatever the setter needs to tell rows apart */
};

static int choose(const struct option *o, const char *value, const char *const *names, size_t n, int *ret,
                  struct hutch_error *err) {
        const char *near;

        for (size_t i = 0; i < n; i++)
                if (streq(value, names[i])) {
                        *ret = (int) i;
                        return 0;
                }
        near = text_nearest(value, names, n);
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "--%s: '%s' is not one of %s%s%s%s", o->name, value,
                         o->value_name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int set_dir(struct hutch_policy *p, const struct option *o _unused_, const char *value,
                   struct hutch_error *err) {
        return policy_set_workspace_dir(p, value, err);
}

static int set_workspace(struct hutch_policy *p, const struct option *o, const char *value, struct hutch_error *err) {
        static const char *const names[] = {"none", "ro", "rw", "cow"};
        int which = 0, r = choose(o, value, names, ARRAY_SIZE(names), &which, err);

        if (r >= 0)
                p->workspace = (enum hutch_workspace) which;
        return r;
}

static int set_identity(struct hutch_policy *p, const struct option *o, const char *value, struct hutch_error *err) {
        static const char *const names[] = {"host", "user", "root"};
        int which = 0, r = choose(o, value, names, ARRAY_SIZE(names), &which, err);

        if (r >= 0)
                p->identity = (enum hutch_identity) which;
        return r;
}

static int set_network(struct hutch_policy *p, const struct option *o, const char *value, struct hutch_error *err) {
        static const char *const names[] = {"deny", "open", "loopback", "allowlist"};
        int which = 0, r = choose(o, value, names, ARRAY_SIZE(names), &which, err);

        if (r >= 0) {
                p->network = (enum hutch_network) which;
                p->network_asked = true;
        }
        return r;
}

static int set_isolation(struct hutch_policy *p, const struct option *o _unused_, const char *value,
                         struct hutch_error *err) {
        p->isolation_asked = true;
        return policy_set_string(&p->isolation, streq(value, "restricted") ? "auto" : value, err);
}

/* PATH or PATH:DEST, a colon of the path itself written as "\:". */
static int set_path(struct hutch_policy *p, const struct option *o, const char *value, struct hutch_error *err) {
        _cleanup_(freep) char *path = strdup(value);
        char *out, *dest = NULL, origin[32] = "--";

        if (!path)
                return error_oom(err);
        out = path;
        for (char *in = path; *in; in++) {
                if (in[0] == '\\' && in[1] == ':') {
                        *out++ = *++in;
                        continue;
                }
                if (in[0] == ':' && !dest) {
                        *out++ = 0;
                        dest = out;
                        continue;
                }
                *out++ = *in;
        }
        *out = 0;
        strcat(origin, o->name);
        if (strpbrk(path, "*?[") && o->which == HUTCH_HIDE)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "--hide: '%s' is a pattern, and patterns cannot be enforced yet: name each path",
                                 path);
        return policy_add_path(p, (enum hutch_access) o->which, path, dest, origin, err);
}

static int set_limit(struct hutch_policy *p, const struct option *o, const char *value, struct hutch_error *err) {
        uint64_t v = 0;
        int r;

        switch (o->which) {
        case HUTCH_LIMIT_TIMEOUT_MS:
        case HUTCH_LIMIT_CPU_TIME_MS:
                r = parse_duration_ms(value, &v);
                break;
        case HUTCH_LIMIT_CPU_PERCENT:
                r = parse_percent(value, &v);
                break;
        case HUTCH_LIMIT_PIDS:
                r = parse_u64(value, &v);
                break;
        default:
                r = parse_size(value, &v);
        }
        if (r < 0)
                return error_set(err, HUTCH_E_POLICY_INVALID, r, "--%s: '%s' is not %s", o->name, value, o->value_name);
        p->limits[o->which] = (struct limit){true, v};
        return 0;
}

static int set_overflow(struct hutch_policy *p, const struct option *o, const char *value, struct hutch_error *err) {
        static const char *const names[] = {"kill", "truncate"};
        int which = 0, r = choose(o, value, names, ARRAY_SIZE(names), &which, err);

        if (r >= 0)
                p->overflow = (enum overflow) which;
        return r;
}

static int add_assignment(struct hutch_policy *p, const char *text, const char *origin, struct hutch_error *err) {
        const char *equals = strchr(text, '=');
        _cleanup_(freep) char *name = equals ? strndup(text, (size_t) (equals - text)) : strdup(text);

        if (!name)
                return error_oom(err);
        return policy_add_env(p, name, equals ? equals + 1 : NULL, origin, err);
}

static int set_env(struct hutch_policy *p, const struct option *o _unused_, const char *value,
                   struct hutch_error *err) {
        return add_assignment(p, value, "--env", err);
}

static int set_env_block(struct hutch_policy *p, const struct option *o _unused_, const char *value,
                         struct hutch_error *err) {
        if (!value[0] || strchr(value, '='))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--env-block '%s': the name of a variable is wanted", value);
        return strv_push(&p->env_block, value) < 0 ? error_oom(err) : 0;
}

/* One NAME=VALUE or NAME a line, `#` comments, blank lines; values are taken as they stand, quotes included. The file
 * is the one thing of the host that a loader reads. */
static int set_env_file(struct hutch_policy *p, const struct option *o _unused_, const char *value,
                        struct hutch_error *err) {
        _cleanup_(freep) char *text = NULL;
        size_t len, line = 0;
        int r;

        r = read_whole_file(AT_FDCWD, value, 16 << 20, &text, &len);
        if (r < 0)
                return error_set(err, r == -ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, r, "--env-file %s: %s", value,
                                 errno_text(-r));
        if (strlen(text) != len)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "--env-file %s: holds a NUL byte", value);
        for (char *next = text; next;) {
                char *at = strsep(&next, "\n");

                line++;
                at += strspn(at, " \t");
                if (!at[0] || at[0] == '#' || at[0] == '\r')
                        continue;
                if (at[strlen(at) - 1] == '\r')
                        at[strlen(at) - 1] = 0;
                r = add_assignment(p, at, "--env-file", err);
                if (r < 0)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "--env-file %s:%zu: not NAME=VALUE or NAME", value, line);
        }
        return 0;
}

static int set_allow_host(struct hutch_policy *p, const struct option *o _unused_, const char *value,
                          struct hutch_error *err) {
        const char *colon = strrchr(value, ':');
        _cleanup_(freep) char *host = NULL;
        uint64_t port = 0;

        /* A second colon before it makes it an IPv6 address, which takes a port only as [address]:port. */
        if (colon && value[0] != '[' && strchr(value, ':') != colon)
                colon = NULL;
        if (colon && value[0] == '[' && colon[-1] != ']')
                colon = NULL;
        if (colon && (parse_u64(colon + 1, &port) < 0 || port == 0 || port > 65535))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "--allow-host: '%s': '%s' is not a port", value,
                                 colon + 1);
        host = colon ? strndup(value, (size_t) (colon - value)) : strdup(value);
        if (!host)
                return error_oom(err);
        if (!host[0])
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "--allow-host: '%s': no host is named", value);
        if (!p->network_asked)
                p->network = HUTCH_NET_ALLOWLIST;
        p->network_asked = true;
        return policy_add_host(p, host, (uint16_t) port, err);
}

enum { FLAG_SAME_PATH, FLAG_ALLOW_DEGRADED, FLAG_STRICT, FLAG_ALLOW_NESTED, FLAG_EPHEMERAL, FLAG_TRACK };

static int set_flag(struct hutch_policy *p, const struct option *o, const char *value _unused_,
                    struct hutch_error *err _unused_) {
        switch (o->which) {
        case FLAG_SAME_PATH:
                p->same_path = true;
                break;
        case FLAG_ALLOW_DEGRADED:
                p->allow_degraded = true;
                break;
        case FLAG_STRICT:
                p->strict = true;
                break;
        case FLAG_ALLOW_NESTED:
                p->allow_nested = true;
                break;
        case FLAG_EPHEMERAL:
                p->ephemeral = true;
                break;
        case FLAG_TRACK:
                p->track = true;
                break;
        default:
                break;
        }
        return 0;
}

static const struct option options[] = {
        {"dir", 'd', "DIR", "the workspace (default: the current folder)", set_dir, 0},
        {"same-path", 0, NULL, "start in the workspace's host path instead of /workspace/<basename>", set_flag,
         FLAG_SAME_PATH},
        {"workspace", 0, "rw|ro|cow|none", "how the workspace is attached", set_workspace, 0},
        {"ro", 0, "PATH[:DEST]", "attach a further path read-only", set_path, HUTCH_READ},
        {"rw", 0, "PATH[:DEST]", "attach a further path read-write", set_path, HUTCH_WRITE},
        {"cow", 0, "PATH[:DEST]",
         "attach a further path copy-on-write; /: write wherever root could, keep nothing of it", set_path, HUTCH_COW},
        {"ephemeral", 0, NULL, "keep copy-on-write changes in memory, gone with the box", set_flag, FLAG_EPHEMERAL},
        {"track", 0, NULL, "tell what a run changed in a workspace that it writes directly", set_flag, FLAG_TRACK},
        {"hide", 0, "PATH", "mask a path", set_path, HUTCH_HIDE},
        {"tmpfs", 0, "PATH", "put an empty writable folder there", set_path, HUTCH_TMPFS},
        {"dev", 0, "PATH", "attach a device node", set_path, HUTCH_DEVICE},
        {"as", 0, "host|user|root", "identity inside the box", set_identity, 0},
        {"net", 0, "deny|open|loopback|allowlist", "the network policy", set_network, 0},
        {"allow-host", 0, "NAME[:PORT]", "allow one host; implies --net allowlist", set_allow_host, 0},
        {"isolation", 0, "auto|none|restricted|namespace", "the backend", set_isolation, 0},
        {"timeout", 0, "a duration (500ms, 30s, 2m)", "end the box after this time", set_limit, HUTCH_LIMIT_TIMEOUT_MS},
        {"memory", 0, "a size (256M, 2G)", "limit the box's memory", set_limit, HUTCH_LIMIT_MEMORY},
        {"cpu", 0, "a percentage (50%)", "limit the processor share, of one core", set_limit, HUTCH_LIMIT_CPU_PERCENT},
        {"cpu-time", 0, "a duration (10s, 5m)", "limit the processor time", set_limit, HUTCH_LIMIT_CPU_TIME_MS},
        {"pids", 0, "a number", "limit the number of processes", set_limit, HUTCH_LIMIT_PIDS},
        {"disk", 0, "a size (1G)", "limit what the box's own places hold", set_limit, HUTCH_LIMIT_DISK},
        {"output-cap", 0, "a size (1M)", "limit stdout and stderr together", set_limit, HUTCH_LIMIT_OUTPUT},
        {"output-overflow", 0, "kill|truncate", "what happens at the cap", set_overflow, 0},
        {"env", 0, "K=V or K", "set a variable, or pass the caller's", set_env, 0},
        {"env-block", 0, "K", "never pass a variable, nor keep it in snapshots of a session", set_env_block, 0},
        {"env-file", 0, "FILE", "set the variables of a file", set_env_file, 0},
        {"allow-degraded", 0, NULL, "accept less than was asked for where this host cannot enforce it", set_flag,
         FLAG_ALLOW_DEGRADED},
        {"strict", 0, NULL, "refuse where even a standing comfort would be degraded", set_flag, FLAG_STRICT},
        {"allow-nested", 0, NULL, "let the box make namespaces and mounts of its own", set_flag, FLAG_ALLOW_NESTED},
};

bool option_describe(size_t index, struct hutch_option_info *ret) {
        if (index >= ARRAY_SIZE(options))
                return false;
        *ret = (struct hutch_option_info){options[index].name, options[index].letter, options[index].value_name,
                                          options[index].help};
        return true;
}

int policy_set_option(struct hutch_policy *p, const char *name, const char *value, struct hutch_error *err) {
        const char *names[ARRAY_SIZE(options)], *near;

        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                const struct option *o = &options[i];

                names[i] = o->name;
                if (!streq(name, o->name))
                        continue;
                if (o->value_name && !value)
                        return error_set(err, HUTCH_E_USAGE, EINVAL, "--%s needs a value: %s", name, o->value_name);
                if (!o->value_name && value)
                        return error_set(err, HUTCH_E_USAGE, EINVAL, "--%s takes no value", name);
                return o->set(p, o, value, err);
        }
        near = text_nearest(name, names, ARRAY_SIZE(names));
        return error_set(err, HUTCH_E_USAGE, EINVAL, "unknown option --%s%s%s%s", name, near ? "; did you mean --" : "",
                         near ? near : "", near ? "?" : "");
}
