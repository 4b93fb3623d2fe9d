/* Values from text, by the type of their key. Messages never repeat the value of a variable: it may be a secret. */
#include "value.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "../base/io.h"
#include "../base/parse.h"
#include "../base/path.h"
#include "../base/strv.h"

static int set_origin(struct value *v, const char *origin, struct hutch_error *err) {
        char *copy = strdup(origin);

        if (!copy)
                return error_oom(err);
        free(v->origin);
        v->origin = copy;
        return 0;
}

int policy_set_number(struct hutch_policy *p, enum key key, uint64_t number, const char *origin,
                      struct hutch_error *err) {
        int r = set_origin(&p->values[key], origin, err);

        if (r < 0)
                return r;
        p->values[key].number = number;
        return 0;
}

static int set_text(struct hutch_policy *p, enum key key, const char *text, const char *origin,
                    struct hutch_error *err) {
        struct value *v = &p->values[key];
        _cleanup_(freep) char *copy = NULL, *expanded = NULL;
        int r;

        if (key_info(key)->type == TYPE_DIR) {
                r = policy_expand(p, text, &expanded, err);
                if (r < 0)
                        return r;
                r = policy_resolve(p, expanded, &copy, err);
                if (r < 0)
                        return r;
        } else {
                r = key_info(key)->check ? key_info(key)->check(text, err) : 0;
                if (r < 0)
                        return r;
                copy = strdup(text);
                if (!copy)
                        return error_oom(err);
        }
        r = set_origin(v, origin, err);
        if (r < 0)
                return r;
        free(v->text);
        v->text = take_ptr(copy);
        return 0;
}

static int set_parsed(struct hutch_policy *p, enum key key, const char *text, const char *origin,
                      struct hutch_error *err) {
        uint64_t number = 0;
        char room[128];
        int r;

        switch (key_info(key)->type) {
        case TYPE_CHOICE:
                r = key_parse_choice(key, text, &number, err);
                return r < 0 ? r : policy_set_number(p, key, number, origin, err);
        case TYPE_COUNT:
                r = parse_u64(text, &number);
                break;
        case TYPE_SIZE:
                r = parse_size(text, &number);
                break;
        case TYPE_DURATION:
                r = parse_duration_ms(text, &number);
                break;
        default:
                r = parse_percent(text, &number);
        }
        if (r < 0)
                return error_set(err, HUTCH_E_POLICY_INVALID, r, "'%s' is not %s", text,
                                 key_expects(key, room, sizeof(room)));
        return policy_set_number(p, key, number, origin, err);
}

static int set_flag(struct hutch_policy *p, enum key key, const char *text, const char *origin,
                    struct hutch_error *err) {
        if (text && !streq(text, "true") && !streq(text, "false"))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s' is not true or false", text);
        return policy_set_number(p, key, !text || streq(text, key_info(key)->inverted ? "false" : "true"), origin, err);
}

static int add_item(struct hutch_policy *p, enum key key, const char *text, const char *origin,
                    struct hutch_error *err) {
        struct value *v = &p->values[key];
        int r;

        if (key_info(key)->type == TYPE_MAP && (text[0] == '=' || !strchr(text, '=')))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s' is not NAME=VALUE", text);
        r = key_info(key)->check ? key_info(key)->check(text, err) : 0;
        if (r < 0)
                return r;
        for (size_t i = 0; key_info(key)->type == TYPE_MAP && v->list && v->list[i]; i++) {
                size_t n = strcspn(text, "=") + 1;
                _cleanup_(freep) char *copy = NULL, *who = NULL;

                if (strncmp(v->list[i], text, n) != 0)
                        continue;
                copy = strdup(text);
                who = strdup(origin);
                if (!copy || !who)
                        return error_oom(err);
                free(v->list[i]);
                free(v->origins[i]);
                v->list[i] = take_ptr(copy);
                v->origins[i] = take_ptr(who);
                return set_origin(v, origin, err);
        }
        if (strv_push(&v->list, text) < 0 || strv_push(&v->origins, origin) < 0)
                return error_oom(err);
        return set_origin(v, origin, err);
}

/* PATH or PATH:DEST, a colon of the path itself written as "\:". */
static int add_path(struct hutch_policy *p, enum key key, const char *text, const char *origin,
                    struct hutch_error *err) {
        _cleanup_(freep) char *path = NULL;
        char *out, *dest = NULL;
        int r;

        r = policy_expand(p, text, &path, err);
        if (r < 0)
                return r;
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
        return policy_add_path_plain(p, key_info(key)->access, path, dest, origin, err);
}

