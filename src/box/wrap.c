/* Commands that another program starts. The policy and the command are written to a request file in hutch's state
 * directory, which no box can reach, and the caller gets `hutch run --request FILE` to start in place of the command. A
 * file rather than a descriptor, because callers close those; only its owner can read it, and the run that reads it
 * removes it first. One that was never read is removed with the handle, or by a later wrap after a day. */
#include "wrap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../base/wire.h"
#include "../host/beside.h"
#include "box.h"

#define SUFFIX ".request"
#define MOST ((size_t) 16 << 20)
#define KEPT_S (24 * 60 * 60)

extern char **environ;

static int requests_dir(char **ret, struct hutch_error *err) {
        _cleanup_(freep) char *boxes = NULL, *state = NULL, *dir = NULL;
        int r = layer_root(environ, &boxes, err);

        if (r < 0)
                return r;
        if (path_dirname(boxes, &state) < 0 || asprintf(&dir, "%s/requests", state) < 0 || !dir)
                return error_oom(err);
        r = layer_make_folders(dir);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot make %s: %s", dir, errno_text(-r));
        *ret = take_ptr(dir);
        return 0;
}

static void sweep(const char *dir) {
        DIR *d = opendir(dir);
        time_t now = time(NULL);

        for (const struct dirent *e; d && (e = readdir(d));) {
                size_t n = strlen(e->d_name), suffix = strlen(SUFFIX);
                struct stat st;

                if (n > suffix && streq(e->d_name + n - suffix, SUFFIX) &&
                    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime < now - KEPT_S)
                        unlinkat(dirfd(d), e->d_name, 0);
        }
        if (d)
                closedir(d);
}

static int write_request(const struct hutch_policy *policy, const char *const *argv, char **ret_file,
                         struct hutch_error *err) {
        _cleanup_(freep) char *dir = NULL, *file = NULL;
        _cleanup_(closep) int fd = -1;
        struct buf b = {0};
        int r = requests_dir(&dir, err);

        if (r < 0 || !dir)
                return r;
        sweep(dir);
        r = policy_encode(policy, &b);
        wire_put_strv(&b, (char *const *) argv);
        if (r < 0 || b.oom || asprintf(&file, "%s/XXXXXX" SUFFIX, dir) < 0) {
                buf_done(&b);
                return error_oom(err);
        }
        fd = mkostemps(file, (int) strlen(SUFFIX), O_CLOEXEC);
        r = fd < 0 ? -errno : write_all(fd, b.data, b.len);
        buf_done(&b);
        if (r < 0) {
                if (fd >= 0)
                        unlink(file);
                return error_set(err, HUTCH_E_IO, r, "cannot write %s: %s", file, errno_text(-r));
        }
        *ret_file = take_ptr(file);
        return 0;
}

static bool is_wrapped(const char *const *argv) {
        const char *slash = strrchr(argv[0], '/');

        return streq(slash ? slash + 1 : argv[0], "hutch") && argv[1] && streq(argv[1], "run") && argv[2] &&
               streq(argv[2], "--request");
}

static int rewrite(const struct hutch_policy *policy, const char *const *argv, struct wrapped *w,
                   struct hutch_error *err) {
        char program[PATH_MAX];
        int r;

        if (host_find_beside("hutch", program) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "the program hutch is not installed beside libhutch");
        r = write_request(policy, argv, &w->file, err);
        if (r < 0)
                return r;
        if (strv_push(&w->argv, program) < 0 || strv_push(&w->argv, "run") < 0 ||
            strv_push(&w->argv, "--request") < 0 || strv_push(&w->argv, w->file) < 0)
                return error_oom(err);
        return 0;
}

int box_wrap(const struct hutch_policy *policy, const char *const *argv, struct wrapped **ret,
             struct hutch_error *err) {
        const struct hutch_request request = {.struct_size = sizeof(request), .argv = argv};
        _cleanup_(wrapped_freep) struct wrapped *w = calloc(1, sizeof(*w));
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct host_facts facts;
        int r;

        if (!w)
                return error_oom(err);
        if (is_wrapped(argv))
                return error_set(err, HUTCH_E_USAGE, EALREADY, "the command is wrapped already");
        r = host_facts_read(&facts, err);
        if (r < 0)
                return r;
        r = make_plan(policy, &request, &facts, NULL, &plan, err);
        if (r < 0)
                return r;
        w->backend = strdup(plan->backend);
        if (!w->backend)
                return error_oom(err);
        if (streq(plan->backend, "none"))
                r = strv_copy((char *const *) argv, &w->argv) < 0 ? error_oom(err) : 0;
        else
                r = rewrite(policy, argv, w, err);
        if (r < 0)
                return r;
        *ret = take_ptr(w);
        return 0;
}

void wrapped_free(struct wrapped *w) {
        if (!w)
                return;
        if (w->file)
                unlink(w->file);
        strv_free(w->argv);
        free(w->file);
        free(w->backend);
        free(w);
}

void wrapped_freep(struct wrapped **w) {
        wrapped_free(*w);
}

/* The caller's directory is kept where the box shows it at the same path. */
static int keep_directory(struct hutch_policy *policy, struct hutch_error *err) {
        char cwd[PATH_MAX], dir[PATH_MAX];
        bool shown;

        if (policy_is_set(policy, KEY_CD) || policy_is_set(policy, KEY_AT) || !getcwd(cwd, sizeof(cwd)))
                return 0;
        shown = policy_workspace(policy) != HUTCH_WORKSPACE_NONE && realpath(policy_dir(policy), dir) &&
                path_is_beneath(cwd, dir);
        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct path_rule *rule = &policy->paths[i];

                if (rule->access <= HUTCH_COW && !rule->dest && realpath(rule->path, dir) && path_is_beneath(cwd, dir))
                        shown = true;
        }
        return shown ? policy_set(policy, KEY_CD, cwd, "the caller's directory", err) : 0;
}

int box_open_request(const char *file, struct hutch_policy **ret, char ***ret_argv, struct hutch_error *err) {
        _cleanup_(policy_freep) struct hutch_policy *policy = NULL;
        _cleanup_(closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
        _cleanup_(freep) char *text = NULL;
        _cleanup_(strv_freep) char **argv = NULL;
        struct wire_reader reader = {0};
        struct stat st;
        int r;

        if (fd < 0)
                return error_set(err, errno == ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, errno, "%s: %s", file,
                                 errno == ENOENT ? "no such request (each can be run once)" : errno_text(errno));
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "%s: not a request of this user (a regular file with mode 0600)", file);
        if (unlink(file) < 0)
                return error_set(err, HUTCH_E_IO, errno, "cannot remove %s: %s", file, errno_text(errno));
        r = read_whole_fd(fd, MOST, &text, &reader.left);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "%s: %s", file, errno_text(-r));
        reader.data = (const uint8_t *) text;
        r = policy_decode(&reader, &policy);
        if (r >= 0)
                argv = wire_get_strv(&reader);
        if (r < 0 || reader.failed || reader.left > 0 || !argv || !argv[0])
                return error_set(err, HUTCH_E_USAGE, EBADMSG, "%s: not a request that this version of hutch wrote",
                                 file);
        r = keep_directory(policy, err);
        if (r < 0)
                return r;
        *ret = take_ptr(policy);
        *ret_argv = take_ptr(argv);
        return 0;
}
