/* A POSIX message queue and a POSIX shared memory object of the host that everybody may open.
 *
 * It must fail because queues belong to the box's IPC namespace and its /dev/shm is its own.
 *
 * args: "$victim"
 * also: /--net open */
#include "attack.h"
#include <mqueue.h>

int main(int argc, char **argv) {
        char name[128], text[512];
        mqd_t queue;

        if (argc < 2)
                return UNTRIED;
        snprintf(name, sizeof(name), "/dev/shm/hutch-victim-%s", argv[1]);
        if (has_secret(name))
                return ESCAPED;
        snprintf(name, sizeof(name), "/hutch-victim-%s", argv[1]);
        queue = mq_open(name, O_RDONLY | O_NONBLOCK);
        note("mq_open: %s", queue == (mqd_t) -1 ? strerror(errno) : "done");
        return queue != (mqd_t) -1 && mq_receive(queue, text, sizeof(text), NULL) >= 0 ? ESCAPED : STOPPED;
}
