/* See acl.h. The kernel's form of a list: a version, then entries of tag, rights and id, all little-endian. */
#include "acl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/xattr.h>

#include "../base/macro.h"

#define ACL "system.posix_acl_access"
#define MOST 65536
#define TAG_GROUP 0x04
#define TAG_MASK 0x10

struct entry {
        uint16_t tag, rights;
        uint32_t id;
};

mode_t acl_mode(int fd, mode_t mode) {
        _cleanup_(freep) char *list = malloc(MOST);
        ssize_t n = list ? fgetxattr(fd, ACL, list, MOST) : -1;
        mode_t group = 07, mask = 07;

        /* A list that cannot be read grants the group nothing. */
        if (!list || (n < 0 && errno != ENODATA && errno != EOPNOTSUPP))
                return mode & ~(mode_t) 070;
        if (n < 4)
                return mode;
        for (ssize_t at = 4; at + (ssize_t) sizeof(struct entry) <= n; at += (ssize_t) sizeof(struct entry)) {
                struct entry entry;

                memcpy(&entry, list + at, sizeof(entry));
                if (le16toh(entry.tag) == TAG_GROUP)
                        group = le16toh(entry.rights) & 07;
                else if (le16toh(entry.tag) == TAG_MASK)
                        mask = le16toh(entry.rights) & 07;
        }
        return (mode & ~(mode_t) 070) | (group & mask) << 3;
}

int acl_keep(int dir, const char *name, int to) {
        _cleanup_(closep) int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(freep) char *list = malloc(MOST);
        char path[64];
        ssize_t n;

        if (fd < 0)
                return -errno;
        if (!list)
                return -ENOMEM;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = getxattr(path, ACL, list, MOST);
        if (n < 0)
                return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
        return fsetxattr(to, ACL, list, (size_t) n, 0) < 0 ? -errno : 1;
}
