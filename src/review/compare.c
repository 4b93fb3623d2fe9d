/* Comparing entries; see compare.h. */
#include "compare.h"

#include <errno.h>
#include <fcntl.h>

#include "attrs.h"
#include "tree.h"
#include "upper.h"

#define CHUNK ((size_t) 256 * 1024)

/* Where the next data is from `at` on; the end if there is none. File systems without holes call everything data. */
static off_t next_data(int fd, off_t at, off_t end) {
        off_t data = lseek(fd, at, SEEK_DATA);

        if (data < 0)
                return errno == ENXIO ? end : at;
        return data < end ? data : end;
}

static ssize_t read_at(int fd, void *data, size_t len, off_t at) {
        size_t done = 0;

        while (done < len) {
                ssize_t n = pread(fd, (char *) data + done, len - done, at + (off_t) done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

int compare_contents(int a, int b) {
        _cleanup_(freep) char *one = NULL, *two = NULL;
        struct stat sa, sb;
        off_t at = 0;

        if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
                return -errno;
        if (sa.st_size != sb.st_size)
                return 0;
        one = malloc(CHUNK);
        two = malloc(CHUNK);
        if (!one || !two)
                return -ENOMEM;
        for (;;) {
                off_t data_a = next_data(a, at, sa.st_size), data_b = next_data(b, at, sa.st_size);
                size_t want;
                ssize_t n, m;

                at = data_a < data_b ? data_a : data_b;
                if (at >= sa.st_size)
                        return 1;
                want = (uint64_t) (sa.st_size - at) < CHUNK ? (size_t) (sa.st_size - at) : CHUNK;
                n = read_at(a, one, want, at);
                m = read_at(b, two, want, at);
                if (n < 0 || m < 0)
                        return (int) (n < 0 ? n : m);
                if ((size_t) n != want || (size_t) m != want || memcmp(one, two, want) != 0)
                        return 0;
                at += (off_t) want;
        }
}

static int compare_files(const struct place *upper, const struct place *lower, bool shallow, struct change *change) {
        _cleanup_(closep) int a = -1, b = -1;
        int r;

        change->content_changed = upper->st.st_size != lower->st.st_size;
        if (shallow) {
                change->content_changed = true;
                return 0;
        }
        a = upper_open_file(upper->dir, upper->name);
        if (a < 0)
                return a;
        b = tree_open_file(lower->dir, lower->name);
        if (b == -EACCES || b == -EPERM) {
                change->content_changed = true;
                change->note = strdup("the host's file cannot be read, so it counts as changed");
                return change->note ? 0 : -ENOMEM;
        }
        if (b < 0)
                return b;
        if (!change->content_changed) {
                r = compare_contents(a, b);
                if (r < 0)
                        return r;
                change->content_changed = r == 0;
        }
        r = attrs_equal(a, b);
        if (r < 0)
                return r;
        change->attrs_changed = r == 0;
        return 0;
}

static int compare_links(const struct place *upper, const struct place *lower, struct change *change) {
        _cleanup_(freep) char *a = NULL, *b = NULL;
        int r = tree_read_link(upper->dir, upper->name, &a);

        if (r >= 0)
                r = tree_read_link(lower->dir, lower->name, &b);
        if (r < 0)
                return r;
        change->content_changed = !streq(a, b);
        return 0;
}

int compare_entries(const struct place *upper, const struct place *lower, bool shallow, struct change *change) {
        mode_t type = upper->st.st_mode & S_IFMT;

        if (type != (lower->st.st_mode & S_IFMT)) {
                change->type_changed = change->content_changed = true;
                return 0;
        }
        if (S_ISLNK(type))
                return compare_links(upper, lower, change);
        change->mode_changed = (upper->st.st_mode & 07777) != (lower->st.st_mode & 07777);
        if (S_ISREG(type))
                return compare_files(upper, lower, shallow, change);
        change->content_changed = upper->st.st_rdev != lower->st.st_rdev;
        return 0;
}
