/* Comparing lines; see lines.h.
 *
 * Lines become numbers, equal lines equal numbers (by sorting, not by hashing: a box chooses the lines, and no choice
 * may make this slow). Lines that the other side does not have at all are changed, whatever the rest is like, and are
 * put aside. What is left is Myers' comparison in linear space: from both corners of the edit graph furthest-reaching
 * paths are grown at once until they meet, and each half is compared for itself.
 *
 * Two bounds keep the work near linear: a search that has not met after MOST_COST steps splits where one side came
 * furthest, which gives a correct but not always the shortest answer; and above MOST_LINES everything between the equal
 * beginning and the equal end is reported as replaced. */
#include "lines.h"

#include <errno.h>

#include "../base/macro.h"

#define MOST_COST 512
#define MOST_LINES 400000

int lines_split(const void *data, size_t len, struct line **ret, size_t *ret_n) {
        const uint8_t *p = data, *end = p + len;
        struct line *lines;
        size_t n = 0;

        for (const uint8_t *q = p; q < end; n++) {
                const uint8_t *newline = memchr(q, '\n', (size_t) (end - q));

                q = newline ? newline + 1 : end;
        }
        lines = calloc(n + 1, sizeof(*lines));
        if (!lines)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const uint8_t *newline = memchr(p, '\n', (size_t) (end - p)), *next = newline ? newline + 1 : end;

                lines[i] = (struct line){.data = p, .len = (size_t) (next - p)};
                p = next;
        }
        *ret = lines;
        *ret_n = n;
        return 0;
}

static int line_order(const struct line *a, const struct line *b) {
        size_t least = a->len < b->len ? a->len : b->len;
        int r = memcmp(a->data, b->data, least);

        if (r != 0)
                return r;
        return a->len < b->len ? -1 : a->len > b->len;
}

static int order(const void *a, const void *b) {
        return line_order(*(const struct line *const *) a, *(const struct line *const *) b);
}

/* Numbers the lines of both sides; `id` has room for all of them, the old ones first. */
static int number_lines(const struct line *a, size_t n, const struct line *b, size_t m, uint32_t *id) {
        _cleanup_(freep) const struct line **sorted = reallocarray(NULL, n + m + 1, sizeof(*sorted));
        uint32_t number = 0;

        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = &a[i];
        for (size_t i = 0; i < m; i++)
                sorted[n + i] = &b[i];
        qsort(sorted, n + m, sizeof(*sorted), order);
        for (size_t i = 0; i < n + m; i++) {
                bool is_old = n > 0 && sorted[i] >= a && sorted[i] < a + n;

                if (i > 0 && line_order(sorted[i - 1], sorted[i]) != 0)
                        number++;
                id[is_old ? (size_t) (sorted[i] - a) : n + (size_t) (sorted[i] - b)] = number;
        }
        return 0;
}

/* One side of the comparison: the numbers of the lines that take part, and which lines of the text they are. */
struct side {
        uint32_t *id;
        uint32_t *at;
        bool *changed;
        int32_t n;
};

struct search {
        struct side a, b;
        int32_t *forward, *backward; /* furthest reach on each diagonal i - j, indexed from the middle */
};

/* A box of the edit graph: lines i0 … i1 of the old side against j0 … j1 of the new one. */
struct box {
        int32_t i0, i1, j0, j1;
};

struct point {
        int32_t i, j;
};

static int32_t slide_down(const struct search *s, const struct box *x, int32_t i, int32_t d) {
        while (i < x->i1 && i - d < x->j1 && s->a.id[i] == s->b.id[i - d])
                i++;
        return i;
}

static int32_t slide_up(const struct search *s, const struct box *x, int32_t i, int32_t d) {
        while (i > x->i0 && i - d > x->j0 && s->a.id[i - 1] == s->b.id[i - d - 1])
                i--;
        return i;
}

