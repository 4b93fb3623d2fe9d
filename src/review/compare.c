/* Comparing entries; see compare.h. */
#include "compare.h"

#include <errno.h>
#include <fcntl.h>

#include "../tree/attrs.h"
#include "../tree/content.h"
#include "../tree/tree.h"
#include "../tree/upper.h"

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
                r = content_equal(a, b);
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
