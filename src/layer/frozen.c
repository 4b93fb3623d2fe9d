/* See frozen.h. */
#include "frozen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/io.h"
#include "../base/strv.h"
#include "../tree/tree.h"
#include "meta.h"

#define SWEEP_AFTER_S 10 /* a process may be about to name a layer that nothing names yet */

static int make_folder(int dir, const char *name) {
        return mkdirat(dir, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_folder(int dir, const char *name) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* ext4 gives directories beside each other inodes beside each other, and creating one skips all those there that were
 * freed within the last minutes. With this flag each gets another block group. Other file systems do without. */
void frozen_spread(int dir, const char *name) {
        _cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int flags;

        if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || flags & FS_TOPDIR_FL)
                return;
        flags |= FS_TOPDIR_FL;
        (void) ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static int open_refs(int state, const char *id) {
        char name[128];

        snprintf(name, sizeof(name), "layers/%s/refs", id);
        return open_folder(state, name);
}

static int add_ref(int state, const char *id, const char *owner) {
        _cleanup_(closep) int refs = open_refs(state, id), fd = -1;

        if (refs < 0)
                return refs;
        fd = openat(refs, owner, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : 0;
}

/* The layer is unused once its refs are gone. */
static void remove_if_free(int state, const char *id) {
        _cleanup_(closep) int layers = open_folder(state, "layers"), layer = layers < 0 ? -1 : open_folder(layers, id);

        if (layer >= 0 && unlinkat(layer, "refs", AT_REMOVEDIR) == 0)
                (void) trash_put(state, layers, id);
}

int frozen_new(int state, const char *owner, char **ret) {
        _cleanup_(freep) char *id = NULL;
        char name[128];
        int r = layer_new_id(&id);

        if (r < 0)
                return r;
        r = make_folder(state, "layers");
        if (r < 0)
                return r;
        frozen_spread(state, "layers");
        snprintf(name, sizeof(name), "layers/%s", id);
        r = make_folder(state, name);
        snprintf(name, sizeof(name), "layers/%s/refs", id);
        if (r < 0)
                return r;
        r = make_folder(state, name);
        if (r < 0)
                return r;
        r = add_ref(state, id, owner);
        if (r < 0)
                return r;
        *ret = take_ptr(id);
        return r;
}

int frozen_ref(int state, char *const *chain, const char *owner) {
        int r = 0;

        for (; r >= 0 && chain && *chain; chain++)
                r = add_ref(state, *chain, owner);
        return r;
}

void frozen_unref(int state, char *const *chain, char *const *kept, const char *owner) {
        for (; chain && *chain; chain++) {
                _cleanup_(closep) int refs = strv_contains(kept, *chain) ? -1 : open_refs(state, *chain);

                if (refs < 0)
                        continue;
                (void) unlinkat(refs, owner, 0);
                remove_if_free(state, *chain);
        }
}

int frozen_open(int state, const char *id, size_t n) {
        char name[128];
        int fd;

        snprintf(name, sizeof(name), "layers/%s/%zu", id, n);
        fd = openat(state, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static bool is_old(int dir, const char *name) {
        struct stat st;

        return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime + SWEEP_AFTER_S < time(NULL);
}

/* Whether the owner's meta, or the one it is about to have, lists the layer. */
static bool is_named(int state, const char *owner, const char *id) {
        /* Once more the first: the second may have become it meanwhile. */
        static const char *const files[][2] = {{"boxes", "meta"}, {"boxes", "meta.next"},     {"boxes", META_HIDDEN},
                                               {"boxes", "meta"}, {"snapshots", "meta.next"}, {"snapshots", "meta"}};

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _cleanup_(freep) char *path = NULL;
                struct layer_meta m = {0};
                bool found;

                if (asprintf(&path, "%s/%s/%s", files[i][0], owner, files[i][1]) < 0)
                        return true;
                found = layer_meta_read(state, path, &m) >= 0 && strv_contains(m.chain, id);
                layer_meta_done(&m);
                if (found)
                        return true;
        }
        return false;
}

static int list(int dir, char ***ret) {
        DIR *d = dir < 0 ? NULL : fdopendir(dir);
        struct dirent *entry;
        int r = 0;

        if (!d)
                return -errno;
        while (r >= 0 && (entry = readdir(d)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        r = strv_push(ret, entry->d_name);
        closedir(d);
        return r;
}

static void sweep_layer(int state, int layers, const char *id) {
        _cleanup_(strv_freep) char **owners = NULL;
        _cleanup_(closep) int refs = open_refs(state, id);
        bool free_now;

        if (refs < 0) {
                if (is_old(layers, id))
                        (void) trash_put(state, layers, id);
                return;
        }
        free_now = is_old(refs, ".");
        if (list(open_refs(state, id), &owners) < 0)
                return;
        for (char **owner = owners; owner && *owner; owner++)
                if (is_old(refs, *owner) && !is_named(state, *owner, id))
                        free_now = unlinkat(refs, *owner, 0) == 0;
        if (free_now)
                remove_if_free(state, id);
}

void frozen_sweep(int state) {
        _cleanup_(closep) int layers = open_folder(state, "layers");
        _cleanup_(strv_freep) char **ids = NULL;

        if (layers < 0 || list(open_folder(state, "layers"), &ids) < 0)
                return;
        for (char **id = ids; id && *id; id++)
                sweep_layer(state, layers, *id);
}

int trash_put(int state, int dir, const char *name) {
        _cleanup_(closep) int trash = -1;
        _cleanup_(freep) char *fresh = NULL;
        int r = make_folder(state, "trash");

        if (r < 0)
                return r;
        r = layer_new_id(&fresh);
        if (r < 0)
                return r;
        trash = open_folder(state, "trash");
        if (trash < 0)
                return trash;
        return renameat(dir, name, trash, fresh) < 0 ? -errno : 0;
}

void trash_empty(int state) {
        _cleanup_(closep) int trash = open_folder(state, "trash");
        _cleanup_(strv_freep) char **names = NULL;

        if (trash < 0 || list(open_folder(state, "trash"), &names) < 0)
                return;
        for (char **name = names; name && *name; name++)
                (void) tree_remove(trash, *name);
        (void) unlinkat(state, "trash", AT_REMOVEDIR);
}
