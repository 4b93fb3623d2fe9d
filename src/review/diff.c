/* One change as a unified diff, in git's form.
 *
 * Files are read whole, up to a cap, and compared by lines (lines.h). A link's content is its target, as in git. What
 * git has no form for (directories, attributes, special files) is described in a line of text, which programs that read
 * diffs skip. Bytes that came from the box reach a terminal only through quote.h. */
#include "review.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lines.h"
#include "quote.h"
#include "../tree/tree.h"
#include "../tree/upper.h"
#include "view.h"

#define DEFAULT_MOST ((uint64_t) 4 * 1024 * 1024)
#define BINARY_PROBE ((size_t) 8000) /* git looks for a NUL in as much */
#define MOST_FUNCTION ((size_t) 80)

/* One side of the change. */
struct text {
        bool exists, too_large, binary;
        mode_t mode;
        uint64_t size;
        struct buf data;
        struct line *lines;
        bool *changed;
        size_t n;
};

struct diff {
        const struct diff_options *options;
        const char *path; /* as it is shown */
        struct buf *out;
        struct text old, new;
};

static void text_done(struct text *t) {
        buf_done(&t->data);
        free(t->lines);
        free(t->changed);
}

static void diff_done(struct diff *d) {
        text_done(&d->old);
        text_done(&d->new);
}

enum colour { BOLD, CYAN, RED, GREEN };

static void begin(struct diff *d, enum colour colour) {
        static const char *const codes[] = {
                [BOLD] = "\x1b[1m", [CYAN] = "\x1b[36m", [RED] = "\x1b[31m", [GREEN] = "\x1b[32m"};

        if (d->options->colour)
                buf_puts(d->out, codes[colour]);
}

static void end(struct diff *d) {
        buf_puts(d->out, d->options->colour ? "\x1b[m\n" : "\n");
}

static int read_file(int fd, struct text *t, uint64_t most) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        t->size = (uint64_t) st.st_size;
        while (t->data.len <= most) {
                ssize_t n;

                if (!buf_reserve(&t->data, 65536))
                        return -ENOMEM;
                n = read(fd, t->data.data + t->data.len, 65536);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                t->data.len += (size_t) n;
                if (t->size > most && t->data.len >= BINARY_PROBE)
                        break;
        }
        t->binary = t->data.len > 0 &&
                    memchr(t->data.data, 0, t->data.len < BINARY_PROBE ? t->data.len : BINARY_PROBE) != NULL;
        t->too_large = t->size > most || t->data.len > most;
        return 0;
}

/* Reads one side's content; the change has its mode. */
static int read_side(int root, struct view *upper, const char *path, struct text *t, uint64_t most) {
        const char *name = strrchr(path, '/');
        _cleanup_(freep) char *directory = NULL, *target = NULL;
        _cleanup_(closep) int dir = -1, fd = -1;
        int r;

        if (!t->exists || (!S_ISREG(t->mode) && !S_ISLNK(t->mode)))
                return 0;
        directory = strndup(path, name ? (size_t) (name - path) : 0);
        if (!directory)
                return -ENOMEM;
        name = name ? name + 1 : path;
        dir = upper ? upper_open_folder(&upper->upper, directory, false, NULL)
                    : tree_open(root, directory, O_PATH | O_DIRECTORY);
        if (dir < 0)
                return dir;
        if (S_ISLNK(t->mode)) {
                r = tree_read_link(dir, name, &target);
                if (r < 0)
                        return r;
                buf_puts(&t->data, target);
                t->size = t->data.len;
                return 0;
        }
        fd = upper ? upper_open_file(dir, name) : tree_open_file(dir, name);
        return fd < 0 ? fd : read_file(fd, t, most);
}

static void put_content(struct diff *d, const struct line *line) {
        size_t len = line->len;

        if (len > 0 && line->data[len - 1] == '\n')
                len--;
        if (d->options->clean)
                quote_put_line(d->out, line->data, len);
        else
                buf_put(d->out, line->data, len);
}

static void put_line(struct diff *d, char sign, const struct line *line) {
        bool ended = line->len > 0 && line->data[line->len - 1] == '\n';

        if (sign != ' ')
                begin(d, sign == '-' ? RED : GREEN);
        buf_put(d->out, &sign, 1);
        put_content(d, line);
        if (sign == ' ')
                buf_puts(d->out, "\n");
        else
                end(d);
        if (!ended)
                buf_puts(d->out, "\\ No newline at end of file\n");
}

/* git's default for "in which function": the nearest line above that begins like a name. */
static void put_function(struct diff *d, size_t from) {
        while (from-- > 0) {
                struct line line = d->old.lines[from];
                uint8_t c = line.len > 0 ? line.data[0] : 0;

                if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != '_' && c != '$')
                        continue;
                if (line.data[line.len - 1] == '\n')
                        line.len--;
                if (line.len > MOST_FUNCTION)
                        line.len = MOST_FUNCTION;
                buf_puts(d->out, " ");
                put_content(d, &line);
                return;
        }
}

