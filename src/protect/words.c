/* Words that could be paths; see words.h.
 *
 * Text is cut at everything that a shell separates words by, and nothing is expanded. A word counts relative to each
 * directory that the program may start at, and to each directory that the text itself names before it (`cd tools &&
 * ./x`). A word that leads nowhere costs nothing, and one that is not a path protects a file by that name.
 *
 * A value of git's configuration is short and is about programs, so every word with a slash in it counts, directories
 * included. A hook is a program that a person wrote: a directory that it names is often what it checks (`clang-format
 * src`), so it is only a place where later words may start. A pattern (`hooks.d/ *`) stands for the programs of its
 * directory. What a hook or a value runs is read in the same manner if it is a script, and what that runs, too; there
 * only words that stand where a command does count, or that are programs already.
 *
 * Names that a program looks up by itself (`python -m`, `make`, `npx`) are in modules.c, and a path may lack the
 * extension of its language (`node tools/x`).
 *
 * In a script, what follows `import`, `from` or `include` is one too, if it looks like a path.
 *
 * This cannot find a path that a program composes, nor everything that a module or a build file names in its own
 * language: hutch-security(7) says so. */
#include "words.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "hooklist.h"
#include "leads.h"
#include "modules.h"

#define MOST_SCRIPT ((size_t) 64 * 1024)
#define MOST_SCRIPTS 256
#define MOST_DEPTH 3
#define MOST_NAMED 16

enum kind {
        VALUE, /* of a configuration */
        HOOK,
        LIST,   /* a file that says what hooks run */
        SCRIPT, /* what one of the others runs */
};

struct text {
        const struct words *w;
        const char *why;
        enum kind kind;
        unsigned depth;
        bool runs;
        bool python;  /* the word is a script that python runs */
        char **named; /* directories that the text names, absolute */
};

static int read_script(const struct text *t, const char *path, enum kind kind, const char *why);

static bool is_one_of(const char *const *names, size_t n, const char *word) {
        const char *name = path_basename(word);

        for (size_t i = 0; i < n; i++)
                if (streq(names[i], name))
                        return true;
        return false;
}

static bool is_interpreter(const char *word) {
        static const char *const names[] = {
                "sh", "bash", "dash", "zsh", "ksh", "env", "exec", "source", "python", "python3", "perl", "ruby", "awk",
                "node", "php", "nodejs", "deno", "bun", "lua", "tclsh", "sed", "eval", "run-parts",
                /* of direnv */
                "source_env", "source_env_if_exists", "PATH_add", "load_prefix", "dotenv", "dotenv_if_exists"};

        return streq(word, ".") || is_one_of(names, ARRAY_SIZE(names), word);
}

/* What makes its next word the directory that others start at. */
static bool is_change_of_directory(const char *word) {
        static const char *const names[] = {"cd", "pushd", "chdir", "-C", "--chdir", "--directory", "--prefix"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(names[i], word))
                        return true;
        return false;
}

/* Words that a command may follow. */
static bool is_before_command(const char *word) {
        static const char *const names[] = {"if",   "then",  "else", "elif",    "do",   "while", "until", "!",
                                            "time", "nohup", "nice", "command", "sudo", "xargs", "exec",  "builtin"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(names[i], word))
                        return true;
        return false;
}

static mode_t mode_of(const struct protect *p, const char *path, char **ret_resolved) {
        _cleanup_(freep) char *resolved = NULL;
        struct stat st;

        if (protect_resolve(p, PROTECT_HOST, path, NULL, &resolved) < 0 ||
            protect_stat(p, PROTECT_HOST, resolved, &st) < 0)
                return 0;
        if (ret_resolved)
                *ret_resolved = take_ptr(resolved);
        return st.st_mode;
}

/* ---- one word at one place ---- */

/* A directory that is there to be run, by its name: hooks.d, git-hooks. */
static bool is_of_programs(const char *name) {
        size_t len = strlen(name);

        return (len > 2 && streq(name + len - 2, ".d")) || strstr(name, "hook");
}

