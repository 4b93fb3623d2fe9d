/* Modules; see modules.h.
 *
 * python puts the current directory before its own modules for -m, -c and a program on its standard input, so a new
 * `json.py` there runs although no command named it. node, npx, make and others look for fixed names. Words are judged
 * loosely: one that is found by mistake holds back files that a person can take with --force. Words that are only
 * printed (`echo make sure that`) do not count. */
#include "modules.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "../base/macro.h"
#include "../base/path.h"
#include "../base/strv.h"

#define NPM "package.json", "node_modules"

/* What a tool reads in the directory that it starts in. */
static const struct {
        const char *tool, *files[5];
} tools[] = {
        {"make", {"GNUmakefile", "makefile", "Makefile"}},
        {"gmake", {"GNUmakefile", "makefile", "Makefile"}},
        {"just", {"justfile", "Justfile", ".justfile"}},
        {"rake", {"rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"}},
        {"npm", {NPM}},
        {"npx", {NPM}},
        {"pnpm", {NPM}},
        {"pnpx", {NPM}},
        {"yarn", {NPM}},
        {"yarnpkg", {NPM}},
        {"bun", {NPM}},
        {"bunx", {NPM}},
        /* of direnv */
        {"dotenv", {".env"}},
        {"dotenv_if_exists", {".env"}},
        {"layout", {"node_modules/.bin", "vendor/bin"}},
        {"use", {"flake.nix", "flake.lock", "shell.nix", "default.nix"}},
};

static bool is_one_of(const char *const *names, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(names[i], name))
                        return true;
        return false;
}

static bool is_require(const char *option) {
        static const char *const names[] = {"-r", "--require", "--import", "--loader", "--experimental-loader"};

        return is_one_of(names, ARRAY_SIZE(names), option);
}

void modules_read_name(struct modules *m, const char *name) {
        static const char *const directories[] = {"PATH",    "PYTHONPATH", "PYTHONHOME", "NODE_PATH", "PERL5LIB",
                                                  "PERLLIB", "RUBYLIB",    "GEM_PATH",   "GEM_HOME",  "-Mlib"};

        if (is_one_of(directories, ARRAY_SIZE(directories), name))
                m->next = MODULES_DIRECTORY;
        else if (is_require(name))
                m->next = MODULES_PACKAGE;
}

bool modules_is_python(const char *word) {
        const char *name = path_basename(word);

        return strcasestr(name, "python") || startswith(name, "pypy");
}

bool modules_is_code(const char *name) {
        static const char *const extensions[] = {"js", "mjs", "cjs", "json", "node", "ts", "mts", "cts", "jsx", "tsx",
                                                 "py", "pyc", "so",  "rb",   "pl",   "pm", "sh",  "lua", "php"};
        const char *dot = strrchr(name, '.');

        return dot && is_one_of(extensions, ARRAY_SIZE(extensions), dot + 1);
}

static bool is_python_file(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && (streq(dot, ".py") || streq(dot, ".pyc") || streq(dot, ".so"));
}

bool modules_is_import(const char *path, bool link, bool deep) {
        const char *slash = strchr(path, '/');

        if (!slash)
                return link || is_python_file(path);
        if (deep)
                return link || is_python_file(path);
        return startswith(slash + 1, "__init__.") && !strchr(slash + 1, '/') && is_python_file(slash + 1);
}

/* a.b is a/b.py, a/b.*.so or what is in a/b/, and a/__init__.py runs before it: all of `a` counts. */
static int add_module(const char *word, char ***paths) {
        size_t first = strcspn(word, ".");
        int r;

        if ((!isalpha((unsigned char) word[0]) && word[0] != '_') ||
            word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")])
                return 0;
        r = strv_pushf(paths, "%.*s", (int) first, word);
        return r < 0 ? r : strv_pushf(paths, "__pycache__/%.*s", (int) first, word);
}

static int add_directories(const char *word, char ***paths) {
        int r = 0;

        for (const char *p = word; r >= 0 && *p;) {
                size_t len = strcspn(p, ":");

                if (len > 0)
                        r = strv_pushf(paths, "%.*s", (int) len, p);
                p += len + (p[len] == ':');
        }
        return r;
}

/* -m, -mNAME, and -m after others of python's flags in one word; -c in the same manner. */
static int read_m(struct modules *m, const char *word, char ***paths) {
        const char *flag = word + 1 + strspn(word + 1, "bBdEiIOPqsSuvx");

        if (flag[0] != 'm' && flag[0] != 'c')
                return 0;
        m->named = true;
        if (flag[0] == 'c')
                return 0;
        if (flag[1])
                return add_module(flag + 1, paths);
        m->next = MODULES_MODULE;
        return 0;
}

static int read_option(struct modules *m, const char *word, char ***paths) {
        if (is_require(word))
                m->next = MODULES_PACKAGE;
        else if (m->tool && streq(word, "-f"))
                m->next = MODULES_FILE;
        else if (m->interpreter && !m->python && streq(word, "-I"))
                m->next = MODULES_DIRECTORY;
        else if (m->interpreter && !m->python && word[1] == 'I')
                return add_directories(word + 2, paths);
        else if (m->interpreter && isalpha((unsigned char) word[1]) && strchr(word, '/'))
                return strv_push(paths, word + 2); /* -r./x */
        else
                return read_m(m, word, paths);
        return 0;
}

static int read_word(struct modules *m, const char *word, char ***paths) {
        int next = m->next;

        if (word[0] == '-') /* also between an option and what it takes: it may have been another one */
                return read_option(m, word, paths);
        m->next = MODULES_NOTHING;
        switch (next) {
        case MODULES_MODULE:
                return add_module(word, paths);
        case MODULES_PACKAGE:
                return strv_pushf(paths, "node_modules/%s", word);
        case MODULES_FILE:
                return strv_push(paths, word);
        case MODULES_DIRECTORY:
                return add_directories(word, paths);
        default:
                return 0;
        }
}

int modules_read(struct modules *m, const char *word, char ***paths, bool *imports) {
        static const char *const interpreters[] = {"perl", "ruby", "node", "nodejs", "lua", "php", "prove", "irb"};
        const char *name = path_basename(word);
        int r;

        if (!m->begun)
                m->prints = streq(word, "echo") || streq(word, "printf");
        m->begun = true;
        if (m->prints)
                return 0;
        m->script = m->python && !m->named && word[0] != '-';
        m->named = m->named || m->script;
        if (modules_is_python(word) && !m->script)
                m->python = m->interpreter = *imports = true;
        if (is_one_of(interpreters, ARRAY_SIZE(interpreters), name))
                m->interpreter = true;
        r = read_word(m, word, paths);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(tools); i++) {
                if (!streq(tools[i].tool, name))
                        continue;
                m->tool = tools[i].tool;
                for (const char *const *f = tools[i].files; r >= 0 && f < tools[i].files + 5 && *f; f++)
                        r = strv_push(paths, *f);
        }
        return r;
}
