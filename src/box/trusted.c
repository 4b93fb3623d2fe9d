/* What the user is shown before trusting a workspace's policy files: their text the first time, what changed
 * afterwards.
 *
 * The text came from a workspace, so nothing in it reaches the terminal but printable characters. */
#include <errno.h>

#include "../base/buf.h"
#include "../base/text.h"
#include "../review/lines.h"
#include "config.h"

static void put_line(struct buf *b, const char *mark, const struct line *line) {
        size_t n = line->len;

        buf_puts(b, mark);
        if (n > 0 && line->data[n - 1] == '\n')
                n--;
        text_put_clean(b, line->data, n);
        buf_puts(b, "\n");
}

static int put_text(struct buf *b, const char *mark, const char *text, size_t len) {
        _cleanup_(freep) struct line *lines = NULL;
        size_t n = 0;

        if (lines_split(text, len, &lines, &n) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                put_line(b, mark, &lines[i]);
        return 0;
}

static int put_difference(struct buf *b, const struct trust_file *f) {
        _cleanup_(freep) struct line *before = NULL, *after = NULL;
        _cleanup_(freep) bool *removed = NULL, *added = NULL;
        size_t n = 0, m = 0;

        if (lines_split(f->accepted, f->accepted_len, &before, &n) < 0 || lines_split(f->text, f->len, &after, &m) < 0)
                return -ENOMEM;
        removed = calloc(n + 1, sizeof(*removed));
        added = calloc(m + 1, sizeof(*added));
        if (!removed || !added || lines_compare(before, n, after, m, removed, added) < 0)
                return -ENOMEM;
        for (size_t i = 0, k = 0; i < n || k < m;) {
                if (i < n && removed[i])
                        put_line(b, "-", &before[i++]);
                else if (k < m && added[k])
                        put_line(b, "+", &after[k++]);
                else if (i < n && k < m) {
                        put_line(b, " ", &after[k++]);
                        i++;
                } else
                        break;
        }
        return 0;
}

int config_describe_trust(const struct trust *t, char **ret) {
        _cleanup_(buf_done) struct buf b = {0};

        for (size_t i = 0; i < t->n_files; i++) {
                const struct trust_file *f = &t->files[i];
                int r = 0;

                if (!f->text && !f->accepted && !f->refused)
                        continue;
                text_put_clean(&b, f->path, strlen(f->path));
                if (f->refused) {
                        buf_printf(&b, ": not read: %s\n", f->refused);
                        continue;
                }
                buf_puts(&b, !t->recorded ? ":\n" : !f->text ? " (removed):\n" : !f->accepted ? " (new):\n" : ":\n");
                if (f->text && f->accepted)
                        r = put_difference(&b, f);
                else if (f->text)
                        r = put_text(&b, t->recorded ? "+" : "  ", f->text, f->len);
                else
                        r = put_text(&b, "-", f->accepted, f->accepted_len);
                if (r < 0)
                        return r;
        }
        *ret = buf_take_string(&b);
        return *ret ? 0 : -ENOMEM;
}