/* The search took too long: the point that either side reached furthest from its corner. */
static struct point furthest(const struct search *s, const struct box *x, int32_t f0, int32_t f1, int32_t b0,
                             int32_t b1) {
        struct point f = {x->i0, x->j0}, b = {x->i1, x->j1};

        for (int32_t d = f0; d <= f1; d += 2) {
                int32_t i = s->forward[d] < x->i1 ? s->forward[d] : x->i1;

                if (i - d > x->j1)
                        i = x->j1 + d;
                if (i >= x->i0 && i - d >= x->j0 && i + i - d > f.i + f.j)
                        f = (struct point){i, i - d};
        }
        for (int32_t d = b0; d <= b1; d += 2) {
                int32_t i = s->backward[d] > x->i0 ? s->backward[d] : x->i0;

                if (i - d < x->j0)
                        i = x->j0 + d;
                if (i <= x->i1 && i - d <= x->j1 && i + i - d < b.i + b.j)
                        b = (struct point){i, i - d};
        }
        return f.i + f.j - x->i0 - x->j0 > x->i1 + x->j1 - b.i - b.j ? f : b;
}

/* A point on a shortest path through the box. Both sides of it are smaller than the box, which is not empty on either
 * side and begins and ends with lines that differ. */
static struct point split(const struct search *s, const struct box *x) {
        int32_t least = x->i0 - x->j1, most = x->i1 - x->j0, fmid = x->i0 - x->j0, bmid = x->i1 - x->j1;
        int32_t f0 = fmid, f1 = fmid, b0 = bmid, b1 = bmid;
        bool odd = ((fmid - bmid) & 1) != 0;
        int32_t *f = s->forward, *b = s->backward;

        f[fmid] = x->i0;
        b[bmid] = x->i1;
        for (unsigned cost = 1;; cost++) {
                /* Diagonals grow by one on each side until they leave the box; those outside never win. */
                if (f0 > least)
                        f[--f0 - 1] = -1;
                else
                        f0++;
                if (f1 < most)
                        f[++f1 + 1] = -1;
                else
                        f1--;
                for (int32_t d = f1; d >= f0; d -= 2) {
                        int32_t i = f[d - 1] >= f[d + 1] ? f[d - 1] + 1 : f[d + 1];

                        f[d] = i = slide_down(s, x, i, d);
                        if (odd && d >= b0 && d <= b1 && b[d] <= i)
                                return (struct point){i, i - d};
                }
                if (b0 > least)
                        b[--b0 - 1] = INT32_MAX;
                else
                        b0++;
                if (b1 < most)
                        b[++b1 + 1] = INT32_MAX;
                else
                        b1--;
                for (int32_t d = b1; d >= b0; d -= 2) {
                        int32_t i = b[d - 1] < b[d + 1] ? b[d - 1] : b[d + 1] - 1;

                        b[d] = i = slide_up(s, x, i, d);
                        if (!odd && d >= f0 && d <= f1 && i <= f[d])
                                return (struct point){i, i - d};
                }
                if (cost >= MOST_COST)
                        return furthest(s, x, f0, f1, b0, b1);
        }
}

static void mark(struct side *side, int32_t from, int32_t to) {
        for (int32_t i = from; i < to; i++)
                side->changed[side->at[i]] = true;
}

/* The depth of this recursion is the number of splits on one way down: about log2 of the lines where paths meet, and at
 * most lines / MOST_COST where they do not. */
static void compare(struct search *s, struct box x) { /* NOLINT(misc-no-recursion) */
        for (;;) {
                struct point p;

                while (x.i0 < x.i1 && x.j0 < x.j1 && s->a.id[x.i0] == s->b.id[x.j0])
                        x.i0++, x.j0++;
                while (x.i0 < x.i1 && x.j0 < x.j1 && s->a.id[x.i1 - 1] == s->b.id[x.j1 - 1])
                        x.i1--, x.j1--;
                if (x.i0 == x.i1 || x.j0 == x.j1) {
                        mark(&s->a, x.i0, x.i1);
                        mark(&s->b, x.j0, x.j1);
                        return;
                }
                p = split(s, &x);
                compare(s, (struct box){x.i0, p.i, x.j0, p.j});
                x.i0 = p.i;
                x.j0 = p.j;
        }
}