static int add_env(struct hutch_policy *p, const char *text, const char *origin, struct hutch_error *err) {
        const char *equals = strchr(text, '=');
        _cleanup_(freep) char *name = equals ? strndup(text, (size_t) (equals - text)) : strdup(text);

        if (!name)
                return error_oom(err);
        return policy_add_env_plain(p, name, equals ? equals + 1 : NULL, origin, err);
}

/* In the workspace an earlier box may have left a link to any file of the host, so none is followed there. */
static int open_unlinked(const struct hutch_policy *p, const char *file) {
        const char *const tops[] = {p->base_dir, policy_dir(p)};
        struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY, .resolve = RESOLVE_NO_SYMLINKS};
        _cleanup_(freep) char *absolute = NULL;
        int fd;

        if (path_make_absolute(file, p->base_dir, &absolute) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
                _cleanup_(closep) int top = -1;

                if (!path_is_beneath(absolute, tops[i]) || streq(absolute, tops[i]))
                        continue;
                top = open(tops[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (top < 0)
                        return -errno;
                fd = (int) syscall(SYS_openat2, top, path_tail(absolute, tops[i]) + 1, &how, sizeof(how));
                if (fd < 0 && errno == ENOSYS)
                        fd = openat(top, path_tail(absolute, tops[i]) + 1,
                                    O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
                return fd < 0 ? -errno : fd;
        }
        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? -errno : fd;
}

int policy_read_unlinked(const struct hutch_policy *p, const char *file, size_t most, char **ret, size_t *ret_len) {
        _cleanup_(closep) int fd = open_unlinked(p, file);

        return fd < 0 ? fd : read_whole_fd(fd, most, ret, ret_len);
}

/* One NAME=VALUE or NAME a line, `#` comments, blank lines; values are taken as they are, quotes included. This file
 * is the only thing of the host that a loader of options reads. */
static int add_env_file(struct hutch_policy *p, const char *file, const char *origin, struct hutch_error *err) {
        _cleanup_(freep) char *text = NULL;
        size_t len, line = 0;
        int r;

        r = policy_read_unlinked(p, file, 16 << 20, &text, &len);
        if (r == -ELOOP)
                return error_set(err, HUTCH_E_POLICY_REFUSED, r,
                                 "%s: symbolic links are not followed in the workspace: name the file itself", file);
        if (r < 0)
                return error_set(err, r == -ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, r, "%s: %s", file,
                                 errno_text(-r));
        if (strlen(text) != len)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s: contains a NUL byte", file);
        for (char *next = text; next;) {
                char *at = strsep(&next, "\n");

                line++;
                at += strspn(at, " \t");
                if (!at[0] || at[0] == '#' || at[0] == '\r')
                        continue;
                if (at[strlen(at) - 1] == '\r')
                        at[strlen(at) - 1] = 0;
                r = add_env(p, at, origin, err);
                if (r < 0)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s:%zu: not NAME=VALUE or NAME", file,
                                         line);
        }
        return 0;
}

static int add_host(struct hutch_policy *p, const char *text, const char *origin, struct hutch_error *err) {
        return policy_add_host(p, text, 0, origin, err);
}

int policy_set_plain(struct hutch_policy *p, enum key key, const char *text, const char *origin,
                     struct hutch_error *err) {
        switch (key_info(key)->type) {
        case TYPE_FLAG:
                return set_flag(p, key, text, origin, err);
        case TYPE_TEXT:
        case TYPE_DIR:
                return set_text(p, key, text, origin, err);
        case TYPE_LIST:
        case TYPE_MAP:
                return add_item(p, key, text, origin, err);
        case TYPE_PATH:
                return add_path(p, key, text, origin, err);
        case TYPE_HOST:
                return add_host(p, text, origin, err);
        case TYPE_ENV:
                return add_env(p, text, origin, err);
        case TYPE_ENV_PASS:
                return policy_add_env_plain(p, text, NULL, origin, err);
        case TYPE_ENV_FILE:
                return add_env_file(p, text, origin, err);
        default:
                return set_parsed(p, key, text, origin, err);
        }
}

int policy_set(struct hutch_policy *p, enum key key, const char *text, const char *origin, struct hutch_error *err) {
        int r = policy_set_plain(p, key, text, origin, err);

        return r < 0 ? error_wrap(err, r, "%s", origin) : 0;
}
