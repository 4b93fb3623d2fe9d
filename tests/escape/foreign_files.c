/* Whatever else of the host is not the system: other directories of /tmp, /var, /home, /srv, /sys, /boot, sockets in /run.
 *
 * It must fail because they are not in the box. The control finds at least the directory beside the workspace.
 *
 * args: "$secret" "$victim_dir" */
#include "attack.h"
#include <dirent.h>

/* Of somebody else: a box may have directories of its own at these places. */
static bool has_entries(const char *path) {
        DIR *dir = opendir(path);
        struct dirent *entry;
        bool found = false;
        struct stat st;

        while (dir && !found && (entry = readdir(dir)))
                found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                        fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != geteuid();
        if (dir)
                closedir(dir);
        if (found)
                note("%s can be listed", path);
        return found;
}

int main(int argc, char **argv) {
        static const char *const directories[] = {
                "/boot",       "/srv",      "/sys",         "/media",    "/var/lib",    "/var/log",       "/var/spool",
                "/lost+found", "/run/user", "/run/systemd", "/run/dbus", "/dev/mqueue", "/dev/hugepages", "/dev/block"};

        if (argc < 3)
                return UNTRIED;
        if (has_secret(argv[1]) || has_entries(argv[2]))
                return ESCAPED;
        for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
                if (has_entries(directories[i]))
                        return ESCAPED;
        return STOPPED;
}
