/* What comes from another machine: downloads, archives that are unpacked, repositories that are cloned, and where their
 * files are found again. A directory with such files is noted by its name with a slash at the end. */
#include <stdio.h>
#include <string.h>

#include "sh_eval.h"

#define LEVELS_MOST 32   /* of directories above a file */
#define SEARCHED_MOST 32 /* directories of PATH */

static const struct value fetched = {.s = "", .fetched = true};

bool is_fetch_name(const char *name) {
        static const char *const names[] = {"curl",     "wget",  "fetch", "aria2c", "lynx", "nc",   "ncat",
                                            "scp",      "ftp",   "tftp",  "rsync",  "http", "axel", "dig",
                                            "nslookup", "drill", "wget2", "curlie", "xh"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

/* ---- paths ---- */

struct field path_join(struct eval *ev, const char *dir, size_t dir_len, const char *name, size_t len) {
        struct text t = {.arena = ev->arena};

        while (len > 1 && name[0] == '.' && name[1] == '/') {
                name += 2;
                len -= 2;
        }
        text_add(&t, dir, dir_len);
        if (dir_len > 0 && dir[dir_len - 1] != '/')
                text_addc(&t, '/');
        text_add(&t, name, len);
        return (struct field){.s = text_str(&t), .len = t.len};
}

/* One that begins with what is not known could be. */
static bool is_absolute(const char *path) {
        return path[0] == '/' || path[0] == '~' || path[0] == '\1';
}

/* Where a path leads from the directory that the script has entered; false: to where it says, or too far. */
bool path_from_here(const struct eval *ev, const char *path, size_t len, char ret[PATH_MOST], size_t *ret_len) {
        if (!ev->cwd_len || !len || is_absolute(path) || ev->cwd_len + 1 + len >= PATH_MOST)
                return false;
        while (len > 2 && path[0] == '.' && path[1] == '/') {
                path += 2;
                len -= 2;
        }
        memcpy(ret, ev->cwd, ev->cwd_len);
        ret[ev->cwd_len] = '/';
        memcpy(ret + ev->cwd_len + 1, path, len);
        *ret_len = ev->cwd_len + 1 + len;
        return true;
}

static void enter(struct eval *ev, const struct command *c) {
        const struct field *to = c->argc > 1 ? &c->argv[c->argc - 1] : NULL;
        char path[PATH_MOST];
        size_t len = 0;

        if (to && !to->dynamic && !streq(to->s, "-") && !streq(to->s, "..") &&
            !path_from_here(ev, to->s, to->len, path, &len) && to->len < PATH_MOST / 2) {
                memcpy(path, to->s, to->len);
                len = to->len;
        }
        while (len > 1 && path[len - 1] == '/')
                len--;
        ev->cwd_len = len < PATH_MOST / 2 ? len : 0;
        ev->cwd = arena_copy(ev->arena, path, ev->cwd_len);
}

/* ---- directories with fetched files ---- */

static void note_tree(struct eval *ev, const char *dir, size_t len) {
        char path[PATH_MOST];

        if (!path_from_here(ev, dir, len, path, &len)) {
                if (len >= PATH_MOST)
                        return;
                memcpy(path, dir, len);
        }
        while (len > 0 && path[len - 1] == '/')
                len--;
        if (memchr(path, '\1', len))
                return;
        if (len == 1 && path[0] == '.')
                len = 0;
        path[len++] = '/';
        eval_variable(ev, path, len, true)->file = fetched;
        ev->any_tree = true;
}

/* The directory above a path that has fetched files; of "a/b/c": "a/", "a/b/", or "/" for where the script began. */
const struct variable *find_tree(struct eval *ev, const char *path, size_t len) {
        const struct variable *var;
        char full[PATH_MOST];

        if (!ev->any_tree)
                return NULL;
        if (path_from_here(ev, path, len, full, &len))
                path = full;
        for (size_t n = 1, levels = 0; n <= len && n < PATH_MOST && levels < LEVELS_MOST; n++) {
                if (path[n - 1] != '/')
                        continue;
                levels++;
                var = n > 1 ? eval_variable(ev, path, n, false) : NULL;
                if (var && var->file.fetched)
                        return var;
        }
        var = len == 0 || is_absolute(path) ? NULL : eval_variable(ev, "/", 1, false);
        return var && var->file.fetched ? var : NULL;
}

/* ---- downloads ---- */

/* The last component of an address: what curl -O and wget write. */
static struct field url_file(const struct command *c) {
        for (size_t i = c->argc; i-- > 1;) {
                const struct field *f = &c->argv[i];
                const char *slash = f->len && memmem(f->s, f->len, "://", 3) ? memrchr(f->s, '/', f->len) : NULL;

                if (slash && slash[1])
                        return (struct field){.s = slash + 1, .len = f->len - (size_t) (slash + 1 - f->s)};
        }
        return (struct field){.s = ""};
}

/* wget -r and -m make a directory with the name of the host. */
static bool is_recursive(const struct command *c) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *a = c->argv[i].s;

                if (streq(a, "--recursive") || streq(a, "--mirror") ||
                    (a[0] == '-' && a[1] != '-' && strpbrk(a, "rm") && !strpbrk(a, "OPo")))
                        return true;
        }
        return false;
}

