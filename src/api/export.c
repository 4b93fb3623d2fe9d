/* Boxes as files: export.
 *
 * An archive holds, in this order: `hutch-box` (what the box is, JSON), for each layer `layers/N/manifest` and
 * `layers/N/upper/…` (src/review/pack.h), and `shell` where the box has the state of a shell. The helper hutch-archive
 * writes the archive itself (src/archive). */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/json.h"
#include "../base/path.h"
#include "../layer/stack.h"
#include "../review/pack.h"
#include "../warden/spawn.h"
#include "archive_places.h"
#include "reviewed.h"
#include "api.h"

/* The helper's last message, if it failed. */
static int helper_error(int socket, const char *file, int r, struct hutch_error *err) {
        _cleanup_(archive_item_done) struct archive_item item = {0};

        if (stream_get(socket, &item) >= 0 && item.kind == ITEM_FAILED)
                return error_set(err, HUTCH_E_IO, EIO, "cannot write %s: %s", file, item.name);
        return error_set(err, HUTCH_E_IO, r, "cannot write %s: hutch-archive ended", file);
}

/* What is written of a box: the directories that are reviewed, and of those that go with it (archive_places.h) the ones
 * that hold anything. Empty layers for parts of a directory are of no use elsewhere. */
struct exported {
        size_t layer;
        char *place; /* NULL: it is reviewed */
};

struct export {
        const hutch_review *review;
        struct exported *layers;
        size_t n;
};

static void export_done(struct export *e) {
        for (size_t i = 0; i < e->n; i++)
                free(e->layers[i].place);
        free(e->layers);
}

static int export_choose(struct export *e, bool workspace_only) {
        const struct layer_box *box = e->review->box;
        size_t n = e->review->changes.n_layers;

        e->layers = calloc(n + 1, sizeof(*e->layers));
        if (!e->layers)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const struct layer_pair *layer = &e->review->changes.layers[i];
                char *place = NULL;
                bool any =
                        layer->directory >= 0 && (layer->list.n > 0 || streq(layer->pair.top, layer->pair.host_path));
                int r = workspace_only ? 0 : archive_place_of(box, i, &place);

                if (r >= 0 && place)
                        r = stack_has(box, i, "", &any);
                if (r >= 0 && any)
                        e->layers[e->n++] = (struct exported){i, place};
                else
                        free(place);
                if (r < 0)
                        return r;
        }
        return 0;
}

static json_t *describe_layer(const struct layer_box *box, const struct exported *layer) {
        const char *lower = box->meta.lowers[layer->layer], *dest = box->meta.dests[layer->layer];

        if (layer->place)
                return json_pack("{s:s}", "place", layer->place);
        return json_pack("{s:o, s:o}", "lower", json_bytes(lower, strlen(lower)), "dest",
                         json_bytes(dest, strlen(dest)));
}

