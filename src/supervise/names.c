/* The host's resolver configuration while a box with an allowlist runs: /etc/resolv.conf and /etc/hosts. The relay
 * cannot open files, so the warden watches them, and sends it their content when they change.
 *
 * Programs replace these files or write into them, and resolv.conf often is a link into /run (systemd-resolved,
 * NetworkManager): so the directories are watched as well as the files, and the watches are set again each time. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>

#include "../base/io.h"
#include "../base/path.h"
#include "network.h"

#define SETTLE_MS 100 /* a program that writes such a file often writes more than once */

struct names {
        int fd;
        struct watch *watch;
        struct timer settle;
};

static const char *const files[] = {"/etc/resolv.conf", "/etc/hosts"};

static void watch_files(int fd) {
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _cleanup_(freep) char *dir = NULL;
                char real[PATH_MAX];

                (void) inotify_add_watch(fd, files[i], IN_CLOSE_WRITE | IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF);
                if (!realpath(files[i], real) || path_dirname(real, &dir) < 0)
                        continue;
                (void) inotify_add_watch(fd, dir, IN_CREATE | IN_MOVED_TO | IN_DELETE);
        }
        (void) inotify_add_watch(fd, "/etc", IN_CREATE | IN_MOVED_TO | IN_DELETE); /* where a link may be replaced */
}

static bool is_ours(const char *name) {
        return streq(name, "hosts") || strstr(name, "resolv");
}

/* Both texts in one memfd, each with its NUL. */
static int put_texts(int fd, struct relay_order *order) {
        static const size_t most[] = {RESOLV_CONF_MOST, HOSTS_MOST};
        uint32_t *const lens[] = {&order->resolv_len, &order->hosts_len};

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _cleanup_(freep) char *text = NULL;
                int r = read_whole_file(AT_FDCWD, files[i], most[i], &text, NULL);

                if (r < 0 && r != -ENOENT)
                        return r;
                *lens[i] = text ? (uint32_t) strlen(text) : 0;
                r = write_all(fd, text ? text : "", *lens[i] + 1);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void on_settled(void *data) {
        struct run *run = data;
        _cleanup_(closep) int fd = memfd_create("hutch-names", MFD_CLOEXEC);
        struct relay_order order = {.kind = RELAY_NAMES};

        watch_files(run->relay->names->fd);
        if (fd < 0 || put_texts(fd, &order) < 0)
                return; /* what was known stays */
        (void) message_send(run->relay->control, &order, sizeof(order), &fd, 1);
}

static void on_change(void *data, uint32_t events _unused_) {
        struct run *run = data;
        struct names *names = run->relay->names;
        _Alignas(struct inotify_event) char buffer[4096];
        ssize_t n = read(names->fd, buffer, sizeof(buffer));
        bool changed = false;

        for (ssize_t at = 0; n > 0 && at < n;) {
                const struct inotify_event *e = (const struct inotify_event *) (buffer + at);

                changed = changed || (!(e->mask & IN_IGNORED) && (e->len == 0 || is_ours(e->name)));
                at += (ssize_t) (sizeof(*e) + e->len);
        }
        if (changed)
                timer_set(run->loop, &names->settle, SETTLE_MS);
}

void names_watch(struct run *run) {
        struct names *names = calloc(1, sizeof(*names));

        if (!names)
                return;
        names->settle = (struct timer){.fire = on_settled, .data = run};
        names->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (names->fd < 0 || loop_watch(run->loop, names->fd, EPOLLIN, on_change, run, &names->watch) < 0) {
                closep(&names->fd); /* the set-up stays as it was when the box started */
                free(names);
                return;
        }
        watch_files(names->fd);
        run->relay->names = names;
}

void names_done(struct run *run) {
        struct names *names = take_ptr(run->relay->names);

        if (!names)
                return;
        timer_clear(run->loop, &names->settle);
        watch_remove(&names->watch);
        close(names->fd);
        free(names);
}
