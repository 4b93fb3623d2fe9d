/* See apart.h. */
#include "apart.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../review/restrict.h"

#define LISTS 3
#define NO_LIST SIZE_MAX
#define MOST ((size_t) 1 << 30)

/* What is in the file, before the lists: texts, each ended by a NUL. */
struct head {
        uint64_t magic; /* written last: the rest is whole */
        int r;
        unsigned char any;
        size_t n_reviewable, n[LISTS];
        struct hutch_error err;
};

#define MAGIC 0x6c69737465640001u

static char ***list_of(struct tracked *t, size_t i) {
        char ***const lists[LISTS] = {&t->created, &t->modified, &t->deleted};

        return lists[i];
}

/* ---- the other process ---- */

static int confine(const hutch_box *box, struct hutch_error *err) {
        _cleanup_(freep) char *boxes = NULL, *state = NULL;

        if (path_dirname(box->layers->path, &boxes) < 0 || path_dirname(boxes, &state) < 0)
                return error_oom(err);
        return review_restrict((char *const[]){state, NULL}, err);
}

static int put_lists(int fd, struct listed *found, struct head *head) {
        _cleanup_(buf_done) struct buf text = {0};

        head->any = found->any;
        head->n_reviewable = found->tracked.n_reviewable;
        for (size_t i = 0; i < LISTS; i++) {
                char **list = *list_of(&found->tracked, i);

                head->n[i] = list ? strv_length(list) : NO_LIST;
                for (; list && *list; list++)
                        buf_put(&text, *list, strlen(*list) + 1);
        }
        if (text.oom)
                return -ENOMEM;
        return pwrite(fd, head, sizeof(*head), 0) != sizeof(*head) || lseek(fd, sizeof(*head), SEEK_SET) < 0
                       ? -EIO
                       : write_all(fd, text.data, text.len);
}

/* Never returns. What the terminal sends to the foreground is the other process's to handle. */
static void list_and_exit(const hutch_box *box, const struct plan *plan, pid_t parent, int fd) {
        static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE};
        struct listed found = {.any = true};
        struct head head = {0};

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
                (void) signal(ignored[i], SIG_IGN);
        head.r = confine(box, &head.err);
        if (head.r >= 0)
                head.r = layers_list(box, plan, &found, &head.err);
        if (put_lists(fd, &found, &head) < 0)
                _exit(1);
        head.magic = MAGIC;
        _exit(pwrite(fd, &head, sizeof(head), 0) == sizeof(head) ? 0 : 1);
}

/* ---- this one ---- */

static int take_list(const char **at, const char *end, size_t n, char ***ret) {
        if (n > (size_t) (end - *at))
                return -EBADMSG;
        *ret = calloc(n + 1, sizeof(char *));
        if (!*ret)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                size_t len = strnlen(*at, (size_t) (end - *at));

                if (*at + len >= end)
                        return -EBADMSG;
                (*ret)[i] = strdup(*at);
                if (!(*ret)[i])
                        return -ENOMEM;
                *at += len + 1;
        }
        return 0;
}

static int read_lists(int fd, struct listed *ret, struct hutch_error *err) {
        _cleanup_(freep) char *data = NULL;
        const char *at, *end;
        struct head head;
        size_t len;
        int r;

        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        r = read_whole_fd(fd, MOST, &data, &len);
        if (r < 0)
                return r;
        if (len < sizeof(head))
                return -EBADMSG;
        memcpy(&head, data, sizeof(head));
        if (head.magic != MAGIC)
                return -EBADMSG;
        at = data + sizeof(head);
        end = data + len;
        for (size_t i = 0; r >= 0 && i < LISTS; i++)
                if (head.n[i] != NO_LIST)
                        r = take_list(&at, end, head.n[i], list_of(&ret->tracked, i));
        if (r < 0)
                return r;
        ret->any = head.any;
        ret->tracked.n_reviewable = head.n_reviewable;
        if (head.r >= 0)
                return 0;
        head.err.message[sizeof(head.err.message) - 1] = 0;
        return error_set(err, head.err.code != HUTCH_OK ? head.err.code : HUTCH_E_IO, head.r, "%s", head.err.message);
}

int layers_list_apart(const hutch_box *box, const struct plan *plan, struct listed *ret, struct hutch_error *err) {
        _cleanup_(closep) int fd = memfd_create("hutch-changes", MFD_CLOEXEC);
        pid_t parent = getpid(), pid = fd < 0 ? -1 : fork();
        int r;

        if (pid == 0)
                list_and_exit(box, plan, parent, fd);
        if (pid < 0)
                return error_set(err, HUTCH_E_IO, errno, "cannot list what the run changed: %s", errno_text(errno));
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        r = read_lists(fd, ret, err);
        if (r == -EBADMSG || r == -ENOMEM)
                return error_set(err, HUTCH_E_IO, r, "cannot list what the run changed: %s",
                                 r == -ENOMEM ? errno_text(ENOMEM) : "the process that does it was killed");
        return r;
}
