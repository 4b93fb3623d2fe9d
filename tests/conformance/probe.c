/* probe WHAT [ARG]: one small question to the kernel, for the table. Prints yes or no: did it work? The makers (tcp, abstract, shm) stand on
 * the host's side: they print what the box has to be told and stay until they are killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int loopback(int port, struct sockaddr_in *ret) {
        *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int listen_tcp(int *ret_port) {
        struct sockaddr_in address;
        socklen_t len = sizeof(address);
        int fd = loopback(0, &address);

        if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, 100) < 0 ||
            getsockname(fd, (struct sockaddr *) &address, &len) < 0)
                return -1;
        *ret_port = ntohs(address.sin_port);
        return fd;
}

static int connect_tcp(const char *port) {
        struct sockaddr_in address;
        int fd = loopback(atoi(port), &address);

        return connect(fd, (struct sockaddr *) &address, sizeof(address));
}

static int abstract(const char *name, struct sockaddr_un *ret, socklen_t *ret_len) {
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        strncpy(ret->sun_path + 1, name, sizeof(ret->sun_path) - 2);
        *ret_len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
        return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/* ---- on the host ---- */

static _Noreturn void stay(void) {
        fflush(stdout);
        for (;;)
                pause();
}

static int make_tcp(const char *arg) {
        int port = 0;

        (void) arg;
        if (listen_tcp(&port) < 0)
                return -1;
        printf("%d\n", port);
        stay();
}

static int make_abstract(const char *name) {
        struct sockaddr_un address;
        socklen_t len;
        int fd = abstract(name, &address, &len);

        if (bind(fd, (struct sockaddr *) &address, len) < 0 || listen(fd, 100) < 0)
                return -1;
        printf("%s\n", name);
        stay();
}

static int shm_id = -1;

static void remove_shm(int sig) {
        (void) sig;
        shmctl(shm_id, IPC_RMID, NULL);
        _exit(0);
}

static int make_shm(const char *key) {
        shm_id = shmget((key_t) atoi(key), 4096, IPC_CREAT | IPC_EXCL | 0600);
        if (shm_id < 0)
                return -1;
        signal(SIGTERM, remove_shm);
        printf("%s\n", key);
        stay();
}

/* ---- in the box ---- */

static int connect_abstract(const char *name) {
        struct sockaddr_un address;
        socklen_t len;
        int fd = abstract(name, &address, &len);

        return connect(fd, (struct sockaddr *) &address, len);
}

static int own_loopback(const char *arg) {
        char port[16];
        int n = 0, fd = listen_tcp(&n);

        (void) arg;
        snprintf(port, sizeof(port), "%d", n);
        return fd < 0 ? -1 : connect_tcp(port);
}

/* Out of the box: UDP needs a route only. */
static int route_out(const char *arg) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = inet_addr(arg)};
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return connect(fd, (struct sockaddr *) &address, sizeof(address));
}

static int see_shm(const char *key) {
        return shmget((key_t) atoi(key), 0, 0);
}

static int signal_pid(const char *pid) {
        return kill(atoi(pid), 0);
}

static int new_user_namespace(const char *arg) {
        (void) arg;
        return unshare(CLONE_NEWUSER);
}

static int mount_tmpfs(const char *arg) {
        (void) arg;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                errno = 0; /* it may still have the right */
        return mount("none", "/tmp", "tmpfs", 0, NULL);
}

static int add_key(const char *arg) {
        (void) arg;
        return (int) syscall(SYS_add_key, "user", "hutch-probe", "x", 1, -3 /* the process keyring */);
}

static int packet_socket(const char *arg) {
        (void) arg;
        return socket(AF_PACKET, SOCK_RAW, 0);
}

static int make_node(const char *path) {
        return mknod(path, S_IFCHR | 0600, (dev_t) (1 << 8 | 3));
}

static int trace_child(const char *arg) {
        pid_t pid = fork();
        int r, status;

        (void) arg;
        if (pid == 0)
                for (;;)
                        pause();
        r = (int) ptrace(PTRACE_SEIZE, pid, NULL, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, &status, __WALL);
        return r;
}

static int write_to(const char *path) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd;
}

static const struct {
        const char *name;
        int (*ask)(const char *arg);
} questions[] = {
        {"make-tcp", make_tcp},
        {"make-abstract", make_abstract},
        {"make-shm", make_shm},
        {"tcp", connect_tcp},
        {"abstract", connect_abstract},
        {"own-loopback", own_loopback},
        {"route", route_out},
        {"shm", see_shm},
        {"signal", signal_pid},
        {"userns", new_user_namespace},
        {"mount", mount_tmpfs},
        {"add-key", add_key},
        {"packet", packet_socket},
        {"mknod", make_node},
        {"trace", trace_child},
        {"open-for-writing", write_to},
};

int main(int argc, char **argv) {
        for (size_t i = 0; argc > 1 && i < sizeof(questions) / sizeof(questions[0]); i++)
                if (!strcmp(argv[1], questions[i].name)) {
                        puts(questions[i].ask(argc > 2 ? argv[2] : "") < 0 ? "no" : "yes");
                        return 0;
                }
        fputs("probe: no such question\n", stderr);
        return 2;
}