static void note_host(struct eval *ev, const struct command *c) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *host = memmem(c->argv[i].s, c->argv[i].len, "://", 3);

                if (host)
                        note_tree(ev, host + 3, strcspn(host + 3, "/:"));
        }
}

void fetch_download(struct eval *ev, const struct command *c) {
        struct field last = url_file(c);
        bool wget = streq(c->name, "wget");

        for (size_t i = 1; i < c->argc; i++) {
                const char *a = c->argv[i].s, *equals = strchr(a, '=');
                char letter = wget ? 'O' : 'o';
                const char *at = a[0] == '-' && a[1] != '-' ? strchr(a, letter) : NULL;

                if (a[0] != '-')
                        continue;
                if (strncmp(a, "--output", 8) == 0 && equals) {
                        note_file(ev, equals + 1, strlen(equals + 1), fetched);
                        return;
                }
                if (at && at[1]) {
                        note_file(ev, at + 1, strlen(at + 1), fetched);
                        return;
                }
                if (at || strncmp(a, "--output", 8) == 0) {
                        if (i + 1 < c->argc)
                                note_file(ev, c->argv[i + 1].s, c->argv[i + 1].len, fetched);
                        return;
                }
                if (wget && streq(a, "-P") && i + 1 < c->argc && last.len) {
                        struct text t = {.arena = ev->arena};

                        text_add(&t, c->argv[i + 1].s, c->argv[i + 1].len);
                        text_addc(&t, '/');
                        text_add(&t, last.s, last.len);
                        note_file(ev, text_str(&t), t.len, fetched);
                }
        }
        if ((streq(c->name, "scp") || streq(c->name, "rsync")) && c->argc > 2 && strchr(c->argv[c->argc - 2].s, ':')) {
                note_file(ev, c->argv[c->argc - 1].s, c->argv[c->argc - 1].len, fetched);
                note_tree(ev, c->argv[c->argc - 1].s, c->argv[c->argc - 1].len);
        }
        if (wget && is_recursive(c))
                note_host(ev, c);
        if (last.len && (wget || streq(c->name, "curl")))
                note_file(ev, last.s, last.len, fetched);
}

/* ---- clones and archives ---- */

static bool is_address(const struct field *f) {
        const char *colon = memchr(f->s, ':', f->len);

        return colon && colon > f->s && !memchr(f->s, '/', (size_t) (colon - f->s)) && colon[1];
}

/* git clone ADDRESS [DIRECTORY], and what works like it. */
static void note_clone(struct eval *ev, const struct command *c, size_t from) {
        const struct field *address = NULL;
        const char *base, *end;

        for (size_t i = from; i < c->argc; i++) {
                const struct field *f = &c->argv[i];

                if (!address && f->s[0] != '-' && is_address(f))
                        address = f;
                else if (address && f->s[0] != '-') {
                        note_tree(ev, f->s, f->len);
                        return;
                }
        }
        if (!address)
                return;
        end = address->s + address->len;
        while (end > address->s && end[-1] == '/')
                end--;
        if (end - address->s > 4 && memcmp(end - 4, ".git", 4) == 0)
                end -= 4;
        base = memrchr(address->s, '/', (size_t) (end - address->s));
        if (!base)
                base = memchr(address->s, ':', address->len);
        note_tree(ev, base + 1, (size_t) (end - base - 1));
}

