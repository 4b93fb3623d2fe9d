/* Keys of a git configuration that run programs, lead to another configuration, or make git reach for another
 * transport; see gitconfig.h.
 *
 * This reads git's syntax more loosely than git does (a broken file still has its keys named): sections `[a]`, `[a
 * "b"]` and `[a.b]`, a key on the line of its section, comments, and values that go on in the next line. It informs a
 * person; the file as a whole is held back by its name. */
#include "gitconfig.h"

#include <ctype.h>
#include <errno.h>

#include "../base/buf.h"
#include "../base/macro.h"
#include "../base/strv.h"
#include "../base/text.h"

#define MOST_NAMED 20
#define MOST_FOUND 1000

/* "section.key", "section.*.key" for any subsection, "section.*" for all of a section. Lower case. */
static const char *const programs[] = {
        "alias.*",
        "browser.*.cmd",
        "browser.*.path",
        "core.alternaterefscommand",
        "core.askpass",
        "core.attributesfile",
        "core.editor",
        "core.fsmonitor",
        "core.gitproxy",
        "core.hookspath",
        "core.pager",
        "core.sshcommand",
        "core.worktree",
        "credential.helper",
        "credential.*.helper",
        "diff.external",
        "diff.*.command",
        "diff.*.textconv",
        "difftool.*.cmd",
        "difftool.*.path",
        "extensions.worktreeconfig",
        "filter.*",
        "gpg.program",
        "gpg.*.program",
        "gpg.*.defaultkeycommand",
        "guitool.*.cmd",
        "hook.*",
        "imap.tunnel",
        "include.path",
        "includeif.*",
        "init.templatedir",
        "instaweb.*",
        "interactive.difffilter",
        "lfs.*",
        "man.*.cmd",
        "man.*.path",
        "merge.*.driver",
        "mergetool.*.cmd",
        "mergetool.*.path",
        "pager.*",
        "protocol.*",
        "receive.*",
        "remote.*.proxy",
        "remote.*.receivepack",
        "remote.*.uploadpack",
        "remote.*.vcs",
        "sendemail.*",
        "sequence.editor",
        "submodule.*.update",
        "svn.*",
        "svn-remote.*",
        "tar.*.command",
        "trailer.*.cmd",
        "trailer.*.command",
        "uploadpack.packobjectshook",
        "url.*",
        "web.browser",
};

bool gitconfig_key_runs(const char *key, const char *value) {
        size_t section = strcspn(key, ".");
        const char *last = strrchr(key, '.');

        /* A remote helper runs what follows the colons: ext::sh -c … */
        if (startswith(key, "remote.") && strstr(value, "::"))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                const char *p = programs[i], *star = strstr(p, ".*");

                if (!star) {
                        if (streq(p, key))
                                return true;
                        continue;
                }
                if ((size_t) (star - p) != section || strncmp(p, key, section) != 0)
                        continue;
                if (!star[2] || (last && last > key + section && streq(star + 2, last)))
                        return true;
        }
        return false;
}

struct reader {
        const char *p, *end;
        struct buf section; /* "core" or "filter.lfs" */
        char **found;       /* KEY=VALUE, keys that run programs only unless `all` */
        bool all;
        size_t n_found;
};

static void reader_done(struct reader *r) {
        buf_done(&r->section);
        strv_free(r->found);
}

static void skip_line(struct reader *r) {
        while (r->p < r->end && *r->p != '\n')
                r->p++;
}

static void put_lower(struct buf *b, char c) {
        c = (char) tolower((unsigned char) c);
        buf_put(b, &c, 1);
}

static void read_section(struct reader *r) {
        bool quoted = false;

        buf_done(&r->section);
        for (r->p++; r->p < r->end && *r->p != '\n'; r->p++) {
                if (!quoted && *r->p == ']') {
                        r->p++;
                        break;
                }
                if (*r->p == '"') {
                        if (!quoted)
                                buf_puts(&r->section, ".");
                        quoted = !quoted;
                } else if (quoted) {
                        if (*r->p == '\\' && r->p + 1 < r->end && r->p[1] != '\n')
                                r->p++;
                        buf_put(&r->section, r->p, 1);
                } else if (!isspace((unsigned char) *r->p))
                        put_lower(&r->section, *r->p);
        }
}

