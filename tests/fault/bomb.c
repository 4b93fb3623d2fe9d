/* Uses up what a box has, one kind at a time, each with an end of its own should hutch not set one: 512 MiB, 500
 * processes, 20 seconds. usage: bomb memory|fork|cpu|disk, and bomb output: 4 MiB of it. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1 << 20)

static void use_memory(void) {
        for (int i = 0; i < 512; i++) {
                char *block = malloc(MIB);

                if (block)
                        memset(block, i + 1, MIB);
                usleep(200);
        }
}

static void use_processes(void) {
        for (int i = 0; i < 500; i++)
                if (fork() == 0) {
                        alarm(20);
                        pause();
                        _exit(0);
                }
}

static void use_disk(void) {
        static char block[MIB];
        int fd = open("/tmp/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        memset(block, 'x', sizeof(block));
        for (int i = 0; i < 512; i++)
                if (write(fd, block, sizeof(block)) < 0)
                        usleep(20000);
}

static int make_output(void) {
        static char block[MIB];

        for (int i = 0; i < 4; i++)
                for (size_t done = 0; done < sizeof(block);) {
                        ssize_t n = write(STDOUT_FILENO, block, sizeof(block) - done);

                        if (n < 0)
                                return 1;
                        done += (size_t) n;
                }
        return 0;
}

int main(int argc, char **argv) {
        const char *what = argc > 1 ? argv[1] : "";

        alarm(20);
        if (!strcmp(what, "output"))
                return make_output();
        if (!strcmp(what, "memory"))
                use_memory();
        else if (!strcmp(what, "fork"))
                use_processes();
        else if (!strcmp(what, "disk"))
                use_disk();
        else if (strcmp(what, "cpu") != 0)
                return 2;
        while (!strcmp(what, "cpu"))
                ;
        pause();
        return 0;
}
