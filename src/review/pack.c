/* Exporting a layer; see pack.h. The upper is walked once, in the order of names, into a list; from that the manifest
 * is written and then the entries, so that both have the same order whatever order the file system has. */
#include "pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../tree/attrs.h"
#include "base.h"
#include "list.h"
#include "manifest.h"
#include "../tree/tree.h"
#include "view.h"
#include "walk.h"

#define CHUNK ((size_t) 1 << 16)
#define MANIFEST_MOST ((size_t) 256 << 20)

struct thing {
        char *path;
        struct stat st;
        size_t same_as;                /* an earlier thing with the same inode, or SIZE_MAX */
        struct manifest_piece *pieces; /* of a file: what is no hole */
        size_t n_pieces;
        uint64_t bytes;
};

struct pack {
        struct view view;
        const char *prefix;
        int stream;
        struct thing *things;
        size_t n, room;
        char **stack;
        size_t n_stack, stack_room;
        struct buf manifest;
        struct pack_count *count;
};

static void pack_done(struct pack *p) {
        for (size_t i = 0; i < p->n; i++) {
                free(p->things[i].path);
                free(p->things[i].pieces);
        }
        free(p->things);
        while (p->n_stack > 0)
                free(p->stack[--p->n_stack]);
        free(p->stack);
        buf_done(&p->manifest);
        view_done(&p->view);
}

static int push(struct pack *p, char *path) {
        if (path && p->n_stack == p->stack_room) {
                size_t room = p->stack_room ? p->stack_room * 2 : 64;
                char **grown = reallocarray(p->stack, room, sizeof(*grown));

                if (grown) {
                        p->stack = grown;
                        p->stack_room = room;
                }
        }
        if (!path || p->n_stack == p->stack_room) {
                free(path);
                return -ENOMEM;
        }
        p->stack[p->n_stack++] = path;
        return 0;
}

static int add(struct pack *p, char *path, const struct stat *st) {
        if (p->n == p->room) {
                size_t room = p->room ? p->room * 2 : 256;
                struct thing *grown = reallocarray(p->things, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                p->things = grown;
                p->room = room;
        }
        p->things[p->n++] = (struct thing){.path = path, .st = *st, .same_as = SIZE_MAX};
        return 0;
}

/* The directory of a path, and its last name. */
static int open_above(struct pack *p, const char *path, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *directory = strndup(path, slash ? (size_t) (slash - path) : 0);

        *ret_name = slash ? slash + 1 : path;
        return directory ? upper_open_folder(&p->view.upper, directory, false, NULL) : -ENOMEM;
}

/* Puts a directory's names onto the stack, the first one on top. */
static int push_names(struct pack *p, const char *path, int fd) {
        _cleanup_(names_list_done) struct names_list names = {0};
        int r = tree_list(fd, &names);

        for (size_t i = names.n; r >= 0 && i-- > 0;)
                r = push(p, tree_join(path, names.names[i]));
        return r;
}

static void put_record(struct pack *p, const char *head, const char *path) {
        buf_puts(&p->manifest, head);
        buf_puts(&p->manifest, path);
        buf_put(&p->manifest, "", 1);
}

static void put_attr(void *user, const char *name, const void *value, size_t len) {
        struct pack *p = user;

        buf_puts(&p->manifest, "x ");
        manifest_put_hex(&p->manifest, name, strlen(name));
        buf_puts(&p->manifest, " ");
        manifest_put_hex(&p->manifest, value, len);
        put_record(p, " ", p->things[p->n - 1].path);
}

/* Finds them once: the manifest and the entry have to agree. */
static int find_pieces(struct thing *thing, int fd) {
        for (off_t at = 0; at < thing->st.st_size;) {
                off_t data = lseek(fd, at, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
                struct manifest_piece *grown;

                if (data < 0)
                        break;
                if (hole < 0 || hole > thing->st.st_size)
                        hole = thing->st.st_size;
                if (hole <= data)
                        break;
                grown = reallocarray(thing->pieces, thing->n_pieces + 1, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                thing->pieces = grown;
                grown[thing->n_pieces++] = (struct manifest_piece){(uint64_t) data, (uint64_t) (hole - data)};
                thing->bytes += (uint64_t) (hole - data);
                at = hole;
        }
        return 0;
}

static void put_pieces(struct pack *p, const struct thing *thing) {
        if (thing->bytes == (uint64_t) thing->st.st_size)
                return;
        buf_printf(&p->manifest, "s %" PRIu64 " %zu ", (uint64_t) thing->st.st_size, thing->n_pieces);
        for (size_t i = 0; i < thing->n_pieces; i++)
                buf_printf(&p->manifest, "%" PRIu64 " %" PRIu64 " ", thing->pieces[i].offset, thing->pieces[i].len);
        put_record(p, "", thing->path);
}

static int see_file(struct pack *p, int dir, const char *name) {
        _cleanup_(closep) int fd = upper_open_file(dir, name);
        int r = fd < 0 ? fd : attrs_each(fd, put_attr, p);

        if (r >= 0)
                r = find_pieces(&p->things[p->n - 1], fd);
        if (r >= 0)
                put_pieces(p, &p->things[p->n - 1]);
        return r;
}

static int see_folder(struct pack *p, const char *path, struct stat *st) {
        _cleanup_(closep) int fd = upper_open_folder(&p->view.upper, path, false, st);
        int r;

        if (fd < 0)
                return fd;
        p->things[p->n - 1].st = *st;
        if (tree_is_opaque(fd))
                put_record(p, "o ", path);
        r = attrs_each(fd, put_attr, p);
        return r < 0 ? r : push_names(p, path, fd);
}

static int see(struct pack *p, char *path) {
        const char *name;
        _cleanup_(closep) int dir = -1;
        struct stat st;
        int r;

        if (!manifest_path_is_plain(path)) {
                p->count->left_out++;
                free(path);
                return 0;
        }
        dir = open_above(p, path, &name);
        if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                r = dir < 0 ? dir : -errno;
                free(path);
                return r;
        }
        if (tree_is_whiteout(&st) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))) {
                if (tree_is_whiteout(&st))
                        put_record(p, "w ", path);
                else
                        p->count->left_out++;
                free(path);
                return 0;
        }
        r = add(p, path, &st);
        if (r < 0) {
                free(path);
                return r;
        }
        if (S_ISDIR(st.st_mode))
                return see_folder(p, path, &st);
        return S_ISREG(st.st_mode) ? see_file(p, dir, name) : 0;
}

