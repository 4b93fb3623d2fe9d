/* Reading and writing the memory of init, hutch or another process with process_vm_readv and process_vm_writev.
 *
 * A wrong address gives EFAULT to whoever may look and EPERM or ESRCH to whoever may not. It must fail for the same reasons as
 * ptrace does.
 *
 * args: "$victim" */
#include "attack.h"
#include <sys/uio.h>

static bool reaches(int pid) {
        char byte = 0;
        struct iovec mine = {&byte, 1}, theirs = {(void *) 1, 1};

        if (pid < 1 || pid == getpid())
                return false;
        if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) >= 0 || errno == EFAULT) {
                note("process_vm_readv reaches %d", pid);
                return true;
        }
        note("process_vm_readv %d: %s", pid, strerror(errno));
        if (process_vm_writev(pid, &mine, 1, &theirs, 1, 0) >= 0 || errno == EFAULT) {
                note("process_vm_writev reaches %d", pid);
                return true;
        }
        return false;
}

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");

        if (argc < 2)
                return UNTRIED;
        if (getenv("HUTCH_CONTROL"))
                return reaches(atoi(argv[1])) ? ESCAPED : STOPPED;
        return reaches(1) || reaches(atoi(argv[1])) || (hutch && reaches(atoi(hutch))) ? ESCAPED : STOPPED;
}
