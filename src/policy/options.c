/* The option loader; see options.h. */
#include "options.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "../base/text.h"

/* The words of choices, put together once. */
static char placeholders[N_KEYS][96];

static void make_placeholders(void) {
        for (enum key key = 0; key < N_KEYS; key++)
                if (key_info(key)->option)
                        key_placeholder(key, placeholders[key], sizeof(placeholders[key]));
}

bool option_describe(size_t index, struct hutch_option_info *ret) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        const struct key_info *info;
        enum key key = 0;

        for (; key < N_KEYS; key++)
                if (key_info(key)->option && index-- == 0)
                        break;
        if (key == N_KEYS)
                return false;
        pthread_once(&once, make_placeholders);
        info = key_info(key);
        *ret = (struct hutch_option_info){
                info->option, info->letter,
                key_info(key)->type == TYPE_CHOICE && !info->value ? placeholders[key] : key_placeholder(key, NULL, 0),
                info->help, key_verbs(key)};
        return true;
}

static int unknown_option(const char *name, struct hutch_error *err) {
        const char *names[N_KEYS], *near;
        size_t n = 0;

        for (enum key key = 0; key < N_KEYS; key++)
                if (key_info(key)->option)
                        names[n++] = key_info(key)->option;
        near = text_nearest(name, names, n);
        return error_set(err, HUTCH_E_USAGE, EINVAL, "unknown option '--%s'%s%s%s", name,
                         near ? "; did you mean '--" : "", near ? near : "", near ? "'?" : "");
}

int policy_set_option(struct hutch_policy *p, const char *name, const char *value, struct hutch_error *err) {
        enum key key = key_find_option(name);
        char room[128], origin[64];
        const char *placeholder;

        if (key == N_KEYS)
                return unknown_option(name, err);
        placeholder = key_placeholder(key, room, sizeof(room));
        if (placeholder && !value)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "option '--%s' needs a value: %s", name, placeholder);
        if (!placeholder && value)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "option '--%s' takes no value", name);
        snprintf(origin, sizeof(origin), "--%s", name);
        return policy_set(p, key, value, origin, err);
}