static void put_range(struct diff *d, char sign, size_t from, size_t n) {
        buf_printf(d->out, " %c%zu", sign, n > 0 ? from + 1 : from);
        if (n != 1)
                buf_printf(d->out, ",%zu", n);
}

/* From (i, j), both unchanged or at an end: the next changed place, or false. */
static bool next_change(const struct diff *d, size_t *i, size_t *j) {
        while (*i < d->old.n || *j < d->new.n) {
                if ((*i < d->old.n && d->old.changed[*i]) || (*j < d->new.n && d->new.changed[*j]))
                        return true;
                (*i)++;
                (*j)++;
        }
        return false;
}

static void skip_changed(const struct diff *d, size_t *i, size_t *j) {
        while (*i < d->old.n && d->old.changed[*i])
                (*i)++;
        while (*j < d->new.n && d->new.changed[*j])
                (*j)++;
}

static void put_hunk(struct diff *d, size_t i, size_t j, size_t i_end, size_t j_end) {
        begin(d, CYAN);
        buf_puts(d->out, "@@");
        put_range(d, '-', i, i_end - i);
        put_range(d, '+', j, j_end - j);
        buf_puts(d->out, " @@");
        if (d->options->colour)
                buf_puts(d->out, "\x1b[m");
        put_function(d, i);
        buf_puts(d->out, "\n");
        while (i < i_end || j < j_end) {
                while (i < i_end && d->old.changed[i])
                        put_line(d, '-', &d->old.lines[i++]);
                while (j < j_end && d->new.changed[j])
                        put_line(d, '+', &d->new.lines[j++]);
                while (i < i_end && j < j_end && !d->old.changed[i] && !d->new.changed[j]) {
                        put_line(d, ' ', &d->old.lines[i++]);
                        j++;
                }
        }
}

static void put_hunks(struct diff *d) {
        size_t context = d->options->context, i = 0, j = 0;

        while (next_change(d, &i, &j)) {
                size_t before = i < context ? i : context, from_i = i - before, from_j = j - before, after;

                for (;;) {
                        size_t next_i, next_j;

                        skip_changed(d, &i, &j);
                        next_i = i, next_j = j;
                        /* Changes whose surroundings touch are one hunk. */
                        if (!next_change(d, &next_i, &next_j) || next_i - i > context * 2)
                                break;
                        i = next_i, j = next_j;
                }
                after = d->old.n - i < context ? d->old.n - i : context;
                put_hunk(d, from_i, from_j, i + after, j + after);
        }
}

static void put_name(struct diff *d, const char *sign, const char *prefix, bool exists) {
        begin(d, BOLD);
        buf_puts(d->out, sign);
        if (exists) {
                quote_put_path(d->out, prefix, d->path);
                /* As git does: patch(1) would take what follows a blank for a time. */
                if (strchr(d->path, ' '))
                        buf_puts(d->out, "\t");
        } else
                buf_puts(d->out, "/dev/null");
        end(d);
}

/* A link has no permissions that mean anything. */
static mode_t git_mode(mode_t mode) {
        return S_ISLNK(mode) ? S_IFLNK : mode;
}

static void put_header(struct diff *d) {
        begin(d, BOLD);
        buf_puts(d->out, "diff --git ");
        quote_put_path(d->out, "a/", d->path);
        buf_puts(d->out, " ");
        quote_put_path(d->out, "b/", d->path);
        end(d);
        if (d->old.exists && d->new.exists && d->old.mode == d->new.mode)
                return;
        if (d->old.exists) {
                begin(d, BOLD);
                buf_printf(d->out, "%s mode %06o", d->new.exists ? "old" : "deleted file", git_mode(d->old.mode));
                end(d);
        }
        if (d->new.exists) {
                begin(d, BOLD);
                buf_printf(d->out, "%s mode %06o", d->old.exists ? "new" : "new file", git_mode(d->new.mode));
                end(d);
        }
}

static void put_sized(struct diff *d, const char *prefix, const struct text *t) {
        if (!t->exists) {
                buf_puts(d->out, "/dev/null");
                return;
        }
        quote_put_path(d->out, prefix, d->path);
        buf_printf(d->out, " (%" PRIu64 " %s)", t->size, t->size == 1 ? "byte" : "bytes");
}

static void put_unshown(struct diff *d) {
        bool binary = d->old.binary || d->new.binary;

        buf_puts(d->out, binary ? "Binary files " : "Files ");
        put_sized(d, "a/", &d->old);
        buf_puts(d->out, " and ");
        put_sized(d, "b/", &d->new);
        buf_puts(d->out, binary ? " differ\n" : " differ, too large to be shown\n");
}