static int walk(struct pack *p) {
        _cleanup_(closep) int root = upper_open_folder(&p->view.upper, "", false, NULL);
        int r = root < 0 ? root : push_names(p, "", root);

        while (r >= 0 && p->n_stack > 0)
                r = see(p, p->stack[--p->n_stack]);
        return r;
}

/* ---- hard links ---- */

static int by_inode(const void *a, const void *b) {
        const struct thing *one = *(struct thing *const *) a, *two = *(struct thing *const *) b;

        if (one->st.st_ino != two->st.st_ino)
                return one->st.st_ino < two->st.st_ino ? -1 : 1;
        return one < two ? -1 : one > two;
}

static int find_links(struct pack *p) {
        _cleanup_(freep) struct thing **linked = calloc(p->n + 1, sizeof(*linked));
        size_t n = 0, first = 0;

        if (!linked)
                return -ENOMEM;
        for (size_t i = 0; i < p->n; i++)
                if (S_ISREG(p->things[i].st.st_mode) && p->things[i].st.st_nlink > 1)
                        linked[n++] = &p->things[i];
        qsort(linked, n, sizeof(*linked), by_inode);
        for (size_t i = 1; i < n; i++)
                if (linked[i]->st.st_ino == linked[first]->st.st_ino)
                        linked[i]->same_as = (size_t) (linked[first] - p->things);
                else
                        first = i;
        return 0;
}

/* ---- what the host has ---- */

static int put_base(struct pack *p, int layer, struct hutch_error *err) {
        _cleanup_(change_list_done) struct change_list list = {0};
        _cleanup_(base_done) struct base base = {0};
        int r = base_load(layer, &base, err);

        p->view.base = &base;
        if (r >= 0)
                r = walk_changes(&p->view, WALK_SHALLOW, &list, err);
        p->view.base = NULL;
        if (r < 0)
                return r;
        change_list_sort(&list);
        for (size_t i = 0; i < list.n; i++) {
                const char *path = list.items[i].path;
                char hash[HASH_SIZE * 2 + 1] = "", head[HASH_SIZE * 2 + 16];
                struct stat st;
                bool exists = tree_stat(p->view.pair->lower, path, &st) >= 0;
                char kind = !exists               ? '-'
                            : S_ISDIR(st.st_mode) ? 'd'
                            : S_ISREG(st.st_mode) ? 'f'
                            : S_ISLNK(st.st_mode) ? 'l'
                                                  : '?';

                if (base_check(&base, &p->view, &list.items[i], exists ? &st : NULL))
                        kind = '?';
                if ((kind == 'f' || kind == 'l') &&
                    manifest_hash_host(p->view.pair->lower, path, kind == 'l', hash) < 0)
                        kind = '?';
                snprintf(head, sizeof(head), "b %c %s%s", kind, kind == 'f' || kind == 'l' ? hash : "",
                         kind == 'f' || kind == 'l' ? " " : "");
                if (manifest_path_is_plain(path))
                        put_record(p, head, path);
        }
        return 0;
}