static char *describe_box(const struct export *e) {
        const struct layer_box *box = e->review->box;
        json_t *layers = json_array(), *root;
        char *text;

        for (size_t i = 0; i < e->n; i++)
                json_array_append_new(layers, describe_layer(box, &e->layers[i]));
        root = json_pack("{s:i, s:o, s:o, s:I, s:o}", "hutch-box", ARCHIVE_FORMAT, "workspace",
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

/* What the host has at the place is not recorded: nothing of it is ever applied. */
static int send_place(const struct layer_box *box, size_t n, const char *prefix, int socket, struct pack_count *count,
                      struct hutch_error *err) {
        struct layer_pair layer = {.pair = {.lower = -1, .upper = -1}, .directory = -1};
        int r = changes_open_layer(box, n, &layer, err);

        closep(&layer.pair.lower);
        if (r >= 0)
                r = pack_layer(&layer.pair, layer.directory, prefix, socket, count, err);
        changes_close_layer(&layer);
        return r;
}

static int send_layer(const struct export *e, size_t i, int socket, struct pack_count *count, struct hutch_error *err) {
        const struct layer_pair *layer = &e->review->changes.layers[e->layers[i].layer];
        char prefix[32];

        snprintf(prefix, sizeof(prefix), "layers/%zu", i);
        if (e->layers[i].place)
                return send_place(e->review->box, e->layers[i].layer, prefix, socket, count, err);
        return pack_layer(&layer->pair, layer->directory, prefix, socket, count, err);
}

static int send_box(const struct export *e, int socket, struct pack_count *count, struct hutch_error *err) {
        const struct archive_item end = {.kind = ITEM_END, .name = (char *) ""};
        _cleanup_(freep) char *text = NULL, *shell = NULL;
        size_t len;
        int r;

        if (e->n > ARCHIVE_LAYERS_MOST)
                return error_set(err, HUTCH_E_POLICY_REFUSED, E2BIG,
                                 "the changes are in %zu copy-on-write directories: more than an archive can hold (%d)",
                                 e->n, ARCHIVE_LAYERS_MOST);
        text = describe_box(e);
        r = text ? send_text(socket, "hutch-box", text, strlen(text)) : error_oom(err);
        for (size_t i = 0; r >= 0 && i < e->n; i++)
                r = send_layer(e, i, socket, count, err);
        if (r < 0)
                return r;
        if (read_whole_file(e->review->box->fd, "shell", ARCHIVE_SHELL_MOST, &shell, &len) >= 0)
                r = send_text(socket, "shell", shell, len);
        return r < 0 ? r : stream_put(socket, &end);
}

static int export_to(const struct export *e, int fd, const char *file, struct pack_count *count,
                     struct hutch_error *err) {
        _cleanup_(archive_item_done) struct archive_item item = {0};
        _cleanup_(closep) int socket = -1;
        pid_t pid;
        int r = archive_spawn("pack", fd, &socket, &pid, err);

        if (r < 0)
                return r;
        r = send_box(e, socket, count, err);
        if (r == -EPIPE)
                r = helper_error(socket, file, r, err);
        else if (r >= 0 && (stream_get(socket, &item) < 0 || item.kind != ITEM_END))
                r = error_set(err, HUTCH_E_IO, EIO, "cannot write %s: %s", file,
                              item.kind == ITEM_FAILED ? item.name : "hutch-archive ended");
        closep(&socket);
        warden_reap(pid);
        return r;
}

/* A file without a name, which goes with the process; where the file system has none, one beside its place. */
static int open_part(const char *file, const char *part, bool *ret_named) {
        _cleanup_(freep) char *directory = NULL;
        int fd;

        if (path_dirname(file, &directory) < 0)
                return -ENOMEM;
        fd = open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
        *ret_named = fd < 0;
        if (fd < 0)
                fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        return fd < 0 ? -errno : fd;
}

static int put_in_place(int fd, bool named, const char *part, const char *file) {
        char self[64];

        snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
        if (fdatasync(fd) < 0)
                return -errno;
        if (!named && linkat(AT_FDCWD, self, AT_FDCWD, part, AT_SYMLINK_FOLLOW) < 0)
                return -errno;
        return rename(part, file) < 0 ? -errno : 0;
}

static int export(const hutch_review *review, const char *file, bool workspace_only, uint64_t *ret_left_out,
                  hutch_error *err) {
        _cleanup_(export_done) struct export e = {.review = review};
        _cleanup_(freep) char *part = NULL;
        _cleanup_(closep) int fd = -1;
        struct pack_count count = {0};
        bool named;
        int r;

        if (export_choose(&e, workspace_only) < 0)
                return error_oom(err);
        if (asprintf(&part, "%s.%s.part", file, review->box->meta.id) < 0)
                return error_oom(err);
        fd = open_part(file, part, &named);
        if (fd < 0)
                return error_set(err, HUTCH_E_IO, fd, "cannot write %s: %s", file, errno_text(-fd));
        r = export_to(&e, fd, file, &count, err);
        if (r < 0) {
                (void) unlink(part);
                return r;
        }
        r = put_in_place(fd, named, part, file);
        if (r < 0) {
                (void) unlink(part);
                return error_set(err, HUTCH_E_IO, r, "cannot write %s: %s", file, errno_text(-r));
        }
        if (ret_left_out)
                *ret_left_out = count.left_out;
        return 0;
}

int hutch_review_export(const hutch_review *review, const char *file, uint64_t *ret_left_out, hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        if (!file)
                return api_null(err, __func__, "file");
        return export(review, file, false, ret_left_out, err);
}

int hutch_review_export_workspace(const hutch_review *review, const char *file, uint64_t *ret_left_out,
                                  hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        if (!file)
                return api_null(err, __func__, "file");
        return export(review, file, true, ret_left_out, err);
}
