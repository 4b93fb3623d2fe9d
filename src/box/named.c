/* See named.h. Sockets are reached through an fd of their directory, so that a long path is no matter. */
#include "named.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"

extern char **environ;

#define YOUNG_S 10 /* so long a directory may be without a listener: it is being made */

void named_done(struct named *n) {
        closep(&n->fd);
        free(n->path);
        free(n->workspace);
        free(n->box_id);
        *n = (struct named){.fd = -1};
}

static int sessions_root(char **ret, struct hutch_error *err) {
        _cleanup_(freep) char *boxes = NULL, *state = NULL;
        int r = layer_root(environ, &boxes, err);

        if (r < 0)
                return r;
        if (path_dirname(boxes, &state) < 0 || asprintf(ret, "%s/sessions", state) < 0)
                return error_oom(err);
        return 0;
}

int named_check(const char *name, struct hutch_error *err) {
        if (name[0] && strlen(name) <= 64 && name[0] != '.' && name[0] != '-' &&
            !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
                return 0;
        return error_set(err, HUTCH_E_USAGE, EINVAL,
                         "'%s' cannot name a session: letters, digits, '.', '_' and '-' can, up to 64 of them", name);
}

static int socket_address(int dir, const char *name, struct sockaddr_un *ret) {
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        return snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir, name);
}

static int connect_to(int dir, int *ret) {
        _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct sockaddr_un address;

        socket_address(dir, "socket", &address);
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        *ret = take_fd(&fd);
        return 0;
}

