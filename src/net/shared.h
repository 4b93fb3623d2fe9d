/* A box that shares the host's network (backend landlock), and has rules for it.
 *
 * init makes every socket of such a box: its filter notifies it of socket() and connect() (init/sockets.c). The relay
 * gets a duplicate of each, and connects that duplicate to the address that init read from the box's memory, once, if
 * the rules allow it. init identifies the socket by its inode number, so the box can put another of its sockets in that
 * one's place meanwhile, and gain nothing by it: whichever of its sockets is connected, the address is the judged one.
 *
 * A duplicate is kept until its socket is connected, and closed then, so that the end of the connection is the box's
 * own. Of a UNIX stream socket the relay has the other end: connected to the socket of nscd, the C library's name
 * service, it is answered by the relay's resolver (nscd.c); it can be connected to nothing else. A datagram socket is
 * such a pair, too: connected to port 53 of any address, as Go's programs do, each write is a question. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum shared_kind {
        SHARED_MADE,    /* with the duplicate of a new socket */
        SHARED_CONNECT, /* answered by a shared_reply, at once or when the connection stands */
        SHARED_LIVE,    /* with a memfd of the inode numbers of all the box's sockets, sorted */
};

struct shared_request {
        enum shared_kind kind;
        int family;      /* SHARED_MADE */
        bool datagram;   /* of a pair: the box asked for a datagram socket */
        uint64_t socket; /* the inode number */
        uint64_t id;     /* SHARED_CONNECT: of the call */
        uint64_t count;  /* SHARED_LIVE */
        socklen_t len;   /* SHARED_CONNECT: of the address, as the box had it; the rest is 0 */
        struct sockaddr_storage address;
};

struct shared_reply {
        uint64_t id;
        int result; /* of connect(): 0 or -errno */
};

#define SHARED_LIVE_MOST 65536 /* numbers in such a list */
