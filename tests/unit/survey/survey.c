/* The survey on a small tree of files: what is there, where it really lies, what hutch's own directories are. */
#include "survey/survey.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/strv.h"
#include "policy/options.h"
#include "unit.h"

static char top[4096]; /* the tree's top, links resolved */

static const char *in_tree(const char *path) {
        static char rooms[8][4300];
        static unsigned next;
        char *room = rooms[next++ % 8];

        snprintf(room, sizeof(rooms[0]), "%s%s%s", top, path[0] ? "/" : "", path);
        return room;
}

static void must(int r, const char *what) {
        if (r < 0) {
                perror(what);
                abort();
        }
}

static void make_tree(void) {
        static const char *const directories[] = {"home",           "home/work", "home/work/sub", "elsewhere",
                                                  "elsewhere/conf", "locked",    "locked/in"};
        static const char *const links[][2] = {{"work", "home/to-work"},
                                               {"../elsewhere", "home/out"},
                                               {"nothing", "home/dangling"},
                                               {"loop-b", "home/loop-a"},
                                               {"loop-a", "home/loop-b"},
                                               {"home", "home-link"},
                                               {"../elsewhere/conf", "home/.config"}};
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char real[PATH_MAX];
        int fd;

        if (!realpath(unit_folder(), real))
                abort();
        strcpy(top, real);
        for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
                must(mkdir(in_tree(directories[i]), 0755), directories[i]);
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                must(symlink(links[i][0], in_tree(links[i][1])), links[i][1]);
        fd = open(in_tree("home/file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        must(fd, "file");
        close(fd);
        must(mkfifo(in_tree("home/fifo"), 0600), "fifo");
        /* A socket's path is short: bound from within its directory. */
        must(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
        must(chdir(in_tree("home")), "home");
        strcpy(address.sun_path, "sock");
        must(bind(fd, (struct sockaddr *) &address, sizeof(address)), "bind");
        must(chdir("/"), "/");
        close(fd);
        must(chmod(in_tree("locked"), 0), "locked");
}

static struct survey *survey(const char *const *said, const char *const *env) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL;
        struct survey *s = NULL;

        assert_int_equal(policy_new(in_tree("home/work"), in_tree("home"), &p), 0);
        assert_int_equal(policy_use_preset(p, HUTCH_PRESET_RUN, NULL), 0);
        for (; said && said[0]; said += 2)
                assert_int_equal(policy_set_option(p, said[0], said[1], NULL), 0);
        assert_int_equal(survey_make(p, (char *const *) env, &s, NULL), 0);
        return s;
}

static const struct path_row {
        const char *name, *path; /* beneath the tree's top, or absolute */
        const char *real;        /* the same; NULL: not there */
        int errnum;
        mode_t type;
} path_rows[] = {
        {"a directory", "home/work", "home/work", 0, S_IFDIR},
        {"a file", "home/file", "home/file", 0, S_IFREG},
        {"a link to a directory", "home/to-work", "home/work", 0, S_IFDIR},
        {"a link on the way", "home/to-work/sub", "home/work/sub", 0, S_IFDIR},
        {"a link that leads out", "home/out", "elsewhere", 0, S_IFDIR},
        {"a socket", "home/sock", "home/sock", 0, S_IFSOCK},
        {"a fifo is not opened", "home/fifo", "home/fifo", 0, S_IFIFO},
        {"a device", "/dev/null", "/dev/null", 0, S_IFCHR},
        {"the root", "/", "/", 0, S_IFDIR},
        {"nothing", "home/none", NULL, ENOENT, 0},
        {"a link to nothing", "home/dangling", NULL, ENOENT, 0},
        {"a loop", "home/loop-a", NULL, ELOOP, 0},
        {"beneath a file", "home/file/x", NULL, ENOTDIR, 0},
};

static void check_fact(const struct path_fact *fact, const struct path_row *row) {
        unit_same("where it lies", fact->real,
                  !row->real            ? NULL
                  : row->real[0] == '/' ? row->real
                                        : in_tree(row->real));
        if (!row->real) {
                assert_int_equal(fact->errnum, row->errnum);
                return;
        }
        assert_int_equal(fact->type, row->type);
        if (row->path[0] != '/') {
                assert_int_equal(fact->uid, geteuid());
                assert_int_equal(fact->gid, getegid());
        }
}

static void test_path(void **state) {
        static const char *const env[] = {NULL};
        const struct path_row *row = *state;
        const char *path = row->path[0] == '/' ? row->path : in_tree(row->path);
        _cleanup_(survey_freep) struct survey *s = survey((const char *const[]){"ro", path, "dir", path, NULL}, env);

        assert_int_equal(s->n_paths, 1);
        check_fact(&s->paths[0], row);
        check_fact(&s->workspace, row);
}

static void test_locked(void **state _unused_) {
        static const char *const env[] = {NULL};
        _cleanup_(survey_freep) struct survey *s = NULL;

        if (geteuid() == 0)
                return; /* nothing is locked for root */
        s = survey((const char *const[]){"ro", in_tree("locked/in"), NULL}, env);
        assert_null(s->paths[0].real);
        assert_int_equal(s->paths[0].errnum, EACCES);
}

static void test_workspace(void **state _unused_) {
        static const char *const env[] = {NULL};
        _cleanup_(survey_freep) struct survey *current = survey(NULL, env);
        _cleanup_(survey_freep) struct survey *none = survey((const char *const[]){"workspace", "none", NULL}, env);

        unit_same("the current directory", current->workspace.real, in_tree("home/work"));
        assert_null(none->workspace.real); /* nobody wants it, nobody looks */
        assert_int_equal(none->workspace.errnum, 0);
}

static bool holds(char *const *v, const char *s) {
        for (; v && *v; v++)
                if (streq(*v, s))
                        return true;
        return false;
}

static const struct own_row {
        const char *name;
        const char *variables[4][2]; /* values beneath the tree's top unless empty or relative */
        bool make;                   /* whether the directory is there already */
        const char *want[4];
} own_rows[] = {
        {"of a home",
         {{"HOME", "home/work"}},
         false,
         {"home/work/.config/hutch", "home/work/.local/share/hutch", "home/work/.local/state/hutch"}},
        {"of XDG variables",
         {{"HOME", "home/work"}, {"XDG_CONFIG_HOME", "elsewhere"}, {"XDG_STATE_HOME", "home/work/sub"}},
         false,
         {"elsewhere/hutch", "home/work/.local/share/hutch", "home/work/sub/hutch"}},
        {"of XDG variables without a home", {{"XDG_CONFIG_HOME", "elsewhere"}}, false, {"elsewhere/hutch"}},
        /* A box that got the directory behind a link could make hutch's own directory in it, and be read as a person's
           word next time. */
        {"behind a link, not made yet",
         {{"XDG_CONFIG_HOME", "home/out"}},
         false,
         {"home/out/hutch", "elsewhere/hutch"}},
        {"behind a linked home, not made yet",
         {{"HOME", "home-link"}},
         false,
         {"home-link/.config/hutch", "elsewhere/conf/hutch", "home/.local/state/hutch", "home/.local/share/hutch"}},
        {"with dots in the path", {{"XDG_STATE_HOME", "home/work/../../elsewhere"}}, false, {"elsewhere/hutch"}},
        {"with slashes at the end", {{"XDG_STATE_HOME", "elsewhere//"}}, false, {"elsewhere/hutch"}},
        {"behind a link, made", {{"XDG_CONFIG_HOME", "home/out"}}, true, {"home/out/hutch", "elsewhere/hutch"}},
};

static void test_own(void **state) {
        const struct own_row *row = *state;
        _cleanup_(strv_freep) char **env = NULL;
        _cleanup_(survey_freep) struct survey *s = NULL;

        assert_int_equal(strv_copy(NULL, &env), 0);
        for (size_t i = 0; i < ARRAY_SIZE(row->variables) && row->variables[i][0]; i++)
                assert_int_equal(strv_set_assignment(&env, row->variables[i][0], in_tree(row->variables[i][1])), 0);
        if (row->make)
                assert_int_equal(mkdir(in_tree("elsewhere/hutch"), 0700), 0);
        s = survey(NULL, (const char *const *) env);
        if (row->make)
                rmdir(in_tree("elsewhere/hutch"));
        for (size_t i = 0; i < ARRAY_SIZE(row->want) && row->want[i]; i++)
                unit_check(holds(s->own_folders, in_tree(row->want[i])), "%s is not among hutch's own directories",
                           row->want[i]);
}

static void test_relative_xdg(void **state _unused_) {
        static const char *const env[] = {"XDG_CONFIG_HOME=relative", "HOME=not/absolute", NULL};
        _cleanup_(survey_freep) struct survey *s = survey(NULL, env);

        /* What is left is the home that /etc/passwd knows, if it knows the caller. */
        unit_same("the home", s->home, s->passwd_home);
        for (char **own = s->own_folders; own && *own; own++)
                unit_check((*own)[0] == '/' && !strstr(*own, "relative") && !strstr(*own, "not/absolute"), "%s", *own);
}

static void test_home(void **state _unused_) {
        _cleanup_(strv_freep) char **env = NULL;
        _cleanup_(survey_freep) struct survey *s = NULL;

        assert_int_equal(strv_pushf(&env, "HOME=%s/./", in_tree("home-link")), 0);
        assert_int_equal(strv_push(&env, "SECRET=x"), 0);
        s = survey(NULL, (const char *const *) env);
        unit_same("as it was said", s->home, in_tree("home-link"));
        unit_same("as it is", s->home_fact.real, in_tree("home"));
        unit_same("the environment is kept", strv_find_assignment(s->env, "SECRET"), "x");
}

static void test_caller(void **state _unused_) {
        static const char *const env[] = {"USER=somebody", NULL};
        _cleanup_(survey_freep) struct survey *s = survey(NULL, env);

        assert_true(s->user && s->user[0] && !strchr(s->user, ':'));
        if (geteuid() == 0)
                unit_same("root's name comes from the host", s->user, "root");
        assert_true(s->host_name && s->host_name[0]);
}

static void test_system(void **state _unused_) {
        static const char *const env[] = {NULL};
        _cleanup_(survey_freep) struct survey *s = survey(NULL, env);
        bool usr = false;

        assert_true(s->n_system >= 2 && s->n_system <= N_SYSTEM_MOST);
        for (size_t i = 0; i < s->n_system; i++) {
                struct stat st;

                assert_int_equal(lstat(s->system[i].path, &st), 0);
                assert_int_equal(S_ISLNK(st.st_mode), s->system[i].link != NULL);
                usr = usr || streq(s->system[i].path, "/usr");
        }
        assert_true(usr);
        assert_int_equal(s->has_bash, access("/bin/bash", X_OK) == 0);
}

static void test_no_trace(void **state _unused_) {
        static const char *const env[] = {NULL};
        char before[8192], after[8192];
        _cleanup_(survey_freep) struct survey *s = NULL;
        FILE *f;

        snprintf(before, sizeof(before), "ls -lAR '%s' 2>&1", top);
        f = popen(before, "r");
        before[fread(before, 1, sizeof(before) - 1, f)] = 0;
        pclose(f);
        s = survey((const char *const[]){"ro", in_tree("home/none"), "hide", in_tree("home/fifo"), NULL}, env);
        snprintf(after, sizeof(after), "ls -lAR '%s' 2>&1", top);
        f = popen(after, "r");
        after[fread(after, 1, sizeof(after) - 1, f)] = 0;
        pclose(f);
        unit_same("the tree", after, before);
}

int main(void) {
        int status;

        make_tree();
        unit_add_rows(path_rows, test_path);
        unit_add("out of reach", test_locked, NULL);
        unit_add("the workspace", test_workspace, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(own_rows); i++) {
                char name[96];

                snprintf(name, sizeof(name), "hutch's own directories %s", own_rows[i].name);
                unit_add(name, test_own, &own_rows[i]);
        }
        unit_add("relative XDG variables do not count", test_relative_xdg, NULL);
        unit_add("the home", test_home, NULL);
        unit_add("the caller", test_caller, NULL);
        unit_add("the system's directories", test_system, NULL);
        unit_add("nothing is changed", test_no_trace, NULL);
        status = unit_run("survey/survey");
        survey_free(NULL);
        return status;
}
