/* Boxes as files: import of what export.c writes.
 *
 * The helper hutch-archive reads the archive itself (src/archive); here its entries are judged, and anything that is
 * not as an export would have written it ends the import. What was not imported whole is no box: it is removed, or
 * swept if the import was killed. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/json.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../review/pack.h"
#include "../warden/spawn.h"
#include "archive_places.h"
#include "reviewed.h"
#include "api.h"

extern char **environ;

#define BOX_MOST ((size_t) 1 << 20)
#define MANIFEST_MOST ((size_t) 256 << 20)
#define DEFAULT_BYTES ((uint64_t) 16 << 30)
#define DEFAULT_ENTRIES ((uint64_t) 1000000)

struct import {
        const char *file;
        int socket;
        char *workspace;
        uint64_t most_bytes, most_entries, bytes, entries;
        bool force, workspace_only;
        const char *const *maps;
        struct layer_box *box;
        struct layer_pair pairs[ARCHIVE_LAYERS_MOST];
        struct unpack *layers[ARCHIVE_LAYERS_MOST];
        bool has_manifest[ARCHIVE_LAYERS_MOST];
        bool goes_with[ARCHIVE_LAYERS_MOST]; /* with the box: it is never applied */
        size_t n;
        struct archive_item item;
        bool pending; /* `item` is still to be looked at */
        struct hutch_error *err;
};

static void import_done(struct import *in) {
        for (size_t i = 0; i < in->n; i++) {
                unpack_free(in->layers[i]);
                changes_close_layer(&in->pairs[i]);
        }
        layer_free(in->box);
        free(in->workspace);
        archive_item_done(&in->item);
        closep(&in->socket);
}

static int foreign(struct import *in) {
        return error_set(in->err, HUTCH_E_POLICY_REFUSED, EBADMSG, "not an archive that 'hutch export' made");
}

static int check_entries(const struct import *in) {
        if (in->entries <= in->most_entries)
                return 0;
        return error_set(in->err, HUTCH_E_POLICY_REFUSED, EFBIG,
                         "it holds more than %llu entries: --max-entries allows more",
                         (unsigned long long) in->most_entries);
}

/* The next entry, or more of the last one, within the limits. */
static int next(struct import *in) {
        int r = stream_get(in->socket, &in->item);

        if (r < 0)
                return error_set(in->err, HUTCH_E_IO, EBADMSG, "hutch-archive ended before the archive did");
        if (in->item.kind == ITEM_FAILED)
                return error_set(in->err, HUTCH_E_IO, EBADMSG, "damaged, or not an archive: %s", in->item.name);
        if (in->item.kind == ITEM_DATA)
                in->bytes += in->item.data.len;
        else if (in->item.kind != ITEM_END)
                in->entries++;
        if (in->bytes > in->most_bytes)
                return error_set(in->err, HUTCH_E_POLICY_REFUSED, EFBIG,
                                 "it holds more than %llu bytes: --max-size allows more",
                                 (unsigned long long) in->most_bytes);
        return check_entries(in);
}

/* The content of the file that `item` is, whole; the entry behind it is pending then. */
static int read_text(struct import *in, size_t most, struct buf *ret) {
        uint64_t size = in->item.size;

        if (in->item.kind != ITEM_REGULAR || size > most)
                return foreign(in);
        for (;;) {
                int r = next(in);

                if (r < 0)
                        return r;
                if (in->item.kind != ITEM_DATA)
                        break;
                buf_put(ret, in->item.data.data, in->item.data.len);
                if (ret->oom)
                        return error_oom(in->err);
                if (ret->len > size)
                        return foreign(in);
        }
        in->pending = true;
        return ret->len == size ? 0 : foreign(in);
}

/* What the caller maps a directory of the archive's box to, or NULL. */
static const char *find_map(const struct import *in, const char *lower) {
        size_t n = strlen(lower);

        for (const char *const *map = in->maps; map && *map; map++)
                if (strncmp(*map, lower, n) == 0 && (*map)[n] == '=')
                        return *map + n + 1;
        return NULL;
}

