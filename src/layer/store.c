/* See store.h. */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../review/review.h"

void layer_meta_done(struct layer_meta *m) {
        free(m->id);
        free(m->workspace);
        free(m->command);
        strv_free(m->lowers);
        strv_free(m->dests);
        *m = (struct layer_meta){0};
}

void layer_free(struct layer_box *box) {
        if (!box)
                return;
        closep(&box->fd);
        closep(&box->lock);
        layer_meta_done(&box->meta);
        free(box->path);
        free(box);
}

void layer_freep(struct layer_box **box) {
        layer_free(*box);
}

int layer_root(char *const *env, char **ret, struct hutch_error *err) {
        const char *state = strv_find_assignment(env, "XDG_STATE_HOME"), *home = strv_find_assignment(env, "HOME");
        int n;

        if (state && state[0] == '/')
                n = asprintf(ret, "%s/hutch/boxes", state);
        else if (home && home[0] == '/')
                n = asprintf(ret, "%s/.local/state/hutch/boxes", home);
        else
                return error_set(err, HUTCH_E_POLICY_INVALID, ENOENT,
                                 "no place for copy-on-write layers: set HOME or XDG_STATE_HOME");
        return n < 0 ? error_oom(err) : 0;
}

/* mkdir -p, each folder for its owner alone where it is made. */
int layer_make_folders(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *at = copy + 1; at; at = strchr(at + 1, '/')) {
                if (at != copy + 1)
                        *at = 0;
                if (at != copy + 1 && mkdir(copy, 0700) < 0 && errno != EEXIST)
                        return -errno;
                if (at != copy + 1)
                        *at = '/';
        }
        return mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int take_lock(struct layer_box *box) {
        box->lock = openat(box->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (box->lock < 0)
                return -errno;
        return flock(box->lock, LOCK_EX | LOCK_NB) < 0 ? (errno == EWOULDBLOCK ? -EBUSY : -errno) : 0;
}

static json_t *json_text(const char *s) {
        json_t *text = json_string(s);

        return text ? text : json_string("(not UTF-8)");
}

static int write_meta(struct layer_box *box) {
        const struct layer_meta *m = &box->meta;
        json_t *layers = json_array(), *root;
        _cleanup_(closep) int fd = -1;
        _cleanup_(freep) char *text = NULL;
        int r;

        for (size_t i = 0; m->lowers[i]; i++)
                json_array_append_new(layers, json_pack("{s:o, s:o}", "lower", json_text(m->lowers[i]), "dest",
                                                        json_text(m->dests[i])));
        root = json_pack("{s:s, s:o, s:o, s:I, s:o}", "id", m->id, "workspace", json_text(m->workspace), "command",
                         json_text(m->command), "created", (json_int_t) m->created, "layers", layers);
        text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
        json_decref(root);
        if (!text)
                return -ENOMEM;
        fd = openat(box->fd, "meta", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
        return r;
}

static int read_meta(struct layer_box *box) {
        struct layer_meta *m = &box->meta;
        _cleanup_(freep) char *text = NULL;
        json_t *root, *layers, *one;
        size_t i;
        int r;

        r = read_whole_file(box->fd, "meta", 1 << 20, &text, NULL);
        if (r < 0)
                return r;
        root = json_loads(text, 0, NULL);
        layers = json_object_get(root, "layers");
        m->workspace = strdup(json_string_value(json_object_get(root, "workspace")) ?: "");
        m->command = strdup(json_string_value(json_object_get(root, "command")) ?: "");
        m->created = (uint64_t) json_integer_value(json_object_get(root, "created"));
        r = m->workspace && m->command && json_array_size(layers) > 0 ? 0 : -EBADMSG;
        json_array_foreach(layers, i, one) {
                const char *lower = json_string_value(json_object_get(one, "lower"));
                const char *dest = json_string_value(json_object_get(one, "dest"));

                if (!lower || lower[0] != '/' || !dest)
                        r = -EBADMSG;
                if (r >= 0)
                        r = strv_push(&m->lowers, lower);
                if (r >= 0)
                        r = strv_push(&m->dests, dest);
        }
        json_decref(root);
        return r;
}

/* The time first, in microseconds, so that names sort by age. */
static int new_id(char **ret) {
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

/* The upper's own mode is what the box sees at the top of the folder. */
static int make_layer(struct layer_box *box, size_t n) {
        static const char *const parts[] = {"", "/upper", "/work"};
        struct stat lower;
        char name[64];

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                snprintf(name, sizeof(name), "%zu%s", n, parts[i]);
                if (mkdirat(box->fd, name, 0700) < 0)
                        return -errno;
        }
        snprintf(name, sizeof(name), "%zu/upper", n);
        if (stat(box->meta.lowers[n], &lower) < 0 || fchmodat(box->fd, name, lower.st_mode & 0777, 0) < 0)
                return -errno;
        return 0;
}

int layer_new(const char *root, const struct layer_meta *meta, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(layer_freep) struct layer_box *box = calloc(1, sizeof(*box));
        int r;

        if (!box)
                return error_oom(err);
        box->fd = box->lock = -1;
        box->meta.created = (uint64_t) time(NULL);
        box->meta.workspace = strdup(meta->workspace);
        box->meta.command = strdup(meta->command);
        r = box->meta.workspace && box->meta.command ? 0 : -ENOMEM;
        if (r >= 0)
                r = strv_copy(meta->lowers, &box->meta.lowers);
        if (r >= 0)
                r = strv_copy(meta->dests, &box->meta.dests);
        if (r >= 0)
                r = new_id(&box->meta.id);
        if (r >= 0 && asprintf(&box->path, "%s/%s", root, box->meta.id) < 0)
                r = -ENOMEM;
        if (r >= 0)
                r = layer_make_folders(box->path);
        if (r >= 0) {
                box->fd = open(box->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = box->fd < 0 ? -errno : take_lock(box);
        }
        for (size_t i = 0; r >= 0 && box->meta.lowers[i]; i++)
                r = make_layer(box, i);
        if (r >= 0)
                r = write_meta(box);
        if (r < 0) {
                if (box->path)
                        layer_remove(box, NULL);
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make a copy-on-write layer in %s: %s", root,
                                 errno_text(-r));
        }
        *ret = take_ptr(box);
        return 0;
}

int layer_renew(struct layer_box *box, struct hutch_error *err) {
        for (size_t i = 0; box->meta.lowers[i]; i++) {
                _cleanup_(closep) int layer = -1;
                char name[32];
                int r;

                snprintf(name, sizeof(name), "%zu", i);
                layer = openat(box->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = layer < 0 ? -errno : review_remove_tree(layer, "work", NULL);
                if (r >= 0 && mkdirat(layer, "work", 0700) < 0)
                        r = -errno;
                if (r < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot renew layer %zu of box %s: %s", i,
                                         box->meta.id, errno_text(-r));
        }
        return 0;
}

int layer_open(const char *root, const char *id, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(layer_freep) struct layer_box *box = calloc(1, sizeof(*box));
        int r;

        if (!box)
                return error_oom(err);
        box->fd = box->lock = -1;
        if (!id[0] || strchr(id, '/') || id[0] == '.')
                return error_set(err, HUTCH_E_USAGE, EINVAL, "'%s' is not a box: `hutch boxes` lists them", id);
        box->meta.id = strdup(id);
        if (!box->meta.id || asprintf(&box->path, "%s/%s", root, id) < 0)
                return error_oom(err);
        box->fd = open(box->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (box->fd < 0)
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "there is no box '%s': `hutch boxes` lists them",
                                 id);
        r = take_lock(box);
        if (r == -EBUSY)
                return error_set(err, HUTCH_E_IO, r, "box %s is in use: it runs, or another hutch reviews it", id);
        if (r >= 0)
                r = read_meta(box);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read box %s: %s: `hutch discard --box %s` removes it", id,
                                 errno_text(-r), id);
        *ret = take_ptr(box);
        return 0;
}

static int newest_first(const void *a, const void *b) {
        return strcmp(*(char *const *) b, *(char *const *) a);
}

int layer_list(const char *root, char ***ret, struct hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        DIR *dir = opendir(root);
        struct dirent *entry;
        int r = 0;

        while (dir && r >= 0 && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        r = strv_push(&ids, entry->d_name);
        if (dir)
                closedir(dir);
        if (r < 0)
                return error_oom(err);
        if (ids)
                qsort(ids, strv_length(ids), sizeof(char *), newest_first);
        *ret = take_ptr(ids);
        return 0;
}

#define SWEEP_AFTER_S 10 /* a box that is being made has no meta for a moment either */

void layer_sweep(const char *root, const char *id) {
        struct layer_box box = {.fd = -1, .lock = -1};
        struct stat st;

        if (asprintf(&box.path, "%s/%s", root, id) < 0)
                return;
        box.fd = open(box.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (box.fd >= 0 && faccessat(box.fd, "meta", F_OK, 0) < 0 && errno == ENOENT && fstat(box.fd, &st) == 0 &&
            st.st_mtime + SWEEP_AFTER_S < time(NULL) && take_lock(&box) >= 0)
                layer_remove(&box, NULL);
        closep(&box.fd);
        closep(&box.lock);
        free(box.path);
}

int layer_remove(struct layer_box *box, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        _cleanup_(closep) int dir = -1;
        int r;

        r = path_dirname(box->path, &root);
        if (r >= 0) {
                dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = dir < 0 ? -errno : review_remove_tree(dir, path_basename(box->path), NULL);
        }
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot remove %s: %s", box->path, errno_text(-r));
        return 0;
}
