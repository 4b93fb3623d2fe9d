/* The store of layers: freezing, going back, forking, references, and what a kill leaves. No overlay is mounted: the
 * tests write in the uppers themselves, as a box would. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/strv.h"
#include "layer/frozen.h"
#include "layer/snapshot.h"
#include "layer/stack.h"
#include "unit.h"

struct place {
        char top[3000], root[3200], lower[3200];
};

static struct place new_place(const char *name) {
        struct place p;

        snprintf(p.top, sizeof(p.top), "%s/%s", unit_folder(), name);
        snprintf(p.root, sizeof(p.root), "%s/hutch/boxes", p.top);
        snprintf(p.lower, sizeof(p.lower), "%s/host", p.top);
        assert_int_equal(mkdir(p.top, 0755), 0);
        assert_int_equal(mkdir(p.lower, 0750), 0);
        return p;
}

static struct layer_box *new_box(const struct place *p) {
        char *lowers[] = {(char *) p->lower, (char *) p->top, NULL}, *dests[] = {(char *) "/a", (char *) "/b", NULL};
        const struct layer_meta meta = {
                .workspace = (char *) p->lower, .command = (char *) "true", .lowers = lowers, .dests = dests};
        struct hutch_error err = {0};
        struct layer_box *box = NULL;

        unit_check(layer_new(p->root, &meta, &box, &err) >= 0, "%s", err.message);
        return box;
}

static void put(const struct layer_box *box, const char *path, const char *text) {
        _cleanup_(closep) int fd = openat(box->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

/* What the box would see of a file of its first directory. */
static char *look(const struct layer_box *box, const char *name) {
        _cleanup_(strv_freep) char **below = NULL;
        char path[64], *text = NULL;

        snprintf(path, sizeof(path), "0/upper/%s", name);
        if (read_whole_file(box->fd, path, 1000, &text, NULL) >= 0)
                return text;
        assert_int_equal(stack_list_below(box, 0, &below), 0);
        for (char **directory = below; directory && *directory; directory++) {
                char file[4200];

                snprintf(file, sizeof(file), "%s/%s", *directory, name);
                if (read_whole_file(AT_FDCWD, file, 1000, &text, NULL) >= 0)
                        return text;
        }
        return NULL;
}

static void sees(const struct layer_box *box, const char *name, const char *want) {
        _cleanup_(freep) char *got = look(box, name);

        unit_same(name, got, want);
}

static size_t count(const struct place *p, const char *directory) {
        char path[4200];
        struct dirent *e;
        size_t n = 0;
        DIR *d;

        snprintf(path, sizeof(path), "%s/hutch/%s", p->top, directory);
        d = opendir(path);
        while (d && (e = readdir(d)))
                n += e->d_name[0] != '.';
        if (d)
                closedir(d);
        return n;
}