/* Of the lines from `from` to `to`, those that the other side has too take part; the others are changed. */
static int take_part(struct side *side, const uint32_t *id, size_t from, size_t to, const uint8_t *other_has) {
        side->id = reallocarray(NULL, to - from + 1, sizeof(uint32_t));
        side->at = reallocarray(NULL, to - from + 1, sizeof(uint32_t));
        if (!side->id || !side->at)
                return -ENOMEM;
        for (size_t i = from; i < to; i++)
                if (other_has[id[i]]) {
                        side->id[side->n] = id[i];
                        side->at[side->n++] = (uint32_t) i;
                } else
                        side->changed[i] = true;
        return 0;
}

static void search_done(struct search *s) {
        free(s->a.id);
        free(s->a.at);
        free(s->b.id);
        free(s->b.at);
}

/* A run of changed lines that could as well begin later is moved down as far as it goes, as git does: an added function
 * then shows from its own first line to its own last one. */
static void settle(const uint32_t *id, size_t n, bool *changed) {
        for (size_t i = 0; i < n;) {
                size_t end;

                if (!changed[i]) {
                        i++;
                        continue;
                }
                for (end = i; end < n && changed[end]; end++)
                        ;
                while (end < n && id[i] == id[end]) {
                        changed[i++] = false;
                        changed[end] = true;
                        while (end < n && changed[end])
                                end++;
                }
                i = end;
        }
}

static int compare_middle(const uint32_t *id, size_t n_old, size_t n_new, size_t head, size_t tail, bool *old_changed,
                          bool *new_changed) {
        _cleanup_(search_done) struct search s = {.a.changed = old_changed, .b.changed = new_changed};
        _cleanup_(freep) uint8_t *old_has = calloc(n_old + n_new + 1, 1), *new_has = calloc(n_old + n_new + 1, 1);
        _cleanup_(freep) int32_t *reach = NULL;
        size_t diagonals;

        if (!old_has || !new_has)
                return -ENOMEM;
        for (size_t i = head; i < n_old - tail; i++)
                old_has[id[i]] = 1;
        for (size_t i = head; i < n_new - tail; i++)
                new_has[id[n_old + i]] = 1;
        if (take_part(&s.a, id, head, n_old - tail, new_has) < 0 ||
            take_part(&s.b, id + n_old, head, n_new - tail, old_has) < 0)
                return -ENOMEM;
        diagonals = (size_t) s.a.n + (size_t) s.b.n + 3;
        reach = reallocarray(NULL, diagonals * 2, sizeof(int32_t));
        if (!reach)
                return -ENOMEM;
        s.forward = reach + s.b.n + 1;
        s.backward = s.forward + diagonals;
        compare(&s, (struct box){0, s.a.n, 0, s.b.n});
        return 0;
}

int lines_compare(const struct line *old_lines, size_t n_old, const struct line *new_lines, size_t n_new,
                  bool *old_changed, bool *new_changed) {
        _cleanup_(freep) uint32_t *id = NULL;
        size_t head = 0, tail = 0;
        int r;

        memset(old_changed, 0, n_old * sizeof(bool));
        memset(new_changed, 0, n_new * sizeof(bool));
        while (head < n_old && head < n_new && line_order(&old_lines[head], &new_lines[head]) == 0)
                head++;
        while (tail < n_old - head && tail < n_new - head &&
               line_order(&old_lines[n_old - tail - 1], &new_lines[n_new - tail - 1]) == 0)
                tail++;
        if (n_old - head - tail > MOST_LINES || n_new - head - tail > MOST_LINES || head + tail == n_old ||
            head + tail == n_new) {
                for (size_t i = head; i < n_old - tail; i++)
                        old_changed[i] = true;
                for (size_t i = head; i < n_new - tail; i++)
                        new_changed[i] = true;
                if (n_old > MOST_LINES || n_new > MOST_LINES)
                        return 0;
        }
        id = reallocarray(NULL, n_old + n_new + 1, sizeof(uint32_t));
        if (!id)
                return -ENOMEM;
        r = number_lines(old_lines, n_old, new_lines, n_new, id);
        if (r >= 0 && head + tail < n_old && head + tail < n_new)
                r = compare_middle(id, n_old, n_new, head, tail, old_changed, new_changed);
        if (r < 0)
                return r;
        settle(id, n_old, old_changed);
        settle(id + n_old, n_new, new_changed);
        return 0;
}