/* Everything that a pattern could mean: the directory above the first wildcard. */
static int add_pattern(const struct text *t, const char *path) {
        size_t len = strcspn(path, "*?[");
        _cleanup_(freep) char *directory = NULL;

        while (len > 1 && path[len - 1] != '/')
                len--;
        directory = strndup(path, len > 1 ? len - 1 : len);
        if (!directory)
                return -ENOMEM;
        return leads_add(t->w->p, directory, t->why,
                         t->kind == VALUE || is_of_programs(path_basename(directory)) ? LEAD_WHOLE : LEAD_PROGRAMS);
}

static int add_named(struct text *t, const char *path) {
        if (strv_length(t->named) >= MOST_NAMED)
                return 0;
        for (char **n = t->named; n && *n; n++)
                if (streq(*n, path))
                        return 0;
        return strv_push(&t->named, path);
}

static bool has_extension(const char *path, const char *extension) {
        const char *dot = strrchr(path, '.');

        return dot && streq(dot, extension);
}

static int add_modules(struct protect *p, const char *directory, const char *why, enum lead_kind kind) {
        _cleanup_(freep) char *longer = NULL;

        if (asprintf(&longer, "%s: python imports from this directory", why) < 0)
                return -ENOMEM;
        return leads_add(p, directory, longer, kind);
}

/* python imports from the directory of the script that it runs. */
static int add_modules_beside(const struct text *t, const char *path) {
        _cleanup_(freep) char *resolved = NULL, *directory = NULL;
        int r = protect_resolve(t->w->p, PROTECT_HOST, path, NULL, &resolved);

        if (r >= 0)
                r = path_dirname(resolved, &directory);
        return r < 0 ? r : add_modules(t->w->p, directory, t->why, LEAD_MODULES);
}

/* `node tools/x` runs tools/x.js. */
static int read_extended(const struct text *t, const char *path) {
        static const char *const extensions[] = {"js", "mjs", "cjs", "ts", "py", "rb", "pm"};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(extensions); i++) {
                _cleanup_(freep) char *name = NULL;

                if (asprintf(&name, "%s.%s", path, extensions[i]) < 0)
                        return -ENOMEM;
                r = read_script(t, name, SCRIPT, t->why);
        }
        return r;
}

/* A word as an absolute path. `command`: it stands where a command or the script of an interpreter does. */
static int add_at(struct text *t, const char *path, bool command) {
        _cleanup_(freep) char *clean = NULL;
        mode_t mode;
        int r;

        if (strpbrk(path, "*?["))
                return add_pattern(t, path);
        r = path_make_absolute(path, NULL, &clean);
        if (r < 0)
                return r;
        mode = mode_of(t->w->p, clean, NULL);
        if (S_ISDIR(mode)) {
                r = add_named(t, clean);
                if (r < 0 || (t->kind != VALUE && !command))
                        return r;
        }
        if (t->kind == SCRIPT && !command && !(S_ISREG(mode) && (mode & 0111)))
                return 0;
        r = leads_add(t->w->p, clean, t->why, t->runs ? LEAD_NAME : LEAD_WHOLE);
        if (r >= 0 && t->runs && ((t->python && command) || has_extension(clean, ".py")))
                r = add_modules_beside(t, clean);
        if (r < 0 || t->depth >= MOST_DEPTH || (t->kind == VALUE && !t->runs))
                return r;
        if (!mode && command)
                return read_extended(t, clean);
        return S_ISREG(mode) ? read_script(t, clean, SCRIPT, t->why) : 0;
}

/* What to do with a word at each place that it may mean. */
enum use {
        USE_PATH,
        USE_COMMAND,
        USE_BASE,    /* later words may start there, and it is nothing by itself */
        USE_PLACE,   /* the same, if the host has the directory */
        USE_IMPORTS, /* python may import from there */
};

