/* Runs a program on a kernel that seems older: the named calls do not exist for it.
 * usage: without mount-api|landlock PROGRAM [ARG…] */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
        /* open_tree … fspick are 428 to 433, openat2 437, mount_setattr 442, open_tree_attr 467; the three of Landlock 444 to 446 */
        static const unsigned mount_api[] = {428, 429, 430, 431, 432, 433, 437, 442, 467}, landlock[] = {444, 445, 446};
        const unsigned *gone = argc > 2 && strcmp(argv[1], "landlock") == 0 ? landlock : mount_api;
        size_t n_gone = gone == landlock ? 3 : 9, n = 0;
        struct sock_filter code[32];
        struct sock_fprog program = {.filter = code};

        if (argc < 3)
                return 125;
        code[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < n_gone; i++)
                code[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, gone[i],
                                                          (unsigned char) (n_gone - i), 0);
        code[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        code[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
        program.len = (unsigned short) n;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
                perror("without");
                return 125;
        }
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        return 125;
}
