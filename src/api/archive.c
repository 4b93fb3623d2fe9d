/* Boxes as files: export and import.
 *
 * An archive holds, in this order: `hutch-box` (what the box is, JSON), for each layer `layers/N/manifest` and
 * `layers/N/upper/…` (src/review/pack.h), and `shell` where the box has the state of a shell. The helper hutch-archive
 * reads and writes the archive itself (src/archive); here its entries are judged, and anything that is not as an export
 * would have written it ends the import. A box that was not imported whole is removed. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../review/pack.h"
#include "../warden/spawn.h"
#include "../base/json.h"
#include "reviewed.h"
#include "api.h"

extern char **environ;

#define FORMAT 1
#define BOX_MOST ((size_t) 1 << 20)
#define MANIFEST_MOST ((size_t) 256 << 20)
#define SHELL_MOST ((size_t) 64 << 20)
#define LAYERS_MOST 256
#define DEFAULT_BYTES ((uint64_t) 16 << 30)
#define DEFAULT_ENTRIES ((uint64_t) 1000000)

/* The helper's last message, if it failed. */
static int helper_error(int socket, const char *file, int r, struct hutch_error *err) {
        _cleanup_(archive_item_done) struct archive_item item = {0};

        if (stream_get(socket, &item) >= 0 && item.kind == ITEM_FAILED)
                return error_set(err, HUTCH_E_IO, EIO, "cannot write %s: %s", file, item.name);
        return error_set(err, HUTCH_E_IO, r, "cannot write %s: hutch-archive ended", file);
}

/* ---- export ---- */

/* Layers over this host's system are of no use on another host, nor are empty ones for parts of a directory. */
static bool is_exported(const hutch_review *review, size_t i) {
        const struct layer_pair *layer = &review->changes.layers[i];

        return layer->directory >= 0 && (layer->list.n > 0 || streq(layer->pair.top, layer->pair.host_path));
}

static char *describe_box(const hutch_review *review) {
        const struct layer_box *box = review->box;
        json_t *layers = json_array(), *root;
        char *text;

        for (size_t i = 0; box->meta.lowers[i]; i++)
                if (is_exported(review, i))
                        json_array_append_new(
                                layers, json_pack("{s:o, s:o}", "lower",
                                                  json_bytes(box->meta.lowers[i], strlen(box->meta.lowers[i])), "dest",
                                                  json_bytes(box->meta.dests[i], strlen(box->meta.dests[i]))));
        root = json_pack("{s:i, s:o, s:o, s:I, s:o}", "hutch-box", FORMAT, "workspace",
                         json_bytes(box->meta.workspace, strlen(box->meta.workspace)), "command",
                         json_bytes(box->meta.command, strlen(box->meta.command)), "created",
                         (json_int_t) box->meta.created, "layers", layers);
        text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
        json_decref(root);
        return text;
}

static int send_text(int socket, const char *name, const char *text, size_t len) {
        const struct archive_item item = {.kind = ITEM_REGULAR, .name = (char *) name, .mode = 0600, .size = len};
        int r = stream_put(socket, &item);

        return r < 0 ? r : stream_put_data(socket, text, len);
}

static int send_box(const hutch_review *review, int socket, struct pack_count *count, struct hutch_error *err) {
        const struct archive_item end = {.kind = ITEM_END, .name = (char *) ""};
        _cleanup_(freep) char *text = NULL, *shell = NULL;
        size_t len, number = 0;
        int r;

        for (size_t i = 0; i < review->changes.n_layers; i++)
                number += is_exported(review, i);
        if (number > LAYERS_MOST)
                return error_set(err, HUTCH_E_POLICY_REFUSED, E2BIG,
                                 "the changes are in %zu copy-on-write directories: more than an archive can hold (%d)",
                                 number, LAYERS_MOST);
        number = 0;
        text = describe_box(review);
        r = text ? send_text(socket, "hutch-box", text, strlen(text)) : error_oom(err);

        for (size_t i = 0; r >= 0 && i < review->changes.n_layers; i++) {
                const struct layer_pair *layer = &review->changes.layers[i];
                char prefix[32];

                if (!is_exported(review, i))
                        continue;
                snprintf(prefix, sizeof(prefix), "layers/%zu", number++);
                r = pack_layer(&layer->pair, layer->directory, prefix, socket, count, err);
        }
        if (r < 0)
                return r;
        if (read_whole_file(review->box->fd, "shell", SHELL_MOST, &shell, &len) >= 0)
                r = send_text(socket, "shell", shell, len);
        return r < 0 ? r : stream_put(socket, &end);
}

static int export_to(const hutch_review *review, int fd, const char *file, struct pack_count *count,
                     struct hutch_error *err) {
        _cleanup_(archive_item_done) struct archive_item item = {0};
        _cleanup_(closep) int socket = -1;
        pid_t pid;
        int r = archive_spawn("pack", fd, &socket, &pid, err);

        if (r < 0)
                return r;
        r = send_box(review, socket, count, err);
        if (r == -EPIPE)
                r = helper_error(socket, file, r, err);
        else if (r >= 0 && (stream_get(socket, &item) < 0 || item.kind != ITEM_END))
                r = error_set(err, HUTCH_E_IO, EIO, "cannot write %s: %s", file,
                              item.kind == ITEM_FAILED ? item.name : "hutch-archive ended");
        closep(&socket);
        warden_reap(pid);
        return r;
}

