/* open_by_handle_at: a file by its number, with no path on which a mount or a rule could stand.
 *
 * The handle of the secret is made outside and lies in the workspace. It must fail because the filter refuses the call (and the
 * kernel wants a capability for it that the box does not have). An ordinary user has it neither: there the control only
 * shows that the call would get through.
 *
 * setup: "$program" save "$secret" "$ws/handle"
 * args: open "$in/handle" "$in" */
#include "attack.h"

union handle {
        struct file_handle h;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

int main(int argc, char **argv) {
        union handle handle = {.h.handle_bytes = MAX_HANDLE_SZ};
        int fd, mount;

        if (argc == 4 && strcmp(argv[1], "save") == 0) {
                if (name_to_handle_at(AT_FDCWD, argv[2], &handle.h, &mount, 0) < 0)
                        return UNTRIED;
                fd = open(argv[3], O_WRONLY | O_CREAT | O_EXCL, 0644);
                return write(fd, &handle, sizeof(handle)) < 0;
        }
        fd = argc < 4 ? -1 : open(argv[2], O_RDONLY);
        mount = argc < 4 ? -1 : open(argv[3], O_RDONLY | O_DIRECTORY);
        if (fd < 0 || mount < 0 || read(fd, &handle, sizeof(handle)) != sizeof(handle))
                return UNTRIED;
        fd = open_by_handle_at(mount, &handle.h, O_RDONLY);
        note("open_by_handle_at: %s", fd < 0 ? strerror(errno) : "done");
        if (fd >= 0 && fd_has_secret(fd))
                return ESCAPED;
        if (getenv("HUTCH_CONTROL") && geteuid() == 0)
                return STOPPED;
        return gets_through(SYS_open_by_handle_at, "open_by_handle_at") ? ESCAPED : STOPPED;
}