static void test_back_and_forth(void **state _unused_) {
        struct place p = new_place("back");
        struct layer_box *box = new_box(&p), *twin = NULL;
        struct layer_snapshot *first = NULL, *second = NULL, *none = NULL, *again = NULL;
        struct hutch_error err = {0};
        struct stat st;

        assert_int_equal(snapshot_make(box, "empty", &none, NULL), 0);
        assert_int_equal(strv_length(none->meta.chain), 0);
        put(box, "0/upper/f", "one");
        put(box, "0/base", "note");
        assert_int_equal(fchmodat(box->fd, "0/upper", 0711, 0), 0);
        assert_int_equal(snapshot_make(box, "first", &first, NULL), 0);
        sees(box, "f", "one");
        assert_int_equal(fstatat(box->fd, "0/upper", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0711);
        assert_int_equal(faccessat(box->fd, "0/base", F_OK, 0), 0);
        put(box, "0/upper/f", "two");
        put(box, "0/upper/g", "new");
        assert_int_equal(snapshot_make(box, NULL, &second, NULL), 0);
        assert_int_equal(strv_length(box->meta.chain), 2);
        put(box, "0/upper/g", "wrecked");
        assert_int_equal(snapshot_make(box, "first", &again, &err), -EEXIST);
        assert_int_equal(snapshot_restore(box, first, NULL), 0);
        sees(box, "f", "one");
        sees(box, "g", NULL);
        assert_int_equal(snapshot_restore(box, second, NULL), 0);
        sees(box, "f", "two");
        sees(box, "g", "new");
        assert_int_equal(snapshot_fork(box, &twin, NULL), 0);
        put(twin, "0/upper/f", "twin");
        sees(twin, "f", "twin");
        sees(twin, "g", "new");
        sees(box, "f", "two");
        assert_int_equal(snapshot_restore(box, none, NULL), 0);
        sees(box, "f", NULL);
        assert_int_equal(fstatat(box->fd, "0/upper", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0750);
        assert_int_equal(faccessat(box->fd, "0/base", F_OK, 0), -1);
        /* Each goes, and the last one turns off the light. */
        assert_int_equal(count(&p, "layers"), 2);
        assert_int_equal(layer_remove(box, NULL), 0);
        assert_int_equal(snapshot_remove(first, NULL), 0);
        assert_int_equal(snapshot_remove(none, NULL), 0);
        assert_int_equal(snapshot_remove(second, NULL), 0);
        assert_int_equal(count(&p, "layers"), 2);
        sees(twin, "g", "new");
        assert_int_equal(layer_remove(twin, NULL), 0);
        assert_int_equal(count(&p, "layers") + count(&p, "boxes") + count(&p, "snapshots") + count(&p, "trash"), 0);
        layer_free(box);
        layer_free(twin);
        snapshot_free(first);
        snapshot_free(second);
        snapshot_free(none);
}

static void test_long_chain(void **state _unused_) {
        struct place p = new_place("chain");
        struct layer_box *box = new_box(&p);
        struct layer_snapshot *kept = NULL;
        char name[32], text[32];

        for (unsigned i = 0; i < 250; i++) {
                struct layer_snapshot *s = NULL;

                snprintf(name, sizeof(name), "0/upper/f%u", i);
                snprintf(text, sizeof(text), "%u", i);
                put(box, name, text);
                put(box, "0/upper/last", text);
                assert_int_equal(snapshot_make(box, NULL, &s, NULL), 0);
                assert_true(strv_length(box->meta.chain) <= STACK_MOST);
                if (i == 42)
                        kept = take_ptr(s);
                else
                        assert_int_equal(snapshot_remove(s, NULL), 0);
                snapshot_free(s);
        }
        for (unsigned i = 0; i < 250; i++) {
                snprintf(name, sizeof(name), "f%u", i);
                snprintf(text, sizeof(text), "%u", i);
                sees(box, name, text);
        }
        sees(box, "last", "249");
        assert_int_equal(snapshot_restore(box, kept, NULL), 0);
        sees(box, "last", "42");
        sees(box, "f43", NULL);
        /* The layers that only the box had are gone. */
        assert_int_equal(count(&p, "layers"), strv_length(kept->meta.chain));
        layer_free(box);
        snapshot_free(kept);
}

static void test_squash(void **state _unused_) {
        struct place p = new_place("squash");
        struct layer_box *box = new_box(&p);
        struct layer_snapshot *s = NULL;
        struct hutch_error err = {0};

        put(box, "0/upper/f", "one");
        put(box, "0/base", "note");
        assert_int_equal(snapshot_make(box, NULL, &s, NULL), 0);
        put(box, "0/upper/g", "two");
        unit_check(stack_make_view(box, 0, &err) >= 0, "%s", err.message);
        assert_int_equal(faccessat(box->fd, "0/view/f", F_OK, 0), 0);
        assert_int_equal(faccessat(box->fd, "0/view/g", F_OK, 0), 0);
        unit_check(stack_squash(box, &err) >= 0, "%s", err.message);
        assert_int_equal(strv_length(box->meta.chain), 0);
        assert_int_equal(faccessat(box->fd, "0/upper/f", F_OK, 0), 0);
        assert_int_equal(faccessat(box->fd, "0/upper/g", F_OK, 0), 0);
        assert_int_equal(faccessat(box->fd, "0/base", F_OK, 0), 0);
        /* Its files are the snapshot's too: before a box writes again, there is a fresh layer over them. */
        assert_true(box->meta.linked);
        assert_int_equal(layer_renew(box, NULL), 0);
        assert_false(box->meta.linked);
        assert_int_equal(faccessat(box->fd, "0/upper/f", F_OK, 0), -1);
        sees(box, "f", "one");
        sees(box, "g", "two");
        put(box, "0/upper/f", "wrecked");
        assert_int_equal(snapshot_restore(box, s, NULL), 0);
        sees(box, "f", "one");
        sees(box, "g", NULL);
        layer_free(box);
        snapshot_free(s);
}

/* Killed at each step of a freeze, as the files show it. */
static void test_unfinished(void **state _unused_) {
        for (int step = 0; step < 5; step++) {
                char name[32], path[4200], id[64];
                struct place p;
                struct layer_box *box, *again = NULL;
                struct layer_meta next = {0};
                char *layer = NULL;
                struct hutch_error err = {0};

                snprintf(name, sizeof(name), "killed-%d", step);
                p = new_place(name);
                box = new_box(&p);
                put(box, "0/upper/f", "one");
                put(box, "1/upper/f", "other");
                snprintf(id, sizeof(id), "%s", box->meta.id);
                assert_int_equal(frozen_new(box->state, id, &layer), 0);
                assert_int_equal(layer_meta_copy(&box->meta, &next), 0);
                assert_int_equal(strv_push(&next.chain, layer), 0);
                assert_true(asprintf(&next.away, "layers/%s", layer) > 0);
                assert_int_equal(stack_make_fresh(box, 0, -1, "0.next"), 0);
                if (step >= 1) {
                        assert_int_equal(stack_make_fresh(box, 1, -1, "1.next"), 0);
                        assert_int_equal(layer_meta_write(box->fd, "meta.next", &next), 0);
                }
                snprintf(path, sizeof(path), "layers/%s/0", layer);
                if (step >= 2)
                        assert_int_equal(renameat(box->fd, "0", box->state, path), 0);
                if (step >= 3)
                        assert_int_equal(renameat(box->fd, "0.next", box->fd, "0"), 0);
                snprintf(path, sizeof(path), "layers/%s/1", layer);
                if (step >= 4)
                        assert_int_equal(renameat(box->fd, "1", box->state, path), 0);
                layer_free(box);
                unit_check(layer_open(p.root, id, &again, &err) >= 0, "step %d: %s", step, err.message);
                sees(again, "f", "one");
                assert_int_equal(strv_length(again->meta.chain), step >= 1 ? 1 : 0);
                assert_int_equal(faccessat(again->fd, "0.next", F_OK, 0), -1);
                assert_int_equal(faccessat(again->fd, "1.next", F_OK, 0), -1);
                assert_int_equal(faccessat(again->fd, "meta.next", F_OK, 0), -1);
                assert_int_equal(layer_remove(again, NULL), 0);
                /* What nobody names is swept when it is old enough. */
                if (step == 0) {
                        const struct timespec old[] = {{1000, 0}, {1000, 0}};

                        assert_int_equal(count(&p, "layers"), 1);
                        frozen_sweep(again->state);
                        assert_int_equal(count(&p, "layers"), 1);
                        snprintf(path, sizeof(path), "layers/%s/refs/%s", layer, id);
                        assert_int_equal(utimensat(again->state, path, old, 0), 0);
                        frozen_sweep(again->state);
                        trash_empty(again->state);
                }
                assert_int_equal(count(&p, "layers") + count(&p, "trash"), 0);
                layer_meta_done(&next);
                layer_free(again);
                free(layer);
        }
}

/* Whether a directory is marked as one whose directories have nothing to do with each other; it is tried to mark it
 * first. */
static bool is_marked(const char *path, bool mark) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int flags = 0;

        assert_true(fd >= 0);
        if (ioctl(fd, FS_IOC_GETFLAGS, &flags) >= 0 && mark) {
                flags |= FS_TOPDIR_FL;
                (void) ioctl(fd, FS_IOC_SETFLAGS, &flags);
                flags = 0;
                (void) ioctl(fd, FS_IOC_GETFLAGS, &flags);
        }
        return flags & FS_TOPDIR_FL;
}

static void test_spread(void **state _unused_) {
        struct place p = new_place("spread");
        struct layer_box *box = new_box(&p);

        assert_int_equal(is_marked(p.root, false), is_marked(p.lower, true));
        assert_false(is_marked(box->path, false));
        assert_int_equal(layer_remove(box, NULL), 0);
        layer_free(box);
}

int main(void) {
        unit_add("back and forth", test_back_and_forth, NULL);
        unit_add("a long chain", test_long_chain, NULL);
        unit_add("squashed for a review", test_squash, NULL);
        unit_add("a freeze that was killed", test_unfinished, NULL);
        unit_add("spread over the disk", test_spread, NULL);
        return unit_run("layer/stack");
}