/* The place on this host of a directory of the archive's box. The archive does not refer to this host: its workspace is
 * the one that the caller chose, and every other directory is where the caller puts it. */
static int place_lower(struct import *in, const char *workspace, const char *lower, char ***lowers) {
        const char *mapped = find_map(in, lower);
        char real[PATH_MAX];
        struct stat st;

        if (!mapped && streq(lower, workspace))
                mapped = in->workspace;
        if (!mapped)
                return error_set(in->err, HUTCH_E_POLICY_REFUSED, ENOENT,
                                 "the box also had %s copy-on-write: --map %s=DIR says which directory that is here",
                                 lower, lower);
        if (!realpath(mapped, real) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
                return error_set(in->err, HUTCH_E_PATH_MISSING, ENOENT, "--map %s=%s: not a directory", lower, mapped);
        for (char **other = *lowers; other && *other; other++)
                if (streq(real, *other))
                        return error_set(in->err, HUTCH_E_POLICY_REFUSED, EEXIST,
                                         "two directories of the box would be at %s: --map them apart", real);
        return strv_push(lowers, real) < 0 ? error_oom(in->err) : 0;
}

/* What becomes of the layers of the archive, in its order. */
struct plan_of_import {
        char **lowers, **system;
        bool taken[ARCHIVE_LAYERS_MOST];
};

static void plan_of_import_done(struct plan_of_import *p) {
        strv_free(p->lowers);
        strv_free(p->system);
}

/* One that goes with the box. Its place is one of a few; nothing else in the archive counts. */
static int take_place(struct import *in, const char *root, const char *place, struct plan_of_import *p) {
        _cleanup_(freep) char *lower = NULL;
        int r = archive_find_place(root, place, &lower);

        if (r == -ENOENT)
                return error_set(in->err, HUTCH_E_PATH_MISSING, ENOENT,
                                 "the box also changed %s, which is no directory here: --workspace-only leaves it out",
                                 place);
        if (r < 0)
                return error_set(in->err, HUTCH_E_IO, r, "cannot make a directory for %s: %s", place, errno_text(-r));
        if (!lower)
                return foreign(in);
        for (char **other = p->lowers; other && *other; other++)
                if (streq(*other, lower))
                        return foreign(in);
        return strv_push(&p->lowers, lower) < 0 || strv_push(&p->system, lower) < 0 ? error_oom(in->err) : 0;
}

static int take_layer(struct import *in, const char *root, const char *workspace, json_t *one, size_t i,
                      struct plan_of_import *p) {
        const char *lower = json_string_value(json_object_get(one, "lower"));
        const char *dest = json_string_value(json_object_get(one, "dest"));
        const char *place = json_string_value(json_object_get(one, "place"));

        in->goes_with[i] = place != NULL;
        p->taken[i] = !place || !in->workspace_only;
        if (place)
                return p->taken[i] ? take_place(in, root, place, p) : 0;
        if (!lower || lower[0] != '/' || !dest)
                return foreign(in);
        return place_lower(in, workspace, lower, &p->lowers);
}

/* Opens the box's layers, as the archive numbers them. */
static int open_layers(struct import *in, const struct plan_of_import *p) {
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < in->n; i++) {
                if (!p->taken[i])
                        continue;
                r = changes_open_layer(in->box, n++, &in->pairs[i], in->err);
                if (r >= 0 && in->goes_with[i])
                        closep(&in->pairs[i].pair.lower);
                if (r >= 0 && unpack_new(in->pairs[i].pair.upper, &in->layers[i]) < 0)
                        r = error_oom(in->err);
        }
        return r;
}