static void read_value(struct reader *r, struct buf *value) {
        bool quoted = false;

        for (; r->p < r->end && *r->p != '\n'; r->p++) {
                if (*r->p == '\\' && r->p + 1 < r->end) {
                        buf_put(value, r->p, 2);
                        r->p++;
                        continue;
                }
                if (*r->p == '"')
                        quoted = !quoted;
                if (!quoted && (*r->p == '#' || *r->p == ';')) {
                        skip_line(r);
                        return;
                }
                buf_put(value, r->p, 1);
        }
}

static int read_key(struct reader *r) {
        _cleanup_(buf_done) struct buf key = {0}, value = {0};
        _cleanup_(freep) char *k = NULL, *v = NULL;

        buf_put(&key, r->section.data, r->section.len);
        buf_puts(&key, ".");
        for (; r->p < r->end && (isalnum((unsigned char) *r->p) || *r->p == '-'); r->p++)
                put_lower(&key, *r->p);
        while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
                r->p++;
        if (r->p < r->end && *r->p == '=') {
                r->p++;
                while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
                        r->p++;
                read_value(r, &value);
        } else
                skip_line(r);
        k = buf_take_string(&key);
        v = buf_take_string(&value);
        if (!k || !v)
                return -ENOMEM;
        if (!r->all && !gitconfig_key_runs(k, v))
                return 0;
        r->n_found++;
        return strv_pushf(&r->found, "%s=%s", k, v);
}

static int read_all(struct reader *r) {
        if (r->end - r->p >= 3 && memcmp(r->p, "\xef\xbb\xbf", 3) == 0)
                r->p += 3; /* git skips a byte-order mark */
        while (r->p < r->end && r->n_found < MOST_FOUND) {
                unsigned char c = (unsigned char) *r->p;
                int q = 0;

                if (isspace(c) || c == 0)
                        r->p++;
                else if (c == '[')
                        read_section(r);
                else if (isalnum(c))
                        q = read_key(r);
                else
                        skip_line(r);
                if (q < 0)
                        return q;
        }
        return r->section.oom ? -ENOMEM : 0;
}

int gitconfig_find_programs(const char *text, size_t len, const char *old, size_t old_len, char **ret) {
        _cleanup_(reader_done) struct reader now = {.p = text, .end = text + len};
        _cleanup_(reader_done) struct reader before = {.p = old, .end = old ? old + old_len : NULL};
        _cleanup_(buf_done) struct buf out = {0};
        _cleanup_(strv_freep) char **named = NULL;
        size_t n = 0;

        if (read_all(&now) < 0 || (old && read_all(&before) < 0))
                return -ENOMEM;
        for (char **f = now.found; f && *f; f++) {
                _cleanup_(freep) char *key = strndup(*f, strcspn(*f, "="));

                if (!key)
                        return -ENOMEM;
                if (strv_contains(before.found, *f) || strv_contains(named, key))
                        continue;
                if (n++ == MOST_NAMED) {
                        buf_puts(&out, ", …");
                        break;
                }
                buf_puts(&out, out.len ? ", " : "");
                text_put_clean(&out, key, strlen(key));
                if (strv_push_take(&named, take_ptr(key)) < 0)
                        return -ENOMEM;
        }
        if (out.len == 0 && !out.oom) {
                *ret = NULL;
                return 0;
        }
        text = buf_take_string(&out);
        if (!text)
                return -ENOMEM;
        *ret = (char *) text;
        return 0;
}

int gitconfig_list(const char *text, size_t len, char ***ret) {
        _cleanup_(reader_done) struct reader r = {.p = text, .end = text + len, .all = true};

        if (read_all(&r) < 0)
                return -ENOMEM;
        *ret = take_ptr(r.found);
        return 0;
}

char *gitconfig_unquote(const char *value) {
        char *out = strdup(value), *to = out;

        if (!out)
                return NULL;
        for (const char *from = value; *from; from++) {
                if (*from == '"')
                        continue;
                if (*from == '\\' && from[1]) {
                        from++;
                        if (*from == '\n')
                                continue;
                        *to++ = *from == 'n' ? '\n' : *from == 't' ? '\t' : *from;
                        continue;
                }
                *to++ = *from;
        }
        while (to > out && isspace((unsigned char) to[-1]))
                to--;
        *to = 0;
        return out;
}
