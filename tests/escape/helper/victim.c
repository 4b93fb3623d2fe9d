/* A process of the host that attacks aim at: it holds a secret in a fd, in its directory, its environment, its arguments and its
 * memory, has a port, and sockets of every kind, and writes down what reaches it.
 * usage: victim DIRECTORY SECRET-ARGUMENT       DIRECTORY/secret exists; DIRECTORY/ready is written with "TCP-PORT UDP-PORT
 *                                            FENCE-PORT" when all is up; DIRECTORY/hit says which signal or connection
 *                                            arrived. Whoever is answered at the fence knows that everything that was
 *                                            sent before is written down. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void hit(const char *what) {
        int fd = open("hit", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        dprintf(fd, "%s\n", what);
        close(fd);
}

static int ip_socket(int type, int *ret_port) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(at);
        int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *) &at, len) < 0 || getsockname(fd, (struct sockaddr *) &at, &len) < 0)
                return -1;
        *ret_port = ntohs(at.sin_port);
        return type == SOCK_STREAM && listen(fd, 16) < 0 ? -1 : fd;
}

/* An abstract name when it begins with '@'. */
static int unix_socket(int type, const char *name, bool numbered) {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
        socklen_t len;

        if (numbered)
                snprintf(at.sun_path, sizeof(at.sun_path), "%s-%d", name, getpid());
        else
                snprintf(at.sun_path, sizeof(at.sun_path), "%s", name);
        len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + strlen(at.sun_path) + (at.sun_path[0] != '@'));
        if (at.sun_path[0] == '@')
                at.sun_path[0] = 0;
        else
                unlink(at.sun_path);
        if (fd < 0 || bind(fd, (struct sockaddr *) &at, len) < 0)
                return -1;
        return type == SOCK_STREAM && listen(fd, 16) < 0 ? -1 : fd;
}

/* Objects of System V and POSIX IPC, named by this process's id. */
static int make_ipc(const char *secret) {
        int shm = shmget(getpid(), 4096, IPC_CREAT | IPC_EXCL | 0666),
            msg = msgget(getpid(), IPC_CREAT | IPC_EXCL | 0666);
        struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 256};
        struct {
                long type;
                char text[32];
        } message = {1, {0}};
        char name[64], *memory = shm < 0 ? (void *) -1 : shmat(shm, NULL, 0);
        mqd_t queue;
        int fd;

        if (memory == (void *) -1 || msg < 0)
                return -1;
        strncpy(memory, secret, 4095);
        strncpy(message.text, secret, sizeof(message.text) - 1);
        for (int i = 0; i < 4; i++)
                msgsnd(msg, &message, sizeof(message.text), IPC_NOWAIT);
        snprintf(name, sizeof(name), "/hutch-victim-%d", getpid());
        umask(0);
        queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0666, &attr);
        for (int i = 0; queue != (mqd_t) -1 && i < 4; i++)
                mq_send(queue, secret, strlen(secret), 0);
        snprintf(name, sizeof(name), "/dev/shm/hutch-victim-%d", getpid());
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        umask(022);
        return queue == (mqd_t) -1 || fd < 0 || write(fd, secret, strlen(secret)) < 0 ? -1 : 0;
}

static void remove_ipc(void) {
        char name[64];

        shmctl(shmget(getpid(), 0, 0), IPC_RMID, NULL);
        msgctl(msgget(getpid(), 0), IPC_RMID, NULL);
        snprintf(name, sizeof(name), "/hutch-victim-%d", getpid());
        mq_unlink(name);
        snprintf(name, sizeof(name), "/dev/shm/hutch-victim-%d", getpid());
        unlink(name);
}

int main(int argc, char **argv) {
        struct pollfd p[8];
        const char *names[] = {"signal",      "tcp",           "udp",  "abstract stream", "abstract datagram",
                               "unix stream", "unix datagram", "fence"};
        int tcp = 0, udp = 0, fence = 0, fd;
        sigset_t all;

        if (argc < 3 || chdir(argv[1]) < 0)
                return 2;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigfillset(&all);
        sigdelset(&all, SIGSEGV);
        sigprocmask(SIG_SETMASK, &all, NULL);
        if (open("secret", O_RDWR) < 0 || make_ipc(argv[2]) < 0) /* the fd stays open, and is no CLOEXEC one */
                return 3;
        p[0].fd = signalfd(-1, &all, SFD_CLOEXEC);
        p[1].fd = ip_socket(SOCK_STREAM, &tcp);
        p[2].fd = ip_socket(SOCK_DGRAM, &udp);
        p[3].fd = unix_socket(SOCK_STREAM, "@hutch-victim", true);
        p[4].fd = unix_socket(SOCK_DGRAM, "@hutch-victim-dgram", true);
        p[5].fd = unix_socket(SOCK_STREAM, "sockets/stream", false);
        p[6].fd = unix_socket(SOCK_DGRAM, "sockets/dgram", false);
        p[7].fd = ip_socket(SOCK_STREAM, &fence); /* the last one, so that it is served after the others */
        for (int i = 0; i < 8; i++) {
                p[i].events = POLLIN;
                if (p[i].fd < 0) {
                        fprintf(stderr, "victim: no %s: %s\n", names[i], strerror(errno));
                        return 4;
                }
        }
        fd = open("ready.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        dprintf(fd, "%d %d %d\n", tcp, udp, fence);
        close(fd);
        rename("ready.new", "ready");
        while (poll(p, 8, -1) >= 0)
                for (int i = 0; i < 8; i++) {
                        struct signalfd_siginfo info;
                        char bytes[256];
                        int in;

                        if (!p[i].revents)
                                continue;
                        if (i == 0 && read(p[0].fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGTERM) {
                                remove_ipc();
                                return 0;
                        }
                        if (i == 0 && (info.ssi_signo == SIGCONT || info.ssi_signo == SIGCHLD)) /* ptrace leaves them */
                                continue;
                        if (i < 7)
                                hit(names[i]);
                        if (i == 0)
                                continue;
                        if (i == 2 || i == 4 || i == 6) {
                                if (recv(p[i].fd, bytes, sizeof(bytes), 0) < 0)
                                        continue;
                        } else if ((in = accept4(p[i].fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
                                send(in, argv[2], strlen(argv[2]), MSG_NOSIGNAL);
                                close(in);
                        }
                }
}
