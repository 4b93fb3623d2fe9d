/* Replies that several kinds of requests share. */
#pragma once

#include "protocol.h"

/* Sends the events that wait, one a message, and takes those that went out of the list. -EAGAIN: the rest waits until
 * the library has read what came before. */
int reply_events(int socket, struct events *waiting);
