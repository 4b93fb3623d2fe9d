/* Devices of the host that the box could open: disks, the kernel's log and memory, terminals, fuse, kvm.
 *
 * It must fail because the box's /dev holds a handful of harmless ones.
 *
 * only: root */
#include "attack.h"
#include <dirent.h>

static int try_folder(const char *directory) {
        static const char *const harmless[] = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"};
        struct dirent *entry;
        DIR *dir = opendir(directory);
        int open_ones = 0;

        while (dir && (entry = readdir(dir))) {
                char path[512];
                bool skip = entry->d_name[0] == '.';
                struct stat st;
                int fd;

                for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
                        skip = skip || strcmp(entry->d_name, harmless[i]) == 0;
                snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
                if (skip || lstat(path, &st) < 0 || !(S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode)))
                        continue;
                /* In a control looking at one disk is enough; nothing with side effects of opening is touched. */
                if (getenv("HUTCH_CONTROL") && !S_ISBLK(st.st_mode))
                        continue;
                fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (fd >= 0) {
                        note("%s opens", path);
                        open_ones++;
                        close(fd);
                }
                if (open_ones && getenv("HUTCH_CONTROL"))
                        break;
        }
        return open_ones;
}

int main(void) {
        return try_folder("/dev") + try_folder("/dev/pts") ? ESCAPED : STOPPED;
}
