/* See trust.h. */
#include "trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/hash.h"
#include "../base/io.h"
#include "../base/strv.h"

#define PROFILE "profile.yaml"
static const char *const file_names[N_TRUST_FILES] = {".jail", "hutch.yaml"};

void trust_free(struct trust *t) {
        if (!t)
                return;
        for (size_t i = 0; i < t->n_files; i++) {
                free(t->files[i].path);
                free(t->files[i].text);
                free(t->files[i].refused);
                free(t->files[i].accepted);
        }
        free(t->workspace);
        free(t->record);
        free(t);
}

void trust_freep(struct trust **t) {
        trust_free(*t);
}

static int refuse(char **ret_refused, const char *why) {
        *ret_refused = strdup(why);
        return *ret_refused ? -EPERM : -ENOMEM;
}

/* A FIFO does not block the open, a link is not followed, and what was opened is what is read: a box that replaces the
 * file meanwhile gains nothing. A second name would let a box change an accepted file where it is not protected. */
int trust_read_file(int dir, const char *name, char **ret, size_t *ret_len, char **ret_refused) {
        _cleanup_(freep) char *text = NULL;
        _cleanup_(closep) int fd = -1;
        struct stat st;
        int r;

        fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0)
                return errno == ELOOP    ? refuse(ret_refused, "it is a symbolic link")
                       : errno == ENXIO  ? refuse(ret_refused, "it is not a regular file")
                       : errno == EACCES ? refuse(ret_refused, "it cannot be read: permission denied")
                                         : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return refuse(ret_refused, "it is not a regular file");
        if (st.st_nlink > 1)
                return refuse(ret_refused, "it has a second name (a hard link)");
        if ((uint64_t) st.st_size > TRUST_TEXT_MOST)
                return refuse(ret_refused, "it is larger than 256 KiB");
        r = read_whole_fd(fd, TRUST_TEXT_MOST, &text, ret_len);
        if (r == -EFBIG)
                return refuse(ret_refused, "it is larger than 256 KiB");
        if (r < 0)
                return r;
        *ret = take_ptr(text);
        return 0;
}

static int read_one(struct trust *t, size_t i, int dir) {
        struct trust_file *f = &t->files[i];
        int r;

        f->name = file_names[i];
        if (asprintf(&f->path, "%s/%s", strcmp(t->workspace, "/") ? t->workspace : "", f->name) < 0) {
                f->path = NULL;
                return -ENOMEM;
        }
        r = trust_read_file(dir, f->name, &f->text, &f->len, &f->refused);
        return r == -EPERM && f->refused ? 0 : r;
}

/* A record that another user could have written is ignored. */
static int open_record(const struct trust *t) {
        struct stat st;
        int fd;

        fd = t->record ? open(t->record, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
                close(fd);
                fd = -1;
        }
        return fd;
}

static int read_record(struct trust *t) {
        _cleanup_(freep) char *workspace = NULL, *refused = NULL;
        _cleanup_(closep) int dir = open_record(t);
        size_t len = 0;
        int r;

        if (dir < 0)
                return 0;
        r = trust_read_file(dir, "workspace", &workspace, &len, &refused);
        if (r < 0 && r != -EPERM)
                return r;
        if (!workspace || strcmp(workspace, t->workspace) != 0) /* half written: accept() puts this file last */
                return 0;
        for (size_t i = 0; i < t->n_files; i++) {
                _cleanup_(freep) char *why = NULL;

                r = trust_read_file(dir, t->files[i].name, &t->files[i].accepted, &t->files[i].accepted_len, &why);
                if (r < 0)
                        return r == -EPERM ? 0 : r;
        }
        t->recorded = true;
        return 0;
}

