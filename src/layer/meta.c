/* See meta.h. */
#include "meta.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "../base/io.h"
#include "../base/strv.h"

void layer_meta_done(struct layer_meta *m) {
        free(m->id);
        free(m->workspace);
        free(m->command);
        free(m->name);
        free(m->away);
        strv_free(m->lowers);
        strv_free(m->dests);
        strv_free(m->idents);
        strv_free(m->system);
        strv_free(m->chain);
        strv_free(m->protect);
        strv_free(m->unprotect);
        *m = (struct layer_meta){0};
}

bool layer_is_system(const struct layer_meta *m, size_t layer) {
        for (char **dest = m->system; dest && *dest; dest++)
                if (streq(*dest, m->dests[layer]))
                        return true;
        return false;
}

int layer_meta_copy(const struct layer_meta *m, struct layer_meta *ret) {
        struct layer_meta copy = {.created = m->created, .linked = m->linked};
        int r = 0;

        copy.id = m->id ? strdup(m->id) : NULL;
        copy.name = m->name ? strdup(m->name) : NULL;
        copy.workspace = strdup(m->workspace);
        copy.command = strdup(m->command);
        if ((m->id && !copy.id) || (m->name && !copy.name) || !copy.workspace || !copy.command)
                r = -ENOMEM;
        if (r >= 0)
                r = strv_copy(m->lowers, &copy.lowers);
        if (r >= 0)
                r = strv_copy(m->dests, &copy.dests);
        if (r >= 0)
                r = strv_copy(m->idents, &copy.idents);
        if (r >= 0)
                r = strv_copy(m->system, &copy.system);
        if (r >= 0)
                r = strv_copy(m->chain, &copy.chain);
        if (r >= 0)
                r = strv_copy(m->protect, &copy.protect);
        if (r >= 0)
                r = strv_copy(m->unprotect, &copy.unprotect);
        if (r < 0) {
                layer_meta_done(&copy);
                return r;
        }
        *ret = copy;
        return 0;
}

/* What a directory is: device, inode and, where the file system has it, birth, because ext4 gives a freed inode to the
 * next directory that is made. */
static int read_identity(int fd, const char *path, int flags, char **ret) {
        struct statx stx;
        int n;

        if (statx(fd, path, flags, STATX_INO | STATX_BTIME, &stx) < 0)
                return -errno;
        n = asprintf(ret, "%llu:%llu:%lld.%u", (unsigned long long) makedev(stx.stx_dev_major, stx.stx_dev_minor),
                     (unsigned long long) stx.stx_ino,
                     stx.stx_mask & STATX_BTIME ? (long long) stx.stx_btime.tv_sec : 0,
                     stx.stx_mask & STATX_BTIME ? stx.stx_btime.tv_nsec : 0);
        return n < 0 ? -ENOMEM : 0;
}

int layer_identify(const char *path, char **ret) {
        int r = read_identity(AT_FDCWD, path, 0, ret);

        if (r < 0 && r != -ENOMEM) {
                *ret = strdup("");
                return *ret ? 0 : -ENOMEM;
        }
        return r;
}

/* Device numbers without real hardware (btrfs, network) may change at the next boot. Boxes of earlier versions have no
 * birth. */
bool layer_is_same(const struct layer_meta *m, size_t n, int fd) {
        const char *ident = n < strv_length(m->idents) ? m->idents[n] : "";
        _cleanup_(freep) char *now = NULL;
        unsigned long long dev[2], ino[2];
        char birth[2][48] = {"", ""};
        int fields = sscanf(ident, "%llu:%llu:%47s", &dev[0], &ino[0], birth[0]);

        if (fields < 2)
                return true;
        if (read_identity(fd, "", AT_EMPTY_PATH, &now) < 0 ||
            sscanf(now, "%llu:%llu:%47s", &dev[1], &ino[1], birth[1]) != 3)
                return false;
        return ino[0] == ino[1] && (dev[0] == dev[1] || major(dev[1]) == 0) &&
               (fields == 2 || streq(birth[0], birth[1]));
}

/* A path as it is: text, or {"hex": …} where it is not UTF-8. */
static json_t *json_text(const char *s) {
        json_t *text = json_string(s);
        _cleanup_(freep) char *hex = text ? NULL : calloc(strlen(s) + 1, 2);

        if (text || !hex)
                return text;
        for (size_t i = 0; s[i]; i++)
                snprintf(hex + i * 2, 3, "%02x", (unsigned char) s[i]);
        return json_pack("{s:s}", "hex", hex);
}

/* The other way round; the caller's. NULL where it is neither. */
static char *text_of(const json_t *value) {
        const char *hex = json_string_value(json_object_get(value, "hex"));
        size_t n = hex ? strlen(hex) / 2 : 0;
        char *text;

        if (json_is_string(value))
                return strdup(json_string_value(value));
        text = hex ? calloc(n + 1, 1) : NULL;
        for (size_t i = 0; text && i < n; i++) {
                unsigned byte;

                if (sscanf(hex + i * 2, "%2x", &byte) != 1 || byte == 0) {
                        free(text);
                        return NULL;
                }
                text[i] = (char) byte;
        }
        return text;
}

static void put_list(json_t *root, const char *key, char *const *list) {
        json_t *array = list ? json_array() : NULL;

        for (; array && *list; list++)
                json_array_append_new(array, json_text(*list));
        if (array)
                json_object_set_new(root, key, array);
}