/* Shows the warden that the directory is ours to write, and that we are in none of the namespaces of a box. */
static int greet(int dir, int socket) {
        struct warden_session_request hello = {.request = WARDEN_HELLO};
        _cleanup_(closep) int meta = openat(dir, "meta", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(closep) int user = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        _cleanup_(closep) int pid = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
        int fds[WARDEN_PROOFS] = {meta};
        size_t n = 1;

        if (user >= 0)
                fds[n++] = user;
        if (pid >= 0)
                fds[n++] = pid;
        return meta < 0 ? -errno : message_send(socket, &hello, sizeof(hello), fds, n);
}

void named_remove(struct named *n) {
        static const char *const names[] = {"new", "socket", "meta", "plan"};

        for (size_t i = 0; n->fd >= 0 && i < ARRAY_SIZE(names); i++)
                unlinkat(n->fd, names[i], 0);
        if (n->path)
                rmdir(n->path);
}

/* Whether the directory belongs to a session that is no more; it is removed then. */
static bool swept(const char *path) {
        struct named n = {.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .path = strdup(path)};
        struct stat st;
        int socket = -1, r;
        bool gone = false;

        if (n.fd >= 0) {
                r = connect_to(n.fd, &socket);
                closep(&socket);
                gone = r == -ECONNREFUSED ||
                       (r == -ENOENT && fstat(n.fd, &st) == 0 && st.st_mtime + YOUNG_S < time(NULL));
                if (gone)
                        named_remove(&n);
        }
        named_done(&n);
        return gone;
}

static int write_file(int dir, const char *name, const void *data, size_t len) {
        _cleanup_(closep) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        return fd < 0 ? -errno : write_all(fd, data, len);
}

static int fill(struct named *n, const struct buf *plan, int *ret_listener) {
        _cleanup_(closep) int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        _cleanup_(freep) char *text = NULL;
        struct sockaddr_un address;
        json_t *meta = json_pack("{s:s, s:s?, s:I, s:i, s:I}", "workspace", n->workspace ? n->workspace : "", "box",
                                 n->box_id, "created", (json_int_t) n->created, "pid", n->pid, "idle_ms",
                                 (json_int_t) n->idle_timeout_ms);
        int r;

        text = meta ? json_dumps(meta, 0) : NULL;
        json_decref(meta);
        if (!text)
                return -ENOMEM;
        r = write_file(n->fd, "meta", text, strlen(text));
        if (r < 0)
                return r;
        r = write_file(n->fd, "plan", plan->data, plan->len);
        if (r < 0)
                return r;
        /* Under its name only once it listens: one that refuses is taken for what a dead session left. */
        socket_address(n->fd, "new", &address);
        if (listener < 0 || bind(listener, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(listener, 64) < 0 || renameat(n->fd, "new", n->fd, "socket") < 0)
                return -errno;
        *ret_listener = take_fd(&listener);
        return 0;
}

/* Where the session of that name is, or would be. */
static int find_place(const char *name, char **ret_root, char **ret_path, struct hutch_error *err) {
        int r;

        r = named_check(name, err);
        if (r < 0)
                return r;
        r = sessions_root(ret_root, err);
        if (r < 0)
                return r;
        return asprintf(ret_path, "%s/%s", *ret_root, name) < 0 ? error_oom(err) : 0;
}

int named_make(const char *name, const struct buf *plan, struct named *n, int *ret_listener, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        int r;

        r = find_place(name, &root, &n->path, err);
        if (r < 0)
                return r;
        n->created = (uint64_t) time(NULL);
        r = layer_make_folders(root);
        if (r >= 0 && mkdir(n->path, 0700) < 0) {
                r = -errno;
                if (r == -EEXIST && swept(n->path))
                        r = mkdir(n->path, 0700) < 0 ? -errno : 0;
                if (r == -EEXIST)
                        return error_set(err, HUTCH_E_USAGE, EEXIST,
                                         "session '%s' already exists (end it with 'hutch session stop %s')", name,
                                         name);
        }
        if (r >= 0) {
                n->fd = open(n->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = n->fd < 0 ? -errno : fill(n, plan, ret_listener);
                if (r < 0)
                        named_remove(n);
        }
        return r < 0 ? error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make the session's directory %s: %s", n->path,
                                 errno_text(-r))
                     : 0;
}

static int read_meta(struct named *n, struct buf *ret_plan) {
        _cleanup_(freep) char *text = NULL, *encoded = NULL;
        json_t *meta;
        size_t len;
        int r;

        r = read_whole_file(n->fd, "meta", 1 << 20, &text, NULL);
        if (r < 0)
                return r;
        meta = json_loads(text, 0, NULL);
        n->workspace = strdup(json_string_value(json_object_get(meta, "workspace")) ?: "");
        n->box_id = json_string_value(json_object_get(meta, "box"))
                            ? strdup(json_string_value(json_object_get(meta, "box")))
                            : NULL;
        n->created = (uint64_t) json_integer_value(json_object_get(meta, "created"));
        n->idle_timeout_ms = (uint64_t) json_integer_value(json_object_get(meta, "idle_ms"));
        n->pid = (int) json_integer_value(json_object_get(meta, "pid"));
        json_decref(meta);
        if (!n->workspace)
                return -ENOMEM;
        if (!ret_plan)
                return 0;
        r = read_whole_file(n->fd, "plan", 16 << 20, &encoded, &len);
        if (r >= 0)
                buf_put(ret_plan, encoded, len);
        return r < 0 ? r : ret_plan->oom ? -ENOMEM : 0;
}

int named_connect(const char *name, struct named *ret, int *ret_socket, struct buf *ret_plan, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        _cleanup_(named_done) struct named n = {.fd = -1};
        _cleanup_(closep) int socket = -1;
        int r;

        r = find_place(name, &root, &n.path, err);
        if (r < 0)
                return r;
        n.fd = open(n.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = n.fd < 0 ? -errno : connect_to(n.fd, &socket);
        if (r == -ENOENT || r == -ECONNREFUSED) {
                if (n.fd >= 0)
                        swept(n.path);
                return error_set(err, HUTCH_E_SESSION_CLOSED, -r, "no such session: '%s' (see 'hutch session list')",
                                 name);
        }
        if (r >= 0)
                r = greet(n.fd, socket);
        if (r >= 0)
                r = read_meta(&n, ret_plan);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot reach the session '%s': %s", name, errno_text(-r));
        *ret = n;
        n = (struct named){.fd = -1};
        *ret_socket = take_fd(&socket);
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

int named_list(char ***ret, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        _cleanup_(strv_freep) char **names = NULL;
        struct dirent *entry;
        DIR *dir;
        int r = sessions_root(&root, err);

        if (r < 0 || !root)
                return r;
        dir = opendir(root);
        while (dir && r >= 0 && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        r = strv_push(&names, entry->d_name);
        if (dir)
                closedir(dir);
        if (r < 0)
                return error_oom(err);
        if (names)
                qsort(names, strv_length(names), sizeof(char *), by_name);
        *ret = take_ptr(names);
        return 0;
}
