/* Shared memory and message queues of System V that the host left open for everybody, by key and by trying all ids.
 *
 * It must fail because the box has an IPC namespace of its own.
 *
 * args: "$victim"
 * also: /--net open */
#include "attack.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>

int main(int argc, char **argv) {
        struct {
                long type;
                char text[64];
        } message;
        struct msginfo msgs;
        struct shm_info info;
        struct shmid_ds ds;
        int id, most;
        char *memory;

        if (argc < 2)
                return UNTRIED;
        id = shmget(atoi(argv[1]), 0, 0);
        memory = id < 0 ? (void *) -1 : shmat(id, NULL, SHM_RDONLY);
        if (memory != (void *) -1 && strncmp(memory, SECRET, strlen(SECRET)) == 0)
                return ESCAPED;
        note("shmget: %s", strerror(errno));
        id = msgget(atoi(argv[1]), 0);
        if (id >= 0 && msgrcv(id, &message, sizeof(message.text), 0, IPC_NOWAIT) > 0)
                return ESCAPED;
        most = shmctl(0, SHM_INFO, (struct shmid_ds *) &info);
        for (int i = 0; i <= most; i++)
                if (shmctl(i, SHM_STAT, &ds) >= 0)
                        return ESCAPED;
        return msgctl(0, MSG_INFO, (struct msqid_ds *) &msgs) >= 0 && msgs.msgpool > 0 ? ESCAPED : STOPPED;
}
