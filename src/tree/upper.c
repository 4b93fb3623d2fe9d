/* The upper; see upper.h. */
#include "upper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/xattr.h>

#include "tree.h"

struct upper_loan {
        char *path;
        mode_t mode;
        dev_t dev;
        ino_t ino;
};

void upper_done(struct upper *upper) {
        /* The innermost first: an outer one whose mode is back may not let us in any more. */
        while (upper->n_loans > 0) {
                struct upper_loan *loan = &upper->loans[--upper->n_loans];
                _cleanup_(closep) int fd = tree_open(upper->root, loan->path, O_RDONLY | O_DIRECTORY);
                struct stat st;

                if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == loan->dev && st.st_ino == loan->ino)
                        upper_end_loan(fd, loan->mode);
                free(loan->path);
        }
        free(upper->loans);
        upper->loans = NULL;
}

static int note_loan(struct upper *upper, const char *path, const struct stat *st, mode_t mode) {
        struct upper_loan *grown;
        char *copy;

        for (size_t i = 0; i < upper->n_loans; i++)
                if (upper->loans[i].ino == st->st_ino && upper->loans[i].dev == st->st_dev)
                        return 0;
        grown = reallocarray(upper->loans, upper->n_loans + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        upper->loans = grown;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        upper->loans[upper->n_loans++] =
                (struct upper_loan){.path = copy, .mode = mode, .dev = st->st_dev, .ino = st->st_ino};
        return 0;
}

/* The mode that was saved when access was widened, by us or by a killed process. */
static bool find_loan(int fd, mode_t *ret) {
        char text[16];
        ssize_t n = fgetxattr(fd, UPPER_LOAN, text, sizeof(text) - 1);
        unsigned long mode;
        char *end;

        if (n <= 0)
                return false;
        text[n] = 0;
        mode = strtoul(text, &end, 8);
        if (*end || mode > 07777)
                return false;
        *ret = (mode_t) mode;
        return true;
}

static int lend(struct upper *upper, const char *path, int path_fd, const struct stat *st, mode_t need) {
        _cleanup_(closep) int fd = -1;
        char text[16];
        mode_t mode;
        int r = tree_chmod(path_fd, st->st_mode | need | 0700);

        if (r < 0)
                return -EACCES;
        fd = tree_open(path_fd, "", O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        if (find_loan(fd, &mode))
                return note_loan(upper, path, st, mode);
        snprintf(text, sizeof(text), "%o", st->st_mode & 07777u);
        (void) fsetxattr(fd, UPPER_LOAN, text, strlen(text), 0);
        return note_loan(upper, path, st, st->st_mode);
}

static int open_one(struct upper *upper, const char *path, mode_t need, struct stat *ret_st) {
        _cleanup_(closep) int path_fd = tree_open(upper->root, path, O_PATH | O_DIRECTORY), fd = -1;
        struct stat st;
        mode_t mode;
        int r;

        if (path_fd < 0)
                return path_fd;
        if (fstat(path_fd, &st) < 0)
                return -errno;
        if (geteuid() != 0 && st.st_uid == geteuid() && (st.st_mode & need) != need) {
                r = lend(upper, path, path_fd, &st, need);
                if (r < 0)
                        return r;
        }
        fd = tree_open(path_fd, "", O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        if (find_loan(fd, &mode)) {
                r = note_loan(upper, path, &st, mode);
                if (r < 0)
                        return r;
                st.st_mode = (st.st_mode & S_IFMT) | mode;
        }
        if (ret_st)
                *ret_st = st;
        return take_fd(&fd);
}

int upper_open_folder(struct upper *upper, const char *path, bool writable, struct stat *ret_st) {
        mode_t need = writable ? 0700 : 0500;
        int fd = open_one(upper, path, need, ret_st);
        char part[PATH_MAX];

        if (fd != -EACCES || !path[0])
                return fd;
        /* A directory on the way denies access: widen its mode, from the top down. */
        fd = open_one(upper, "", need, NULL);
        if (fd < 0)
                return fd;
        close(fd);
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                if ((size_t) (slash - path) >= sizeof(part))
                        return -ENAMETOOLONG;
                memcpy(part, path, (size_t) (slash - path));
                part[slash - path] = 0;
                fd = open_one(upper, part, need, NULL);
                if (fd < 0)
                        return fd;
                close(fd);
        }
        return open_one(upper, path, need, ret_st);
}

int upper_borrow(int dir, const char *name, struct stat *ret_st, bool *ret_borrowed) {
        struct upper upper = {.root = dir};
        int fd = open_one(&upper, name, 0500, ret_st);

        *ret_borrowed = upper.n_loans > 0;
        for (size_t i = 0; i < upper.n_loans; i++)
                free(upper.loans[i].path);
        if (fd >= 0 && *ret_borrowed)
                ret_st->st_mode = (ret_st->st_mode & S_IFMT) | (upper.loans[0].mode & 07777);
        free(upper.loans);
        return fd;
}

void upper_end_loan(int fd, mode_t mode) {
        (void) fremovexattr(fd, UPPER_LOAN);
        (void) fchmod(fd, mode & 07777);
}

int upper_open_file(int dir, const char *name) {
        _cleanup_(closep) int path_fd = -1, fd = tree_open_file(dir, name);
        struct stat st;

        if (fd != -EACCES)
                return take_fd(&fd);
        path_fd = tree_open(dir, name, O_PATH);
        if (path_fd < 0)
                return path_fd;
        if (fstat(path_fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || tree_chmod(path_fd, st.st_mode | 0400) < 0)
                return -EACCES;
        fd = tree_reopen(path_fd, O_RDONLY);
        (void) tree_chmod(path_fd, st.st_mode);
        return take_fd(&fd);
}