static int use_at(struct text *t, const char *path, enum use use) {
        _cleanup_(freep) char *clean = NULL;
        int r;

        if (use == USE_PATH || use == USE_COMMAND)
                return add_at(t, path, use == USE_COMMAND);
        r = path_make_absolute(path, NULL, &clean);
        if (r < 0)
                return r;
        if (use == USE_PLACE && !S_ISDIR(mode_of(t->w->p, clean, NULL)))
                return 0;
        return use == USE_BASE || use == USE_PLACE ? add_named(t, clean)
                                                   : add_modules(t->w->p, clean, t->why, LEAD_NEW_MODULES);
}

static int use_from(struct text *t, const char *base, const char *word, enum use use) {
        _cleanup_(freep) char *whole = NULL;

        if (!base)
                return 0;
        /* "$(git rev-parse --show-toplevel)/tools/x" ends in what looks like an absolute path. */
        whole = protect_join(base, word + strspn(word, "/"));
        return whole ? use_at(t, whole, use) : -ENOMEM;
}

static int use_word(struct text *t, const char *word, enum use use) {
        size_t named = strv_length(t->named);
        int r = 0;

        if (word[0] == '~') {
                const char *slash = strchr(word, '/'), *home = getenv("HOME");

                return slash && word[1] == '/' ? use_from(t, home, slash + 1, use) : 0;
        }
        for (size_t i = 0; r >= 0 && i < WORDS_BASES; i++)
                r = use_from(t, t->w->bases[i], word, use);
        for (size_t i = 0; r >= 0 && i < named; i++)
                r = use_from(t, t->named[i], word, use);
        return r >= 0 && word[0] == '/' ? use_at(t, word, use) : r;
}

/* ---- the words of a text ---- */

/* Whether the next words are files that a module or a build file takes in. */
enum inclusion {
        INCLUDES_NOTHING,
        INCLUDES_PATH,  /* one, with a slash in it: anything else is a package, or prose */
        INCLUDES_FILES, /* all until the end of the line */
};

static enum inclusion inclusion_of(const char *word) {
        static const char *const paths[] = {"import", "from", "require", "load"};
        static const char *const files[] = {"include",      "-include",     "sinclude",
                                            "include_once", "require_once", "require_relative"};

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                if (streq(paths[i], word))
                        return INCLUDES_PATH;
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (streq(files[i], word))
                        return INCLUDES_FILES;
        return INCLUDES_NOTHING;
}

/* What the next word is, by those before it in the same command. */
struct state {
        bool command, after_interpreter, after_directory, variable, assigned;
        enum inclusion inclusion;
        struct modules modules;
};

/* What the word stands for to a program that finds its files by itself. */
static int use_modules(struct text *t, struct state *s, const char *word) {
        _cleanup_(strv_freep) char **paths = NULL;
        bool imports = false;
        int r = modules_read(&s->modules, word, &paths, &imports);

        t->python = false;
        for (char **path = paths; r >= 0 && path && *path; path++)
                r = use_word(t, *path, USE_COMMAND);
        t->python = s->modules.script;
        return r >= 0 && imports ? use_word(t, "", USE_IMPORTS) : r;
}

/* The value of a variable, `D=tools`: a place where `$D/x` may be, or a script. */
static int use_assigned(struct text *t, const char *word) {
        int r = modules_is_code(word) ? use_word(t, word, USE_PATH) : 0;

        return r < 0 || !isalpha((unsigned char) word[0]) ? r : use_word(t, word, USE_PLACE);
}

/* `import x from "./lib.mjs"`, `include mk/rules.mk`. */
static int use_included(struct text *t, struct state *s, const char *word) {
        enum inclusion now = s->inclusion, next = inclusion_of(word);

        if (next != INCLUDES_NOTHING || now == INCLUDES_PATH)
                s->inclusion = next;
        if (next != INCLUDES_NOTHING || now == INCLUDES_NOTHING || !strpbrk(word, now == INCLUDES_PATH ? "/" : "/."))
                return 0;
        return use_word(t, word, USE_COMMAND);
}

