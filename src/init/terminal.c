/* The box's own pseudo terminal. init leads the session that it controls; the target's group is put into its foreground
 * at once, or when the warden orders it. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "../base/io.h"

static int terminal_error(struct hutch_error *err, const char *what) {
        return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot %s the box's terminal: %s", what, errno_text(errno));
}

int init_make_terminal(int *ret_master, int *ret_slave, struct hutch_error *err) {
        _cleanup_(closep) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -1;
        int unlock = 0;

        if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
                return terminal_error(err, "make");
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0)
                return terminal_error(err, "open");
        *ret_master = take_fd(&master);
        *ret_slave = take_fd(&slave);
        return 0;
}

int init_open_terminal(const struct init_input *in, int *ret, struct hutch_error *err) {
        _cleanup_(closep) int master = -1, slave = -1;
        struct init_message message = {.event = INIT_TERMINAL};
        int r;

        r = init_make_terminal(&master, &slave, err);
        if (r < 0)
                return r;
        if (tcsetattr(slave, TCSANOW, in->modes) < 0)
                return terminal_error(err, "set the modes of");
        if (ioctl(slave, TIOCSWINSZ, in->size) < 0)
                return terminal_error(err, "set the size of");
        if (ioctl(slave, TIOCSCTTY, 0) < 0)
                return terminal_error(err, "control");
        r = message_send(in->control, &message, sizeof(message), &master, 1);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot hand over the box's terminal: %s",
                                 errno_text(-r));
        *ret = take_fd(&slave);
        return 0;
}
