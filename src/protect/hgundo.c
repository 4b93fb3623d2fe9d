/* Mercurial's way back; see hgundo.h.
 *
 * `undo` has a line for each file of the store that a transaction made longer: a name, a NUL and the size before.
 * `undo.backupfiles` has one for each file that it replaced: the place ("" is the store, "plain" the directory above),
 * the name, the copy to take it from, and a mark, with a NUL between. Mercurial checks none of these names. */
#include "hgundo.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"

#define MOST_UNDO ((size_t) 16 << 20)

bool hgundo_is(const char *path) {
        static const char *const ends[] = {"/store/undo", "/store/undo.backupfiles"};

        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                size_t len = strlen(path), n = strlen(ends[i]);

                if (len > n && strcasecmp(path + len - n, ends[i]) == 0)
                        return true;
        }
        return false;
}

static bool leads_up(const char *name) {
        for (const char *p = name; *p; p += path_name_length(p), p += *p == '/')
                if (startswith(p, "../") || streq(p, ".."))
                        return true;
        return false;
}

/* Files that a transaction changes beside the store's own. */
static bool is_plain(const char *name) {
        static const char *const names[] = {"bookmarks", "bookmarks.current", "branch", "dirstate",
                                            "dirstate-tracked-hint"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

static bool is_of_store(const char *name) {
        static const char *const names[] = {"fncache", "phaseroots", "obsstore", "bookmarks", "narrowspec"};

        if (leads_up(name))
                return false;
        if (startswith(name, "data/") || startswith(name, "meta/") || startswith(name, "00changelog") ||
            startswith(name, "00manifest"))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

/* A copy lies beside the file and has a name of its own. */
static bool is_copy(const char *place, const char *name) {
        const char *base = path_basename(name);

        return !name[0] || (!leads_up(name) && startswith(base, "undo.backup.") && (!place[0] || base == name));
}

/* The fields of a line; false: it has too few, or too many. */
static bool cut(const char *line, size_t len, const char **fields, size_t n) {
        size_t found = 0;

        for (const char *p = line, *end = line + len; p <= end; p += strlen(p) + 1) {
                if (found == n)
                        return false;
                fields[found++] = p;
        }
        return found == n;
}

static bool is_fine(const char *line, size_t len, bool backup) {
        const char *fields[4];

        if (!backup)
                return cut(line, len, fields, 2) && is_of_store(fields[0]);
        if (!cut(line, len, fields, 4) || !is_copy(fields[0], fields[2]))
                return false;
        return fields[0][0] ? streq(fields[0], "plain") && is_plain(fields[1]) : is_of_store(fields[1]);
}

int hgundo_judge(struct protect *p, const char *path, char **ret) {
        bool backup = strcasecmp(path_basename(path), "undo.backupfiles") == 0, fine = true, first = backup;
        _cleanup_(freep) char *text = NULL;
        size_t len = 0;
        int r = p->tree->read_file(p->tree->user, PROTECT_FINAL, path, MOST_UNDO, &text, &len);

        *ret = NULL;
        if (r == -ENOMEM)
                return r;
        if (r < 0 || len >= MOST_UNDO)
                fine = false;
        for (size_t at = 0, n; fine && at < len; at += n + 1, first = false) {
                _cleanup_(freep) char *line = NULL;
                const char *end = memchr(text + at, '\n', len - at);

                n = end ? (size_t) (end - (text + at)) : len - at;
                line = malloc(n + 1);
                if (!line)
                        return -ENOMEM;
                memcpy(line, text + at, n);
                line[n] = '\0';
                fine = first ? streq(line, "2") : is_fine(line, n, backup);
        }
        if (fine)
                return 0;
        *ret = strdup("it undoes more than Mercurial's own files");
        return *ret ? 0 : -ENOMEM;
}