/* The records of a workspace; with `profiles`, those of its profiles. NULL in *ret where no state is known. */
static int name_record(const char *state, const char *workspace, const char *profiles, char **ret) {
        uint8_t value[HASH_SIZE];
        char hex[HASH_SIZE * 2 + 1];
        struct hash hash;

        *ret = NULL;
        if (!state)
                return 0;
        hash_init(&hash);
        hash_put(&hash, workspace, strlen(workspace));
        hash_end(&hash, value);
        hash_hex(value, hex);
        if (asprintf(ret, "%s/trust/%.32s%s%s", state, hex, profiles ? "-profiles/" : "", profiles ? profiles : "") <
            0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int start(const char *workspace, struct trust **ret, int *ret_dir, struct hutch_error *err) {
        _cleanup_(trust_freep) struct trust *t = calloc(1, sizeof(*t));
        _cleanup_(closep) int dir = -1;
        char real[PATH_MAX];

        if (!t)
                return error_oom(err);
        if (!realpath(workspace, real) || (dir = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "%s: %s", workspace, errno_text(errno));
        t->workspace = strdup(real);
        if (!t->workspace)
                return error_oom(err);
        *ret_dir = take_fd(&dir);
        *ret = take_ptr(t);
        return 0;
}

static int finish(struct trust *t, struct hutch_error *err) {
        int r = read_record(t);

        if (r < 0)
                return r == -ENOMEM ? error_oom(err)
                                    : error_set(err, HUTCH_E_IO, r, "%s: %s", t->record, errno_text(-r));
        return 0;
}

int trust_open(const char *state, const char *workspace, struct trust **ret, struct hutch_error *err) {
        _cleanup_(trust_freep) struct trust *t = NULL;
        _cleanup_(closep) int dir = -1;
        int r = start(workspace, &t, &dir, err);

        if (!t)
                return r;
        if (name_record(state, t->workspace, NULL, &t->record) < 0)
                return error_oom(err);
        for (size_t i = 0; i < N_TRUST_FILES; i++) {
                r = read_one(t, t->n_files++, dir);
                if (r == -ENOMEM)
                        return error_oom(err);
                if (r < 0)
                        return error_set(err, HUTCH_E_IO, r, "%s/%s: %s", t->workspace, file_names[i], errno_text(-r));
        }
        r = finish(t, err);
        if (r < 0)
                return r;
        *ret = take_ptr(t);
        return 0;
}

int trust_open_profile(const char *state, const char *workspace, const char *name, const char *text, struct trust **ret,
                       struct hutch_error *err) {
        _cleanup_(trust_freep) struct trust *t = NULL;
        _cleanup_(closep) int dir = -1;
        int r = start(workspace, &t, &dir, err);
        struct trust_file *f;

        if (!t)
                return r;
        f = &t->files[t->n_files++];
        f->name = PROFILE;
        f->text = strdup(text);
        f->len = strlen(text);
        if (asprintf(&f->path, "profile %s", name) < 0)
                f->path = NULL;
        if (!f->text || !f->path || name_record(state, t->workspace, name, &t->record) < 0)
                return error_oom(err);
        r = finish(t, err);
        if (r < 0)
                return r;
        *ret = take_ptr(t);
        return 0;
}

static int compare(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* `record` is the directory that holds one for each. */
static int list_profiles(const char *record, char ***ret) {
        _cleanup_(strv_freep) char **names = NULL;
        DIR *dir = opendir(record);
        struct dirent *entry;
        int r = 0;

        while (r >= 0 && dir && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        r = strv_push(&names, entry->d_name);
        if (dir)
                closedir(dir);
        if (r < 0)
                return r;
        if (names)
                qsort(names, strv_length(names), sizeof(*names), compare);
        *ret = take_ptr(names);
        return 0;
}

int trust_list_profiles(const char *state, const char *workspace, char ***ret) {
        _cleanup_(freep) char *record = NULL;
        int r = name_record(state, workspace, "", &record);

        return r < 0 || !record ? r : list_profiles(record, ret);
}

static bool is_accepted(const struct trust_file *f) {
        if (!f->text || !f->accepted)
                return !f->text && !f->accepted && !f->refused;
        return f->len == f->accepted_len && memcmp(f->text, f->accepted, f->len) == 0;
}

enum trust_state trust_state(const struct trust *t) {
        bool exists = false;

        for (size_t i = 0; i < t->n_files; i++)
                exists |= t->files[i].text || t->files[i].refused;
        if (!t->recorded)
                return exists ? TRUST_NEW : TRUST_NOTHING;
        for (size_t i = 0; i < t->n_files; i++)
                if (!is_accepted(&t->files[i]))
                        return TRUST_CHANGED;
        return TRUST_GIVEN;
}

/* ---- the record ---- */

static int make_directories(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *at = copy + 1; *at; at++)
                if (*at == '/') {
                        *at = 0;
                        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
                                return -errno;
                        *at = '/';
                }
        return mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int write_file(int dir, const char *name, const char *text, size_t len) {
        _cleanup_(closep) int fd = -1;
        int r;

        if (!text)
                return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
        if (unlinkat(dir, ".new", 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(dir, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, len);
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        return r >= 0 && renameat(dir, ".new", dir, name) < 0 ? -errno : r;
}

/* The name of the workspace makes the record count: it goes first and comes back last. */
static int write_record(const struct trust *t) {
        _cleanup_(closep) int dir = -1;
        int r;

        r = make_directories(t->record);
        if (r < 0)
                return r;
        dir = open_record(t);
        if (dir < 0)
                return -EPERM;
        r = write_file(dir, "workspace", NULL, 0);
        for (size_t i = 0; r >= 0 && i < t->n_files; i++)
                r = write_file(dir, t->files[i].name, t->files[i].text, t->files[i].len);
        return r < 0 ? r : write_file(dir, "workspace", t->workspace, strlen(t->workspace));
}

int trust_accept(const struct trust *t, struct hutch_error *err) {
        int r;

        if (!t->record)
                return error_set(err, HUTCH_E_IO, ENOENT, "no place to record trust: set HOME or XDG_STATE_HOME");
        for (size_t i = 0; i < t->n_files; i++)
                if (t->files[i].refused)
                        return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM, "%s cannot be trusted: %s",
                                         t->files[i].path, t->files[i].refused);
        r = write_record(t);
        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot record trust in %s: %s", t->record, errno_text(-r)) : 0;
}

static int forget_record(const struct trust *t, struct hutch_error *err) {
        _cleanup_(closep) int dir = open_record(t);

        if (dir < 0)
                return 0;
        if (unlinkat(dir, "workspace", 0) < 0 && errno != ENOENT)
                return error_set(err, HUTCH_E_IO, errno, "cannot remove %s: %s", t->record, errno_text(errno));
        for (size_t i = 0; i < t->n_files; i++)
                unlinkat(dir, t->files[i].name, 0);
        unlinkat(AT_FDCWD, t->record, AT_REMOVEDIR);
        return 0;
}

static int forget_profile(const char *record, const char *name, struct hutch_error *err) {
        struct trust t = {.n_files = 1, .files = {{.name = PROFILE}}};
        int r;

        if (asprintf(&t.record, "%s/%s", record, name) < 0)
                return error_oom(err);
        r = forget_record(&t, err);
        free(t.record);
        return r;
}

/* A workspace is forgotten with its profiles. */
int trust_forget(const struct trust *t, struct hutch_error *err) {
        _cleanup_(strv_freep) char **names = NULL;
        _cleanup_(freep) char *record = NULL;
        int r = forget_record(t, err);

        if (r < 0 || !t->record || t->n_files == 1)
                return r;
        if (asprintf(&record, "%s-profiles", t->record) < 0 || list_profiles(record, &names) < 0)
                return error_oom(err);
        for (char **name = names; r >= 0 && name && *name; name++)
                r = forget_profile(record, *name, err);
        unlinkat(AT_FDCWD, record, AT_REMOVEDIR);
        return r;
}