/* The value of an option, in the same word or in the next one. */
static struct field option_value(const struct command *c, const char *option) {
        size_t n = strlen(option);

        for (size_t i = 1; i < c->argc; i++) {
                const struct field *f = &c->argv[i];

                if (strncmp(f->s, option, n) != 0)
                        continue;
                if (f->len > n)
                        return (struct field){.s = f->s + n + (f->s[n] == '='), .len = f->len - n - (f->s[n] == '=')};
                if (i + 1 < c->argc)
                        return c->argv[i + 1];
        }
        return (struct field){.s = ""};
}

/* tar, unzip and others, with an archive that was fetched: what they unpack was, too. */
static void note_unpacked(struct eval *ev, const struct command *c, struct value input, const char *option) {
        struct field dir = option_value(c, option);
        bool is_fetched = input.fetched;

        if (!dir.len && streq(option, "-C"))
                dir = option_value(c, "--directory");
        for (size_t i = 1; i < c->argc && !is_fetched; i++) {
                const struct variable *file = find_file(ev, c->argv[i].s, c->argv[i].len);

                is_fetched = file && file->file.fetched;
        }
        if (is_fetched)
                note_tree(ev, dir.s, dir.len);
}

/* gunzip FILE.gz makes FILE. */
static void note_expanded(struct eval *ev, const struct command *c) {
        for (size_t i = 1; i < c->argc; i++) {
                const struct field *f = &c->argv[i];
                const char *dot = memrchr(f->s, '.', f->len);
                const struct variable *file = dot && dot > f->s ? find_file(ev, f->s, f->len) : NULL;

                if (file && file->file.fetched)
                        note_file(ev, f->s, (size_t) (dot - f->s), fetched);
        }
}

static bool is_extraction(const struct command *c) {
        for (size_t i = 1; i < c->argc; i++) {
                const char *a = c->argv[i].s;

                if (streq(a, "--extract") || streq(a, "--get") ||
                    ((i == 1 || (a[0] == '-' && a[1] != '-')) && strchr(a, 'x')))
                        return true;
        }
        return false;
}

/* ---- commands ---- */

static bool has_fetched_argument(struct eval *ev, const struct command *c) {
        for (size_t i = 1; i < c->argc; i++) {
                const struct field *f = &c->argv[i];
                const struct variable *file = find_file(ev, f->s, f->len);

                if ((file && file->file.fetched) || (f->s[0] != '-' && find_tree(ev, f->s, f->len)))
                        return true;
        }
        return false;
}

/* Make runs the rules of the directory that it is in, or that -C names. */
static bool makes_fetched(struct eval *ev, const struct command *c) {
        struct field dir = option_value(c, "-C"), file = path_join(ev, dir.s, dir.len, "Makefile", 8);

        return find_tree(ev, file.s, file.len);
}

/* What programs do with files, as far as it counts here. */
enum use { USE_CD, USE_CLONE, USE_CHECKOUT, USE_TAR, USE_UNPACK, USE_EXPAND, USE_MAKE, USE_RUN };

