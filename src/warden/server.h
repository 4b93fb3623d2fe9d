/* The warden program's work: it takes requests from its library until that is gone. */
#pragma once

int warden_serve(int socket);
