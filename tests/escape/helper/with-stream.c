/* Runs a program with a stream of a kind that a shell cannot make, and ends as it does.
 * usage: with-stream tty|socket PROGRAM [ARG…]
 * tty: 0, 1 and 2 are a new terminal, which is the controlling one.  socket: 0 is one end of a socket pair. */
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int with_tty(char **argv) {
        char bytes[4096];
        int master, status;
        ssize_t n;
        pid_t pid = forkpty(&master, NULL, NULL, NULL);

        if (pid == 0) {
                execvp(argv[0], argv);
                _exit(125);
        }
        while (pid > 0 && (n = read(master, bytes, sizeof(bytes))) > 0) /* ends when the last slave is closed */
                if (write(STDERR_FILENO, bytes, (size_t) n) < 0)
                        break;
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return 125;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
        int ends[2];

        if (argc < 3)
                return 125;
        if (strcmp(argv[1], "tty") == 0)
                return with_tty(argv + 2);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || dup2(ends[0], 0) < 0)
                return 125;
        close(ends[0]);
        shutdown(ends[1], SHUT_WR);
        execvp(argv[2], argv + 2);
        return 125;
}