static const struct {
        const char *name;
        enum use use;
        const char *option; /* the directory */
} uses[] = {                /* in the order of their names */
            {"7z", USE_UNPACK, "-o"},      {"7za", USE_UNPACK, "-o"},    {"apt", USE_RUN, NULL},
            {"apt-get", USE_RUN, NULL},    {"at", USE_RUN, NULL},        {"bsdtar", USE_TAR, "-C"},
            {"bunzip2", USE_EXPAND, NULL}, {"bzip2", USE_EXPAND, NULL},  {"cd", USE_CD, NULL},
            {"cpio", USE_UNPACK, "-D"},    {"dpkg", USE_RUN, NULL},      {"enable", USE_RUN, NULL},
            {"git", USE_CLONE, NULL},      {"gmake", USE_MAKE, NULL},    {"gunzip", USE_EXPAND, NULL},
            {"gzip", USE_EXPAND, NULL},    {"hg", USE_CLONE, NULL},      {"insmod", USE_RUN, NULL},
            {"make", USE_MAKE, NULL},      {"ninja", USE_MAKE, NULL},    {"npm", USE_RUN, NULL},
            {"pax", USE_UNPACK, "-D"},     {"pip", USE_RUN, NULL},       {"pip3", USE_RUN, NULL},
            {"popd", USE_CD, NULL},        {"pushd", USE_CD, NULL},      {"rpm", USE_RUN, NULL},
            {"svn", USE_CHECKOUT, NULL},   {"tar", USE_TAR, "-C"},       {"unxz", USE_EXPAND, NULL},
            {"unzip", USE_UNPACK, "-d"},   {"unzstd", USE_EXPAND, NULL}, {"xz", USE_EXPAND, NULL},
            {"zstd", USE_EXPAND, NULL}};

static size_t find_use(const char *name) {
        size_t low = 0, high = ARRAY_SIZE(uses);

        while (low < high) {
                size_t middle = (low + high) / 2;
                int order = strcmp(name, uses[middle].name);

                if (order == 0)
                        return middle;
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return ARRAY_SIZE(uses);
}

bool fetch_note(struct eval *ev, const struct command *c, struct value input) {
        const char *verb = c->argc > 1 ? c->argv[1].s : "";
        size_t at = find_use(c->name);

        if (at == ARRAY_SIZE(uses))
                return false;
        switch (uses[at].use) {
        case USE_CD:
                enter(ev, c);
                return false;
        case USE_CLONE:
                for (size_t i = 1; i + 1 < c->argc; i++)
                        if (streq(c->argv[i].s, "clone"))
                                note_clone(ev, c, i + 1);
                return false;
        case USE_CHECKOUT:
                if (streq(verb, "checkout") || streq(verb, "co") || streq(verb, "export"))
                        note_clone(ev, c, 2);
                return false;
        case USE_TAR:
                if (is_extraction(c))
                        note_unpacked(ev, c, input, uses[at].option);
                return false;
        case USE_UNPACK:
                note_unpacked(ev, c, input, uses[at].option);
                return false;
        case USE_EXPAND:
                note_expanded(ev, c);
                return false;
        case USE_MAKE:
                return makes_fetched(ev, c);
        case USE_RUN: /* what is in the files that they are given, as scripts of packages */
                return has_fetched_argument(ev, c);
        }
        return false;
}

static bool is_program_in(struct eval *ev, const char *dir, size_t n, const struct field *name, char ret[PATH_MOST],
                          size_t *ret_len) {
        if (n == 0 || n + 1 + name->len >= PATH_MOST || memchr(dir, '\1', n))
                return false;
        memcpy(ret, dir, n);
        ret[n] = '/';
        memcpy(ret + n + 1, name->s, name->len);
        *ret_len = n + 1 + name->len;
        return find_file(ev, ret, *ret_len) || (dir[0] != '/' && find_tree(ev, ret, *ret_len));
}

/* The file that the script put where programs are looked up: in a directory of PATH, or in one that is named bin. */
struct field find_program(struct eval *ev, const struct field *name) {
        const struct variable *bin;
        const char *at = ev->any_file || ev->any_tree ? ev->path : NULL;
        char found[PATH_MOST];
        size_t len;

        for (unsigned dirs = 0; at && *at && dirs < SEARCHED_MOST; dirs++) {
                size_t n = strcspn(at, ":");

                if (is_program_in(ev, at, n, name, found, &len))
                        return (struct field){.s = arena_copy(ev->arena, found, len), .len = len, .off = name->off};
                at += n + (at[n] == ':');
        }
        if (!ev->any_program || 4 + name->len >= PATH_MOST)
                return (struct field){.s = ""};
        len = (size_t) snprintf(found, sizeof(found), "bin/%s", name->s);
        bin = eval_variable(ev, found, len, false);
        return bin && bin->is_program ? (struct field){.s = bin->name, .len = len, .off = name->off}
                                      : (struct field){.s = ""};
}