int hutch_review_export(const hutch_review *review, const char *file, uint64_t *ret_left_out, hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        if (!file)
                return api_null(err, __func__, "file");
        _cleanup_(freep) char *part = NULL;
        _cleanup_(closep) int fd = -1;
        struct pack_count count = {0};
        int r;

        if (asprintf(&part, "%s.%s.part", file, review->box->meta.id) < 0)
                return error_oom(err);
        fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0)
                return error_set(err, HUTCH_E_IO, errno, "cannot write %s: %s", file, errno_text(errno));
        r = export_to(review, fd, file, &count, err);
        if (r >= 0 && (fdatasync(fd) < 0 || rename(part, file) < 0))
                r = error_set(err, HUTCH_E_IO, errno, "cannot write %s: %s", file, errno_text(errno));
        if (r < 0)
                (void) unlink(part);
        else if (ret_left_out)
                *ret_left_out = count.left_out;
        return r;
}

/* ---- import ---- */

struct import {
        const char *file;
        int socket;
        char *workspace;
        uint64_t most_bytes, most_entries, bytes, entries;
        bool force;
        const char *const *maps;
        struct layer_box *box;
        struct layer_pair pairs[LAYERS_MOST];
        struct unpack *layers[LAYERS_MOST];
        bool has_manifest[LAYERS_MOST];
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
        if (in->entries > in->most_entries)
                return error_set(in->err, HUTCH_E_POLICY_REFUSED, EFBIG,
                                 "it holds more than %llu entries: --max-entries allows more",
                                 (unsigned long long) in->most_entries);
        return 0;
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

static int make_box(struct import *in, json_t *root) {
        const char *workspace = json_string_value(json_object_get(root, "workspace"));
        const char *command = json_string_value(json_object_get(root, "command"));
        json_t *layers = json_object_get(root, "layers"), *one;
        _cleanup_(strv_freep) char **lowers = NULL, **dests = NULL;
        _cleanup_(freep) char *state = NULL;
        struct layer_meta meta = {.workspace = in->workspace, .command = (char *) (command ? command : "")};
        size_t i;
        int r = 0;

        if (json_integer_value(json_object_get(root, "hutch-box")) > FORMAT)
                return error_set(in->err, HUTCH_E_POLICY_REFUSED, ENOTSUP, "made by a later version of hutch");
        if (json_integer_value(json_object_get(root, "hutch-box")) != FORMAT || !workspace || workspace[0] != '/' ||
            json_array_size(layers) == 0 || json_array_size(layers) > LAYERS_MOST)
                return foreign(in);
        json_array_foreach(layers, i, one) {
                const char *lower = json_string_value(json_object_get(one, "lower"));
                const char *dest = json_string_value(json_object_get(one, "dest"));

                if (!lower || lower[0] != '/' || !dest)
                        return foreign(in);
                r = place_lower(in, workspace, lower, &lowers);
                if (r < 0)
                        return r;
                /* Not where the archive had it, either. */
                if (strv_push(&dests, lowers[i]) < 0)
                        r = error_oom(in->err);
                if (r < 0)
                        return r;
        }
        meta.lowers = lowers;
        meta.dests = dests;
        r = layer_root(environ, &state, in->err);
        if (r >= 0)
                r = layer_new(state, &meta, &in->box, in->err);
        for (i = 0; r >= 0 && i < strv_length(lowers); i++, in->n++) {
                in->pairs[i] = (struct layer_pair){.pair = {.lower = -1, .upper = -1}, .directory = -1};
                in->layers[i] = NULL;
                r = changes_open_layer(in->box, i, &in->pairs[i], in->err);
                if (r >= 0 && unpack_new(in->pairs[i].pair.upper, &in->layers[i]) < 0)
                        r = error_oom(in->err);
        }
        return r;
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
        int r = read_text(in, SHELL_MOST, &text);

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
        if (rest && streq(rest, "manifest")) {
                _cleanup_(buf_done) struct buf text = {0};
                int r = read_text(in, MANIFEST_MOST, &text);

                in->has_manifest[layer] = true;
                return r < 0 ? r : unpack_manifest(in->layers[layer], (char *) text.data, text.len, in->err);
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
                if (in->item.kind == ITEM_DATA) {
                        r = unpack_data(in->layers[last], in->item.data.data, in->item.data.len, in->err);
                        continue;
                }
                (void) split_name(in->item.name, in->n, &last);
                r = read_entry(in);
        }
        for (size_t i = 0; r >= 0 && i < in->n; i++)
                r = in->has_manifest[i]
                            ? unpack_end(in->layers[i], &in->pairs[i].pair, in->pairs[i].directory, in->force, in->err)
                            : foreign(in);
        return r;
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

        api_read_struct(options, sizeof(known), &known, sizeof(known));
        in.most_bytes = known.max_bytes ? known.max_bytes : DEFAULT_BYTES;
        in.force = known.force;
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