static int make_box(struct import *in, json_t *root) {
        const char *workspace = json_string_value(json_object_get(root, "workspace"));
        const char *command = json_string_value(json_object_get(root, "command"));
        json_t *layers = json_object_get(root, "layers"), *one;
        _cleanup_(plan_of_import_done) struct plan_of_import p = {0};
        _cleanup_(freep) char *state = NULL;
        struct layer_meta meta = {.workspace = in->workspace, .command = (char *) (command ? command : "")};
        size_t i;
        int r;

        if (json_integer_value(json_object_get(root, "hutch-box")) > ARCHIVE_FORMAT)
                return error_set(in->err, HUTCH_E_POLICY_REFUSED, ENOTSUP, "made by a later version of hutch");
        if (json_integer_value(json_object_get(root, "hutch-box")) != ARCHIVE_FORMAT || !workspace ||
            workspace[0] != '/' || json_array_size(layers) == 0 || json_array_size(layers) > ARCHIVE_LAYERS_MOST)
                return foreign(in);
        r = layer_root(environ, &state, in->err);
        json_array_foreach(layers, i, one) {
                if (r < 0)
                        return r;
                in->pairs[i] = (struct layer_pair){.pair = {.lower = -1, .upper = -1}, .directory = -1};
                in->n = i + 1;
                r = take_layer(in, state, workspace, one, i, &p);
        }
        if (r < 0)
                return r;
        if (strv_length(p.lowers) == 0)
                return foreign(in);
        meta.lowers = p.lowers;
        meta.dests = p.lowers; /* not where the archive had them, either */
        meta.system = p.system;
        r = layer_begin(state, &meta, &in->box, in->err);
        return r < 0 ? r : open_layers(in, &p);
}

static int read_box(struct import *in) {
        _cleanup_(buf_done) struct buf text = {0};
        json_t *root;
        int r = next(in);

        if (r < 0)
                return r;
        if (in->item.kind == ITEM_END || !streq(in->item.name, "hutch-box"))
                return foreign(in);
        r = read_text(in, BOX_MOST, &text);
        if (r < 0)
                return r;
        root = json_loadb((const char *) text.data, text.len, 0, NULL);
        r = root ? make_box(in, root) : foreign(in);
        json_decref(root);
        return r;
}

static int read_shell(struct import *in) {
        _cleanup_(buf_done) struct buf text = {0};
        _cleanup_(closep) int fd = -1;
        int r = read_text(in, ARCHIVE_SHELL_MOST, &text);

        if (r < 0)
                return r;
        fd = openat(in->box->fd, "shell", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, text.data, text.len);
        return r < 0 ? error_set(in->err, HUTCH_E_IO, r, "cannot keep the shell's state: %s", errno_text(-r)) : 0;
}

/* "layers/N/REST" → N and REST. */
static const char *split_name(const char *name, size_t n, size_t *ret) {
        char *end;

        if (!name || !startswith(name, "layers/") || name[7] < '0' || name[7] > '9')
                return NULL;
        *ret = strtoul(name + 7, &end, 10);
        return *ret < n && *end == '/' ? end + 1 : NULL;
}

static int refuse_name(struct import *in) {
        const char *name = in->item.name, *why = "not part of an archive that 'hutch export' made";

        if (name[0] == '/')
                why = "an absolute name";
        else if (startswith(name, "../") || strstr(name, "/../") || streq(name, ".."))
                why = "a name that leads out";
        else if (in->item.kind == ITEM_OTHER)
                why = "a device, FIFO or socket";
        return error_set(in->err, HUTCH_E_POLICY_REFUSED, EBADMSG, "%s: %s", name, why);
}

