/* Runs a program whose session has a key of the given name. usage: with-key NAME PROGRAM [ARG…] */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
        if (argc < 3)
                return 125;
        /* A session keyring of its own, so that the key goes when the program ends. */
        if (syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL) < 0 ||
            syscall(SYS_add_key, "user", argv[1], "x", 1, -3 /* KEY_SPEC_SESSION_KEYRING */) < 0) {
                perror("with-key");
                return 77;
        }
        execvp(argv[2], argv + 2);
        return 125;
}