/* ---- sending ---- */

static int send_manifest(struct pack *p) {
        _cleanup_(freep) char *name = NULL;
        struct archive_item item = {.kind = ITEM_REGULAR, .mode = 0600, .size = p->manifest.len};
        int r;

        if (p->manifest.oom || p->manifest.len > MANIFEST_MOST || asprintf(&name, "%s/manifest", p->prefix) < 0)
                return -ENOMEM;
        item.name = name;
        r = stream_put(p->stream, &item);
        return r < 0 ? r : stream_put_data(p->stream, p->manifest.data, p->manifest.len);
}

static int send_piece(struct pack *p, int fd, off_t at, uint64_t len) {
        _cleanup_(freep) uint8_t *data = malloc(CHUNK);
        int r = data ? 0 : -ENOMEM;

        while (r >= 0 && len > 0) {
                ssize_t n = pread(fd, data, len < CHUNK ? len : CHUNK, at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ESTALE; /* it shrinks while we read */
                r = stream_put_data(p->stream, data, (size_t) n);
                at += n;
                len -= (uint64_t) n;
                p->count->bytes += (uint64_t) n;
        }
        return r;
}

static int send_thing(struct pack *p, const struct thing *thing) {
        const char *name;
        _cleanup_(freep) char *full = NULL, *target = NULL;
        _cleanup_(closep) int dir = open_above(p, thing->path, &name), fd = -1;
        struct archive_item item = {.kind = S_ISDIR(thing->st.st_mode)   ? ITEM_FOLDER
                                            : S_ISLNK(thing->st.st_mode) ? ITEM_LINK
                                                                         : ITEM_REGULAR,
                                    .mode = thing->st.st_mode & 07777,
                                    .sec = thing->st.st_mtim.tv_sec,
                                    .nsec = (uint32_t) thing->st.st_mtim.tv_nsec};
        int r;

        if (dir < 0)
                return dir;
        if (asprintf(&full, "%s/upper/%s", p->prefix, thing->path) < 0)
                return -ENOMEM;
        item.name = full;
        if (thing->same_as != SIZE_MAX) {
                if (asprintf(&target, "%s/upper/%s", p->prefix, p->things[thing->same_as].path) < 0)
                        return -ENOMEM;
                item.kind = ITEM_HARD_LINK;
                item.target = target;
        }
        if (item.kind == ITEM_LINK) {
                r = tree_read_link(dir, name, &target);
                if (r < 0)
                        return r;
                item.target = target;
        }
        p->count->entries++;
        if (item.kind != ITEM_REGULAR)
                return stream_put(p->stream, &item);
        item.size = thing->bytes;
        fd = upper_open_file(dir, name);
        r = fd < 0 ? fd : stream_put(p->stream, &item);
        for (size_t i = 0; r >= 0 && i < thing->n_pieces; i++)
                r = send_piece(p, fd, (off_t) thing->pieces[i].offset, thing->pieces[i].len);
        return r;
}

int pack_layer(const struct review_pair *pair, int layer, const char *prefix, int stream, struct pack_count *count,
               struct hutch_error *err) {
        _cleanup_(pack_done) struct pack p = {
                .view = {.pair = pair, .upper.root = pair->upper}, .prefix = prefix, .stream = stream, .count = count};
        int r = walk(&p);

        if (r >= 0)
                r = find_links(&p);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read the layer of %s: %s", pair->host_path,
                                 errno_text(-r));
        r = pair->lower < 0 ? 0 : put_base(&p, layer, err);
        if (r < 0)
                return r;
        r = send_manifest(&p);
        for (size_t i = 0; r >= 0 && i < p.n; i++)
                r = send_thing(&p, &p.things[i]);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot export the layer of %s: %s", pair->host_path,
                                 errno_text(-r));
        return 0;
}
