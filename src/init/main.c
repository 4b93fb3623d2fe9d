/* hutch-init: init as a program, for boxes whose walls another program builds (bubblewrap, systemd, a container
 * engine).
 *
 * usage: hutch-init fd          the control socket is descriptor 3
 *        hutch-init socket DIR  it connects to DIR/socket and proves itself by what is in DIR/token
 *        hutch-init become DIR PROGRAM ARGUMENT…   it connects in the same way, gets the descriptors that the program
 *                               passes on to init, and becomes the program
 *
 * Otherwise it is the same init as after a fork, except that it builds nothing and checks everything. Its arguments and
 * environment hold nothing secret: the plan, with the command and its variables, comes by the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "../backend/backend.h"
#include "../base/io.h"
#include "handover.h"

static int read_token(const char *dir, uint8_t token[TOKEN_SIZE]) {
        char path[108];
        _cleanup_(closep) int fd = -1;

        snprintf(path, sizeof(path), "%s/" HANDOVER_TOKEN, dir);
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0 && read(fd, token, TOKEN_SIZE) == TOKEN_SIZE ? 0 : -EACCES;
}

static int connect_to(const char *dir) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct init_hello hello = {.magic = HANDOVER_MAGIC};
        int r;

        if (fd < 0 || (size_t) snprintf(address.sun_path, sizeof(address.sun_path), "%s/" HANDOVER_SOCKET, dir) >=
                              sizeof(address.sun_path))
                return -ENAMETOOLONG;
        r = read_token(dir, hello.token);
        if (r < 0)
                return r;
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        r = message_send(fd, &hello, sizeof(hello), NULL, 0);
        return r < 0 ? r : take_fd(&fd);
}

static int read_plan(int fd, struct plan **ret) {
        struct stat st;
        void *data;
        int r;

        if (fstat(fd, &st) < 0 || st.st_size <= 0)
                return -EBADMSG;
        data = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
                return -errno;
        r = plan_decode(data, (size_t) st.st_size, ret);
        munmap(data, (size_t) st.st_size);
        return r;
}

static int take_streams(const struct handover *record, int fds[HANDOVER_FDS], struct init_input *in) {
        size_t next = 2;

        for (int i = 0; i < 3; i++) {
                in->streams[i] = -1;
                if (record->streams[i] == STREAM_IS_TERMINAL)
                        in->streams[i] = STREAM_TERMINAL;
                else if (record->streams[i] == STREAM_IS_PASSED && fds[next] >= 0)
                        in->streams[i] = fds[next++];
                else if (record->streams[i] == STREAM_IS_PASSED)
                        return -EBADMSG;
        }
        return 0;
}

/* Descriptors 0 to 2 are the program's that started init; none of what comes may be one of them. */
static int keep_low_descriptors(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd < 3);
        closep(&fd);
        return 0;
}

/* Returns if it cannot. Nothing that the caller left open goes further. */
static void become(const char *dir, char **argv) {
        int control = connect_to(dir), away = LAUNCH_FD_FIRST + LAUNCH_FDS, fds[1 + LAUNCH_FDS], n = 0, fd;
        uint8_t more;

        errno = control < 0 ? -control : EBADMSG;
        if (control < 0)
                return;
        do {
                if (message_receive(control, &more, 1, &fd, 1, 0) != 1 || n == ARRAY_SIZE(fds))
                        return;
                fds[n] = fcntl(fd, F_DUPFD_CLOEXEC, away);
                if (fds[n++] < 0)
                        return;
        } while (more > 0);
        control = fcntl(control, F_DUPFD_CLOEXEC, away);
        syscall(SYS_close_range, 3, away - 1, 0);
        if (control < 0 || dup2(control, HANDOVER_CONTROL) < 0 || dup2(fds[0], HANDOVER_PROGRAM) < 0)
                return;
        for (int i = 1; i < n; i++)
                if (dup2(fds[i], LAUNCH_FD_FIRST + i - 1) < 0)
                        return;
        syscall(SYS_close_range, away, ~0u, 0);
        execv(argv[0], argv);
}

int main(int argc, char **argv) {
        static struct handover record;
        int fds[HANDOVER_FDS], control = HANDOVER_CONTROL;
        struct plan *plan = NULL;
        struct init_input in;
        ssize_t n;

        keep_low_descriptors();
        prctl(PR_SET_DUMPABLE, 0); /* until the plan is here there is nothing to protect, and from then on it is */
        if (argc > 3 && streq(argv[1], "become")) {
                become(argv[2], argv + 3);
                fprintf(stderr, "hutch-init: cannot become %s: %s\n", argv[3], errno_text(errno));
                return 125;
        }
        if (argc == 3 && streq(argv[1], "socket"))
                control = connect_to(argv[2]);
        else if (argc != 2 || !streq(argv[1], "fd")) {
                fprintf(stderr, "hutch-init: started by hutch only\n");
                return 125;
        }
        if (control < 0) {
                fprintf(stderr, "hutch-init: cannot reach hutch: %s\n", errno_text(-control));
                return 125;
        }
        fcntl(control, F_SETFD, FD_CLOEXEC);
        n = message_receive(control, &record, sizeof(record), fds, HANDOVER_FDS, 0);
        if (n != sizeof(record) || record.magic != HANDOVER_MAGIC || record.size != sizeof(record) ||
            read_plan(fds[0], &plan) < 0 || !plan) {
                fprintf(stderr, "hutch-init: hutch and hutch-init are of different builds\n");
                return 125;
        }
        close(fds[0]);
        in = (struct init_input){.plan = plan,
                                 .facts = &record.facts,
                                 .answers = -1,
                                 .modes = record.has_terminal ? &record.modes : NULL,
                                 .size = record.has_terminal ? &record.window : NULL,
                                 .foreground = record.foreground,
                                 .control = control,
                                 .warden = fds[1],
                                 .outside = record.namespaces};
        if (!(plan->traits & TRAIT_DELEGATED) || fds[1] < 0 || take_streams(&record, fds, &in) < 0) {
                fprintf(stderr, "hutch-init: the plan is not one for a box that another program builds\n");
                return 125;
        }
        init_run(&in);
}