static int use_next(struct text *t, struct state *s, char *word) {
        bool value = t->kind == VALUE, was_command = s->command && !value;
        char *slash = strchr(word, '/');
        int r = 0;

        /* $ROOT/tools/x; of all variables, this one is known */
        if (s->variable && slash) {
                size_t home = startswith(word, "HOME/");

                word[0] = '~';
                memmove(word + home, slash, strlen(slash) + 1);
                slash = word + home;
        }
        s->variable = false;
        if (t->runs) {
                bool assigned = s->assigned && t->kind != VALUE;

                s->assigned = false;
                r = assigned ? use_assigned(t, word) : 0;
                if (r >= 0)
                        r = use_modules(t, s, word);
                if (r >= 0 && !value)
                        r = use_included(t, s, word);
                if (r < 0)
                        return r;
        }
        if (is_change_of_directory(word)) {
                s->after_directory = true;
                s->command = false;
                return 0;
        }
        if (s->after_directory && word[0] != '-') {
                s->after_directory = false;
                r = use_word(t, word, USE_BASE);
                if (r >= 0 && s->modules.tool)
                        r = use_modules(t, s, s->modules.tool); /* make -C sub */
                return r < 0 || t->kind != VALUE || !slash ? r : use_word(t, word, USE_PATH);
        }
        if (word[0] != '-' && t->runs) {
                if ((was_command && slash) || s->after_interpreter)
                        r = use_word(t, word, USE_COMMAND);
                else if (slash)
                        r = use_word(t, word, USE_PATH);
        } else if (slash && word[0] != '-')
                r = use_word(t, word, USE_PATH);
        /* The interpreter's own path is a word like any other; what follows it is the script. In a script, arguments
         * of the script are no scripts. */
        if (is_interpreter(word))
                s->after_interpreter = true;
        else if (!value && word[0] != '-')
                s->after_interpreter = false;
        if (!value && !is_before_command(word))
                s->command = false;
        return r;
}

static int read_words(struct text *t, const char *text) {
        static const char stops[] = " \t\n\r\"'`;|&()<>{}[]=,$!";
        struct state s = {.command = true};
        const char *p = text;

        while (*p) {
                size_t len = strcspn(p, stops);
                _cleanup_(freep) char *word = NULL;
                int r;

                if (len > 0 && p[0] == '#' && t->kind != VALUE && (p == text || isspace((unsigned char) p[-1]))) {
                        p += strcspn(p, "\n");
                        continue;
                }
                if (len == 0) {
                        /* An interpreter is looked for in the whole of a value, which may be one long option. */
                        if (strchr("\n;|&(`{", *p)) {
                                if (t->kind != VALUE)
                                        s = (struct state){.command = true};
                                s.modules = (struct modules){0};
                        }
                        s.assigned = s.assigned && strchr("\"'=", *p);
                        s.variable = *p == '$' || (s.variable && *p == '{');
                        p++;
                        continue;
                }
                word = strndup(p, len);
                if (!word)
                        return -ENOMEM;
                if (p[len] == '=' && !strchr(word, '/') && t->kind != VALUE) {
                        /* An assignment: a command may still follow, and its value may be a path. */
                        s.assigned = word[0] != '-';
                        modules_read_name(&s.modules, word);
                        p += len + 1;
                        continue;
                }
                r = use_next(t, &s, word);
                if (r < 0)
                        return r;
                p += len;
                if (*p == '=')
                        modules_read_name(&s.modules, word);
        }
        return 0;
}

/* ---- scripts ---- */

/* Programs of the system run what is in the tree only if their arguments name it. */
static bool is_of_the_system(const char *path) {
        static const char *const directories[] = {"/usr", "/bin", "/sbin", "/lib", "/nix", "/snap", "/proc", "/dev"};

        for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
                if (path_is_beneath(path, directories[i]))
                        return true;
        return false;
}

static bool is_read_already(struct protect *p, const char *path) {
        for (char **s = p->scripts; s && *s; s++)
                if (streq(*s, path))
                        return true;
        return strv_length(p->scripts) >= MOST_SCRIPTS;
}

