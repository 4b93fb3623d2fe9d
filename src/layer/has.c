/* Whether a box's layer holds anything, without looking at what. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "stack.h"

/* Any entry of the directory `fd`, which is taken over. */
static bool has_entry(int fd) {
        DIR *dir = fdopendir(fd);
        struct dirent *entry;
        bool found = false;

        if (!dir) {
                close(fd);
                return true;
        }
        while (!found && (entry = readdir(dir)))
                found = !streq(entry->d_name, ".") && !streq(entry->d_name, "..");
        closedir(dir);
        return found;
}

/* What cannot be looked at counts as there. */
static bool upper_has(const char *upper, const char *path) {
        _cleanup_(closep) int directory = open(upper, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;

        if (directory < 0)
                return errno != ENOENT;
        fd = sys_openat2(directory, path[0] ? path : ".",
                         (unsigned) ((path[0] ? O_PATH : O_RDONLY | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC),
                         RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        if (fd < 0)
                return errno != ENOENT;
        return path[0] ? true : has_entry(take_fd(&fd));
}

int stack_has(const struct layer_box *box, size_t n, const char *path, bool *ret) {
        _cleanup_(strv_freep) char **uppers = NULL;
        int r = stack_list_below(box, n, &uppers);

        if (r < 0)
                return r;
        r = strv_pushf(&uppers, "%s/%zu/upper", box->path, n);
        if (r < 0)
                return r;
        *ret = false;
        for (char **upper = uppers; !*ret && *upper; upper++)
                *ret = upper_has(*upper, path);
        return 0;
}
