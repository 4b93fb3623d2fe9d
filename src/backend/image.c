/* See image.h. The engine's program does the work; its output goes to the caller, or is dropped. A root file system
 * needs no registry: it is imported as it is. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../base/path.h"
#include "backend.h"
#include "sandbox_dockerfile.h"

extern char **environ;

static int start(const char *const *argv, int in, int out, int complaints, pid_t *ret) {
        posix_spawn_file_actions_t actions;
        int r = posix_spawn_file_actions_init(&actions);

        if (r != 0)
                return -r;
        r = in >= 0 ? posix_spawn_file_actions_adddup2(&actions, in, 0)
                    : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        for (int fd = 1; r == 0 && fd < 3; fd++) {
                int to = fd == 1 ? out : complaints;

                r = to >= 0 ? posix_spawn_file_actions_adddup2(&actions, to, fd)
                            : posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
        }
        if (r == 0)
                r = posix_spawnp(ret, argv[0], &actions, NULL, (char *const *) argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

/* 0, or -errno; a program that failed is -ECHILD. */
static int finish(pid_t pid) {
        int status = 0;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

static int run(const char *const *argv, int in, int out) {
        pid_t pid = -1;
        int r = start(argv, in, out, out, &pid);

        return r < 0 ? r : finish(pid);
}

static int import_directory(const char *program, const struct image_build *what) {
        const char *const pack[] = {"tar",       "-C",       what->rootfs, "--numeric-owner",
                                    "--exclude", "./proc/*", "--exclude",  "./sys/*",
                                    "-c",        ".",        NULL},
                          *const import[] = {program, "import", "-", what->image, NULL};
        _cleanup_(closep) int from = -1, to = -1;
        pid_t packer = -1, importer = -1;
        int ends[2], r, packed;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        from = ends[0];
        to = ends[1];
        r = start(import, from, what->output, what->output, &importer);
        if (r < 0)
                return r;
        closep(&from);
        r = start(pack, -1, to, what->output, &packer);
        closep(&to);
        packed = r < 0 ? r : finish(packer);
        r = finish(importer);
        return packed < 0 ? packed : r;
}

/* A Dockerfile by stdin has no context: no file of the host is sent along. */
static int build_recipe(const char *program, const struct image_build *what) {
        const char *const argv[] = {program, "build", "-t", what->image, "-", NULL};
        _cleanup_(closep) int fd = memfd_create("hutch-recipe", MFD_CLOEXEC);
        int r;

        if (fd < 0)
                return -errno;
        r = write_all(fd, sandbox_dockerfile, sizeof(sandbox_dockerfile) - 1);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        return r < 0 ? r : run(argv, fd, what->output);
}

static int build_file(const char *program, const struct image_build *what) {
        _cleanup_(freep) char *file = realpath(what->file, NULL), *dir = NULL;

        if (!file)
                return -errno;
        if (path_dirname(file, &dir) < 0)
                return -ENOMEM;
        return run((const char *const[]){program, "build", "-t", what->image, "-f", file, dir, NULL}, -1, what->output);
}

int image_build(const struct image_build *what, struct hutch_error *err) {
        char program[PATH_MAX];
        struct stat st;
        int r;

        if (what->file && what->rootfs)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "a Dockerfile and a root file system exclude each other");
        if (what->image[0] == '-' || !what->image[0])
                return error_set(err, HUTCH_E_USAGE, EINVAL, "'%s' is not the name of an image", what->image);
        r = container_find_engine(what->engine, NULL, program, err);
        if (r < 0)
                return r;
        if ((what->file && access(what->file, R_OK) < 0) || (what->rootfs && stat(what->rootfs, &st) < 0))
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "%s: %s", what->file ? what->file : what->rootfs,
                                 errno_text(errno));
        if (what->rootfs && S_ISDIR(st.st_mode))
                r = import_directory(program, what);
        else if (what->rootfs)
                r = run((const char *const[]){program, "import", what->rootfs, what->image, NULL}, -1, what->output);
        else
                r = what->file ? build_file(program, what) : build_recipe(program, what);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot build the image %s: %s", what->image,
                                 r == -ECHILD ? "the engine failed, its output has the reason" : errno_text(-r));
        return 0;
}

int image_ensure(const char *engine, const char *image, struct hutch_error *err) {
        const struct image_build what = {.engine = engine, .image = image, .output = -1};
        char program[PATH_MAX];
        int r = container_find_engine(engine, NULL, program, err);

        if (r < 0)
                return r;
        if (run((const char *const[]){program, "image", "inspect", image, NULL}, -1, -1) >= 0)
                return 0;
        return image_build(&what, err);
}