static int get_list(const json_t *array, char ***ret) {
        const json_t *one;
        int r = 0;
        size_t i;

        json_array_foreach(array, i, one) {
                _cleanup_(freep) char *text = text_of(one);

                if (r >= 0)
                        r = text ? strv_push(ret, text) : -EBADMSG;
        }
        return r;
}

int layer_meta_write(int dir, const char *file, const struct layer_meta *m) {
        json_t *layers = json_array(), *chain = json_array(), *root;
        _cleanup_(closep) int fd = -1;
        _cleanup_(freep) char *text = NULL;
        int r;

        for (size_t i = 0; m->lowers && m->lowers[i]; i++)
                json_array_append_new(layers,
                                      json_pack("{s:o, s:o, s:b, s:s}", "lower", json_text(m->lowers[i]), "dest",
                                                json_text(m->dests[i]), "system", (int) layer_is_system(m, i), "ident",
                                                i < strv_length(m->idents) ? m->idents[i] : ""));
        for (char **id = m->chain; id && *id; id++)
                json_array_append_new(chain, json_string(*id));
        root = json_pack("{s:s, s:o, s:o, s:I, s:o, s:o}", "id", m->id, "workspace", json_text(m->workspace), "command",
                         json_text(m->command), "created", (json_int_t) m->created, "layers", layers, "chain", chain);
        if (root && m->name)
                json_object_set_new(root, "name", json_text(m->name));
        if (root && m->linked)
                json_object_set_new(root, "linked", json_true());
        if (root && m->away)
                json_object_set_new(root, "away", json_string(m->away));
        if (root)
                put_list(root, "protect", m->protect);
        if (root)
                put_list(root, "unprotect", m->unprotect);
        text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
        json_decref(root);
        if (!text)
                return -ENOMEM;
        fd = openat(dir, "meta.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
        if (r < 0)
                return r;
        if (renameat(dir, "meta.new", dir, file) < 0)
                r = -errno;
        return r;
}

static char *copy_text(const json_t *root, const char *key) {
        char *text = text_of(json_object_get(root, key));

        return text ? text : strdup("");
}

/* A name of our own making: nothing that leads elsewhere. */
static bool is_id(const char *s) {
        return s && s[0] && s[0] != '.' && !strchr(s, '/');
}

static int read_chain(const json_t *chain, struct layer_meta *m) {
        const json_t *one;
        int r = 0;
        size_t i;

        json_array_foreach(chain, i, one) {
                if (!is_id(json_string_value(one)))
                        return -EBADMSG;
                r = r < 0 ? r : strv_push(&m->chain, json_string_value(one));
        }
        return r;
}

static int read_layers(const json_t *layers, struct layer_meta *m) {
        const json_t *one;
        int r = 0;
        size_t i;

        json_array_foreach(layers, i, one) {
                _cleanup_(freep) char *lower = text_of(json_object_get(one, "lower"));
                _cleanup_(freep) char *dest = text_of(json_object_get(one, "dest"));
                const char *ident = json_string_value(json_object_get(one, "ident"));

                if (!lower || lower[0] != '/' || !dest)
                        return -EBADMSG;
                if (r >= 0)
                        r = strv_push(&m->lowers, lower);
                if (r >= 0)
                        r = strv_push(&m->dests, dest);
                if (r >= 0)
                        r = strv_push(&m->idents, ident ? ident : "");
                if (r >= 0 && json_is_true(json_object_get(one, "system")))
                        r = strv_push(&m->system, dest);
        }
        return r;
}

int layer_meta_read(int dir, const char *file, struct layer_meta *m) {
        _cleanup_(freep) char *text = NULL;
        const char *away;
        json_t *root, *name;
        int r;

        r = read_whole_file(dir, file, 1 << 20, &text, NULL);
        if (r < 0)
                return r;
        root = json_loads(text, 0, NULL);
        name = json_object_get(root, "name");
        away = json_string_value(json_object_get(root, "away"));
        m->workspace = copy_text(root, "workspace");
        m->command = copy_text(root, "command");
        m->created = (uint64_t) json_integer_value(json_object_get(root, "created"));
        m->linked = json_is_true(json_object_get(root, "linked"));
        m->name = name ? text_of(name) : NULL;
        m->away = away ? strdup(away) : NULL;
        if (!m->workspace || !m->command || (name && !m->name) || (away && !m->away))
                r = -ENOMEM;
        else
                r = json_array_size(json_object_get(root, "layers")) > 0 ? 0 : -EBADMSG;
        if (r >= 0)
                r = read_layers(json_object_get(root, "layers"), m);
        if (r >= 0)
                r = read_chain(json_object_get(root, "chain"), m);
        if (r >= 0)
                r = get_list(json_object_get(root, "protect"), &m->protect);
        if (r >= 0)
                r = get_list(json_object_get(root, "unprotect"), &m->unprotect);
        json_decref(root);
        return r;
}

int layer_new_id(char **ret) {
        static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";
        unsigned char random[2];
        struct timespec now;

        if (getrandom(random, sizeof(random), 0) != sizeof(random))
                return -EIO;
        clock_gettime(CLOCK_REALTIME, &now);
        return asprintf(ret, "%014llx%c%c",
                        (unsigned long long) now.tv_sec * 1000000 + (unsigned long long) now.tv_nsec / 1000,
                        letters[random[0] % 32], letters[random[1] % 32]) < 0
                       ? -ENOMEM
                       : 0;
}