static int read_entry(struct import *in) {
        size_t layer = 0, other = 0;
        const char *rest = split_name(in->item.name, in->n, &layer), *link = NULL;

        if (streq(in->item.name, "shell"))
                return read_shell(in);
        if (rest && !in->layers[layer])
                return 0; /* left out */
        if (rest && streq(rest, "manifest")) {
                _cleanup_(buf_done) struct buf text = {0};
                int r = read_text(in, MANIFEST_MOST, &text);

                in->has_manifest[layer] = true;
                if (r >= 0)
                        r = unpack_manifest(in->layers[layer], (char *) text.data, text.len, in->err);
                if (r < 0)
                        return r;
                /* Each becomes an inode, as an entry does. */
                in->entries += unpack_count_whiteouts(in->layers[layer]);
                return check_entries(in);
        }
        if (!rest || !startswith(rest, "upper/") || !in->has_manifest[layer] || in->item.name[0] == '/')
                return refuse_name(in);
        rest += strlen("upper/");
        if (in->item.kind == ITEM_HARD_LINK) {
                link = split_name(in->item.target, in->n, &other);
                link = link && other == layer && startswith(link, "upper/") ? link + strlen("upper/") : "";
        }
        /* A directory's name may end with a slash in a tar. */
        if (rest[0] && rest[strlen(rest) - 1] == '/' && in->item.kind == ITEM_FOLDER)
                in->item.name[strlen(in->item.name) - 1] = 0;
        return unpack_item(in->layers[layer], rest, link, &in->item, in->err);
}

static int read_all(struct import *in) {
        size_t last = 0;
        int r = read_box(in);

        while (r >= 0) {
                if (!in->pending)
                        r = next(in);
                in->pending = false;
                if (r < 0 || in->item.kind == ITEM_END)
                        break;
                if (in->item.kind == ITEM_DATA && !in->layers[last])
                        continue;
                if (in->item.kind == ITEM_DATA) {
                        r = unpack_data(in->layers[last], in->item.data.data, in->item.data.len, in->err);
                        continue;
                }
                (void) split_name(in->item.name, in->n, &last);
                r = read_entry(in);
        }
        for (size_t i = 0; r >= 0 && i < in->n; i++) {
                bool links = in->force || in->goes_with[i];

                if (in->layers[i])
                        r = in->has_manifest[i] ? unpack_end(in->layers[i], &in->pairs[i].pair, in->pairs[i].directory,
                                                             links, in->err)
                                                : foreign(in);
        }
        return r < 0 ? r : layer_finish(in->box, in->err);
}

int hutch_import(const char *file, const hutch_import_options *options, char **ret_id, hutch_error *err) {
        if (!file)
                return api_null(err, __func__, "file");
        if (!ret_id)
                return api_null(err, __func__, "ret_id");
        hutch_import_options known = {0};
        _cleanup_(import_done) struct import in = {.file = file, .socket = -1, .err = err};
        _cleanup_(closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        char real[PATH_MAX], *id = NULL;
        struct stat st;
        pid_t pid;
        int r;

        api_read_struct(options, offsetof(struct hutch_import_options, workspace_only), &known, sizeof(known));
        in.most_bytes = known.max_bytes ? known.max_bytes : DEFAULT_BYTES;
        in.force = known.force;
        in.workspace_only = known.workspace_only;
        in.maps = known.maps;
        in.most_entries = known.max_entries ? known.max_entries : DEFAULT_ENTRIES;
        if (fd < 0)
                return error_set(err, errno == ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, errno, "%s: %s", file,
                                 errno_text(errno));
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "%s: not a regular file", file);
        if (!realpath(known.workspace ? known.workspace : ".", real) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
                return error_set(err, HUTCH_E_PATH_MISSING, ENOENT, "%s: not a directory",
                                 known.workspace ? known.workspace : ".");
        in.workspace = strdup(real);
        if (!in.workspace)
                return error_oom(err);
        r = archive_spawn("unpack", fd, &in.socket, &pid, err);
        if (r < 0)
                return r;
        r = read_all(&in);
        if (r >= 0 && ret_id) {
                id = strdup(in.box->meta.id);
                r = id ? 0 : error_oom(err);
        }
        closep(&in.socket);
        warden_reap(pid);
        if (r < 0) {
                if (in.box)
                        layer_remove(in.box, NULL);
                return error_wrap(err, r, "%s", file);
        }
        if (ret_id)
                *ret_id = id;
        return 0;
}