static int put_text(struct diff *d) {
        int r;

        put_header(d);
        if (d->old.binary || d->new.binary || d->old.too_large || d->new.too_large) {
                put_unshown(d);
                return d->old.binary || d->new.binary ? DIFF_BINARY : DIFF_LARGE;
        }
        r = lines_split(d->old.data.data ? d->old.data.data : (uint8_t *) "", d->old.data.len, &d->old.lines,
                        &d->old.n);
        if (r >= 0)
                r = lines_split(d->new.data.data ? d->new.data.data : (uint8_t *) "", d->new.data.len, &d->new.lines,
                                &d->new.n);
        if (r < 0)
                return r;
        d->old.changed = calloc(d->old.n + 1, sizeof(bool));
        d->new.changed = calloc(d->new.n + 1, sizeof(bool));
        if (!d->old.changed || !d->new.changed)
                return -ENOMEM;
        r = lines_compare(d->old.lines, d->old.n, d->new.lines, d->new.n, d->old.changed, d->new.changed);
        if (r < 0)
                return r;
        if (d->old.n + d->new.n == 0 || (d->old.data.len == d->new.data.len && d->old.data.len > 0 &&
                                         memcmp(d->old.data.data, d->new.data.data, d->old.data.len) == 0))
                return 0;
        put_name(d, "--- ", "a/", d->old.exists);
        put_name(d, "+++ ", "b/", d->new.exists);
        put_hunks(d);
        return 0;
}

static bool has_text(mode_t mode) {
        return S_ISREG(mode) || S_ISLNK(mode);
}

/* What git's form has no words for. */
static void put_words(struct diff *d, const struct change *c) {
        mode_t mode = c->new_mode ? c->new_mode : c->old_mode;
        const char *what = S_ISDIR(mode)    ? "Directory"
                           : S_ISFIFO(mode) ? "FIFO"
                           : S_ISSOCK(mode) ? "Socket"
                           : S_ISREG(mode)  ? "File"
                           : S_ISLNK(mode)  ? "Link"
                                            : "Device";
        const char *how = c->kind == CHANGE_CREATED ? "created" : c->kind == CHANGE_DELETED ? "deleted" : "changed";

        begin(d, BOLD);
        buf_printf(d->out, "%s ", what);
        quote_put_path(d->out, "", d->path);
        buf_printf(d->out, " %s", how);
        if (c->kind == CHANGE_CREATED)
                buf_printf(d->out, ", mode %04o", c->new_mode & 07777u);
        else if (c->mode_changed && !has_text(mode))
                buf_printf(d->out, ", mode %04o to %04o", c->old_mode & 07777u, c->new_mode & 07777u);
        buf_puts(d->out, c->attrs_changed ? ", its attributes differ" : "");
        end(d);
}

static int diff_sides(const struct review_pair *pair, const struct change *c, const struct diff_options *options,
                      const char *shown, bool with_old, bool with_new, struct buf *out) {
        _cleanup_(view_done) struct view view = {.pair = pair, .upper.root = pair->upper};
        _cleanup_(diff_done) struct diff d = {.options = options, .path = shown, .out = out};
        uint64_t most = options->most_size ? options->most_size : DEFAULT_MOST;
        int r;

        d.old = (struct text){.exists = with_old, .mode = c->old_mode, .size = c->old_size};
        d.new = (struct text){.exists = with_new, .mode = c->new_mode, .size = c->new_size};
        r = read_side(pair->lower, NULL, c->path, &d.old, most);
        if (r < 0)
                return r;
        r = read_side(pair->upper, &view, c->path, &d.new, most);
        return r < 0 ? r : put_text(&d);
}

int review_diff(const struct review_pair *pair, const struct change *c, const struct diff_options *options,
                struct buf *out, struct hutch_error *err) {
        _cleanup_(freep) char *shown = tree_join(options->directory ? options->directory : "", c->path);
        struct diff words = {.options = options, .path = shown, .out = out};
        bool old_text = c->kind != CHANGE_CREATED && has_text(c->old_mode);
        bool new_text = c->kind != CHANGE_DELETED && has_text(c->new_mode);
        bool two = c->kind == CHANGE_MODIFIED && c->type_changed;
        int r = DIFF_WORDS;

        if (!shown)
                return error_oom(err);
        if (c->attrs_changed || (!new_text && c->kind != CHANGE_DELETED) || (!old_text && c->kind != CHANGE_CREATED))
                put_words(&words, c);
        if (two) {
                /* Another type of thing: the old one goes, the new one comes. */
                if (old_text)
                        r = diff_sides(pair, c, options, shown, true, false, out);
                if (r >= 0 && new_text)
                        r = diff_sides(pair, c, options, shown, false, true, out);
        } else if (old_text || new_text)
                r = diff_sides(pair, c, options, shown, old_text, new_text, out);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot compare %s/%s: %s", pair->host_path, c->path,
                                 errno_text(-r));
        return out->oom ? error_oom(err) : r;
}

void review_put_path(struct buf *out, const char *path) {
        quote_put_path(out, "", path);
}