static bool is_of_python(const char *script) {
        _cleanup_(freep) char *line = strndup(script, strcspn(script, "\n"));

        return line && strstr(line, "python");
}

static void text_done(struct text *t) {
        strv_free(t->named);
}

static int read_script(const struct text *t, const char *path, enum kind kind, const char *why) {
        struct protect *p = t->w->p;
        _cleanup_(freep) char *resolved = NULL, *data = NULL, *script = NULL, *directory = NULL;
        struct words w = *t->w;
        _cleanup_(text_done) struct text inner = {
                .w = &w, .why = why, .kind = kind, .depth = t->depth + 1, .runs = true};
        size_t len = 0;
        int r;

        if (!S_ISREG(mode_of(p, path, &resolved)) || is_of_the_system(resolved) || is_read_already(p, resolved))
                return 0;
        r = strv_push(&p->scripts, resolved);
        if (r < 0)
                return r;
        r = p->tree->read_file(p->tree->user, PROTECT_HOST, resolved, MOST_SCRIPT, &data, &len);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (memchr(data, 0, len)) /* a program of machine code */
                return 0;
        script = strndup(data, len);
        if (!script)
                return -ENOMEM;
        for (char *line = script; (line = strstr(line, "\\\n"));)
                line[0] = line[1] = ' ';
        if (kind == LIST)
                hooklist_clear(path_basename(resolved), script);
        r = path_dirname(resolved, &directory);
        if (r >= 0 && startswith(script, "#!") && is_of_python(script))
                r = add_modules(p, directory, why, LEAD_MODULES);
        if (r < 0)
                return r;
        w.bases[WORDS_BASES - 1] = directory;
        return read_words(&inner, script);
}

static bool is_sample(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && streq(dot, ".sample");
}

static int add_hooks(const struct text *t, const char *directory, bool deeper) { /* NOLINT(misc-no-recursion) */
        DIR *d = opendir(directory);
        struct dirent *e;
        int r = 0;

        while (d && r >= 0 && (e = readdir(d))) {
                _cleanup_(freep) char *path = NULL;

                if (e->d_name[0] == '.' || is_sample(e->d_name))
                        continue;
                path = protect_join(directory, e->d_name);
                if (!path)
                        r = -ENOMEM;
                else if (e->d_type == DT_DIR && deeper)
                        r = add_hooks(t, path, false);
                else if (e->d_type != DT_DIR)
                        r = read_script(t, path, HOOK, "a hook of the host points here");
        }
        if (d)
                closedir(d);
        return r;
}

/* ---- the face ---- */

int words_add_path(const struct words *w, const char *path, const char *why) {
        _cleanup_(text_done) struct text t = {.w = w, .why = why, .kind = VALUE};

        return use_word(&t, path, USE_PATH);
}

int words_add_value(const struct words *w, const char *value, bool runs, const char *why) {
        _cleanup_(text_done) struct text t = {.w = w, .why = why, .kind = VALUE, .runs = runs};

        return read_words(&t, value);
}

/* husky's own hooks, in a directory "_", run those of the directory above. */
int words_add_hooks(const struct words *w, const char *directory) {
        _cleanup_(freep) char *above = NULL;
        struct text t = {.w = w};
        int r = add_hooks(&t, directory, true);

        if (r < 0 || !streq(path_basename(directory), "_"))
                return r;
        r = path_dirname(directory, &above);
        return r < 0 ? r : add_hooks(&t, above, false);
}

int words_add_hook_lists(const struct words *w, const char *directory) {
        struct text t = {.w = w};
        const char *name;
        int r = 0;

        for (size_t i = 0; r >= 0 && (name = hooklist_name(i)); i++) {
                _cleanup_(freep) char *path = protect_join(directory, name);

                r = path ? read_script(&t, path, LIST, "a list of the host's hooks points here") : -ENOMEM;
        }
        return r;
}

int words_add_script(const struct words *w, const char *path, const char *why) {
        struct text t = {.w = w};

        return read_script(&t, path, HOOK, why);
}
