/* hutch init: a first policy file for a workspace, commented, with what was found there. Nothing is ever overwritten.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs.h"

struct init_options {
        bool schema, print;
};

static const struct option options[] = {
        {"print", 0, NULL, "print the file instead of writing it", OPTION_AT(struct init_options, print)},
        {"schema", 0, NULL, "print the JSON schema of policy files, for editors",
         OPTION_AT(struct init_options, schema)},
        {0},
};

static const struct sign {
        const char *file, *found, *hosts; /* hosts: where its packages come from */
} languages[] = {
        {"package.json", "Node", "registry.npmjs.org"},
        {"pyproject.toml", "Python", "pypi.org\", \"files.pythonhosted.org"},
        {"requirements.txt", "Python", "pypi.org\", \"files.pythonhosted.org"},
        {"setup.py", "Python", "pypi.org\", \"files.pythonhosted.org"},
        {"Cargo.toml", "Rust", "index.crates.io\", \"static.crates.io"},
        {"go.mod", "Go", "proxy.golang.org\", \"sum.golang.org"},
        {"CMakeLists.txt", "C or C++", NULL},
        {"meson.build", "C or C++", NULL},
        {"Makefile", "make", NULL},
        {0},
};

static const struct sign agents[] = {
        {"CLAUDE.md", "Claude Code", "api.anthropic.com"},
        {".claude", "Claude Code", "api.anthropic.com"},
        {"AGENTS.md", "an agent that reads AGENTS.md", NULL},
        {"GEMINI.md", "Gemini", NULL},
        {".codex", "Codex", NULL},
        {".cursor", "Cursor", NULL},
        {".aider.conf.yml", "aider", NULL},
        {0},
};

static bool exists(int dir, const char *name) {
        struct stat st;

        return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Each thing once, in the order of the table. */
static void put_found(FILE *to, int dir, const struct sign *signs, const char *what) {
        const char *before = NULL;

        for (const struct sign *s = signs; s->file; s++) {
                if ((before && !strcmp(before, s->found)) || !exists(dir, s->file))
                        continue;
                fprintf(to, "# found: %s (%s: %s)\n", s->file, what, s->found);
                before = s->found;
        }
}

static void put_hosts(FILE *to, int dir) {
        const struct sign *const tables[] = {languages, agents};
        const char *before = NULL;
        bool any = false;

        for (size_t i = 0; i < 2; i++)
                for (const struct sign *s = tables[i]; s->file; s++) {
                        if (!s->hosts || (before && !strcmp(before, s->hosts)) || !exists(dir, s->file))
                                continue;
                        fprintf(to, any ? ", \"%s\"" : "#  allow: [\"%s\"", s->hosts);
                        before = s->hosts;
                        any = true;
                }
        fputs(any ? "]\n" : "#  allow: [\"example.org:443\", \"*.example.net\"]\n", to);
}

static void put_file(FILE *to, int dir) {
        fputs("# The policy of boxes that work on this directory; see hutch.yaml(5). What it restricts applies at "
              "once, what it\n"
              "# grants after 'hutch trust'. 'hutch explain' shows the result and the line behind each value.\n",
              to);
        put_found(to, dir, languages, "language");
        put_found(to, dir, agents, "agent");
        if (exists(dir, ".git"))
                fputs("# found: .git (git: commits work in the box; .git/config and hooks are read-only)\n", to);
        fputs("version: 1\n"
              "\n"
              "filesystem:\n"
              "  hide: [\"**/.env\"]       # masked in the box\n"
              "#  read: [~/sdk]           # further paths, read-only\n"
              "#  write: [~/.cache/app]   # further paths, read-write\n"
              "\n"
              "# Keep the box's changes apart until 'hutch diff' and 'hutch apply':\n"
              "#workspace: {mode: cow}\n"
              "\n"
              "# No network unless a host is named:\n"
              "#network:\n",
              to);
        put_hosts(to, dir);
        fputs("\n"
              "#limits: {timeout: 30m, memory: 4G, pids: 2000}\n"
              "#env: {set: {CI: \"1\"}, pass: [LC_ALL], block: [AWS_*]}\n",
              to);
        if (exists(dir, ".git"))
                fputs("#git: {name: \"Agent\", email: \"agent@localhost\"}   # default: yours\n", to);
}

static int write_file(int dir) {
        int fd = openat(dir, "hutch.yaml", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
        bool failed;

        if (!to) {
                cli_complain(errno == EEXIST
                                     ? "hutch.yaml: already exists, and is left as it is (see it beside a new one with "
                                       "--print)"
                                     : "hutch.yaml: %s",
                             hutch_errno_text(errno));
                if (fd >= 0)
                        close(fd);
                return EXIT_HUTCH;
        }
        put_file(to, dir);
        failed = fflush(to) != 0;
        if (fclose(to) != 0 || failed) {
                cli_complain("cannot write hutch.yaml: %s", hutch_errno_text(errno));
                unlinkat(dir, "hutch.yaml", 0);
                return EXIT_HUTCH;
        }
        printf("wrote hutch.yaml; edit it, then accept what it grants with 'hutch trust'\n");
        return 0;
}

static int init(const struct invocation *in) {
        const struct init_options *o = in->options;
        int dir, status = 0;
        char *schema;

        if (o->schema) {
                if (hutch_policy_schema(&schema) < 0) {
                        cli_complain("out of memory");
                        return EXIT_HUTCH;
                }
                puts(schema);
                hutch_free(schema);
                return 0;
        }
        dir = open(in->n_args ? in->args[0] : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0) {
                cli_complain("%s: %s", in->n_args ? in->args[0] : ".", hutch_errno_text(errno));
                return EXIT_HUTCH;
        }
        if (o->print)
                put_file(stdout, dir);
        else
                status = write_file(dir);
        close(dir);
        return status;
}

const struct verb verb_init = {
        .name = "init",
        .synopsis = "[OPTIONS] [DIR]",
        .summary = "write a first policy file for a workspace",
        .max_args = 1,
        .options = options,
        .size = sizeof(struct init_options),
        .run = init,
};
