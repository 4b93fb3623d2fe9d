/* See fixture.h. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/options.h"

static const struct node {
        const char *path, *real; /* real NULL: no link in it */
        mode_t type;
        uid_t owner;
        int errnum;
        nlink_t links; /* 0: one */
} nodes[] = {
        {"/", NULL, S_IFDIR},
        {"/home", NULL, S_IFDIR},
        {"/home/ann", NULL, S_IFDIR, 1000},
        {"/home/ann/src", NULL, S_IFDIR, 1000},
        {"/home/ann/src/app", NULL, S_IFDIR, 1000},
        {"/home/ann/src/app/vendor", NULL, S_IFDIR, 1000},
        {"/home/ann/src/app/vendor/mine", NULL, S_IFDIR, 1000},
        {"/home/ann/src/app/build", NULL, S_IFDIR, 1000},
        {"/home/ann/src/app/.env", NULL, S_IFREG, 1000},
        {"/home/ann/src/app/vendor/mine/key", NULL, S_IFREG, 1000},
        {"/home/ann/src/app/twice", NULL, S_IFREG, 1000, 0, 2},
        {"/home/ann/src/app/inner", "/home/ann/src/app/vendor", S_IFDIR, 1000},
        {"/home/ann/src/app/odd name", NULL, S_IFREG, 1000},
        {"/home/ann/src/app/ctl\033", NULL, S_IFREG, 1000},
        {"/home/ann/src/app/data", "/data", S_IFDIR, 2000},
        {"/home/ann/file", NULL, S_IFREG, 1000},
        {"/home/ann/app-link", "/home/ann/src/app", S_IFDIR, 1000},
        {"/home/ann/home-link", "/home/ann", S_IFDIR, 1000},
        {"/home/ann/root-link", "/", S_IFDIR},
        {"/home/ann/proc-link", "/proc/1", S_IFDIR},
        {"/home/ann/sys-link", "/sys/class", S_IFDIR},
        {"/home/ann/conf-link", "/home/ann/.config", S_IFDIR, 1000},
        {"/home/ann/.config", NULL, S_IFDIR, 1000},
        {"/home/ann/.config/hutch", NULL, S_IFDIR, 1000},
        {"/home/ann/.config/hutch/profiles", NULL, S_IFDIR, 1000},
        {"/home/ann/.config/hutchins", NULL, S_IFDIR, 1000},
        {"/home/ann/.local", NULL, S_IFDIR, 1000},
        {"/home/ann/.local/state/hutch/boxes", NULL, S_IFDIR, 1000},
        {"/data", NULL, S_IFDIR, 2000},
        {"/data/out", NULL, S_IFDIR, 2000},
        {"/data/out/keep", NULL, S_IFDIR, 2000},
        {"/workspace/app", NULL, S_IFDIR, 1000},
        {"/tmp", NULL, S_IFDIR},
        {"/tmp/job", NULL, S_IFDIR, 1000},
        {"/bin", "/usr/bin", S_IFDIR},
        {"/usr", NULL, S_IFDIR},
        {"/usr/bin", NULL, S_IFDIR},
        {"/usr/share/doc", NULL, S_IFDIR},
        {"/etc/ssl/private", NULL, S_IFDIR},
        {"/opt/data", NULL, S_IFDIR, 1000},
        {"/opt/sdk", NULL, S_IFDIR},
        {"/dev", NULL, S_IFDIR},
        {"/dev/fuse", NULL, S_IFCHR},
        {"/dev/loop0", NULL, S_IFBLK},
        {"/dev/cam", "/dev/video0", S_IFCHR},
        {"/dev/shm", NULL, S_IFDIR},
        {"/run/docker.sock", NULL, S_IFSOCK},
        {"/run/fifo", NULL, S_IFIFO, 1000},
        {"/proc", NULL, S_IFDIR},
        {"/proc/1", NULL, S_IFDIR},
        {"/sys", NULL, S_IFDIR},
        {"/sys/class", NULL, S_IFDIR},
        {"/locked/x", NULL, 0, 0, EACCES},
        {"/loop", NULL, 0, 0, ELOOP},
        {"/home/ann/file/x", NULL, 0, 0, ENOTDIR},
};

/* An inode's number, the same for every way to a file. */
static ino_t number_of(const char *real) {
        ino_t n = 5381;

        for (; real && *real; real++)
                n = (n * 33 + (unsigned char) *real) % 100003;
        return n;
}

static int look_at(const char *path, struct path_fact *ret) {
        ret->errnum = ENOENT;
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
                if (streq(nodes[i].path, path)) {
                        if (nodes[i].errnum) {
                                ret->errnum = nodes[i].errnum;
                                return 0;
                        }
                        ret->real = strdup(nodes[i].real ? nodes[i].real : path);
                        ret->errnum = 0;
                        ret->type = nodes[i].type;
                        ret->dev = 8;
                        ret->ino = number_of(ret->real);
                        ret->links = nodes[i].links ? nodes[i].links : 1;
                        ret->uid = ret->gid = nodes[i].owner;
                        return ret->real ? 0 : -ENOMEM;
                }
        return 0;
}

static const struct system_fact merged[] = {
        {"/usr", NULL},
        {"/bin", (char *) "usr/bin"},
        {"/sbin", (char *) "usr/sbin"},
        {"/lib", (char *) "usr/lib"},
        {"/lib64", (char *) "usr/lib64"},
        {"/etc", NULL},
        {"/opt", NULL},
};
static const struct system_fact unmerged[] = {
        {"/usr", NULL},   {"/bin", NULL}, {"/sbin", NULL}, {"/lib", NULL},
        {"/lib64", NULL}, {"/etc", NULL}, {"/nix", NULL},
};

static const char *const usual_env[] = {
        "PATH=/home/ann/bin:/usr/local/bin:/usr/bin:/bin:/opt/sdk/bin:.:relative:/usr/bin",
        "TERM=xterm-256color",
        "LANG=en_GB.UTF-8",
        "LC_TIME=C",
        "LD_PRELOAD=/evil.so",
        "AWS_SECRET_ACCESS_KEY=hunter2",
        "SSH_AUTH_SOCK=/run/user/1000/agent",
        "EDITOR=vi",
        NULL,
};

static int add_system(struct survey *s, const struct system_fact *facts, size_t n) {
        for (size_t i = 0; i < n; i++) {
                s->system[i] = facts[i];
                if (facts[i].link && !(s->system[i].link = strdup(facts[i].link)))
                        return -ENOMEM;
                s->n_system = i + 1;
        }
        return 0;
}

static int add_caller(struct survey *s, const struct fixture *f) {
        const char *home = f->home ? f->home : f->root ? "/root" : "/home/ann";
        const char *real = f->home_real ? f->home_real : home;
        int r = 0;

        s->user = strdup(f->root ? "root" : "ann");
        s->host_name = strdup("workstation");
        s->passwd_home = f->passwd_home ? strdup(f->passwd_home) : NULL;
        if (home[0]) {
                s->home = strdup(home);
                s->home_fact = (struct path_fact){.real = strdup(real), .type = S_IFDIR};
                r = strv_pushf(&s->own_folders, "%s/.config/hutch", real);
                if (r >= 0)
                        r = strv_pushf(&s->own_folders, "%s/.local/state/hutch", real);
                if (r >= 0)
                        r = asprintf(&s->empty, "%s/.local/state/hutch/empty", real);
        }
        return r < 0 || !s->user || !s->host_name ? -ENOMEM : 0;
}

static int outer_first(const void *a, const void *b) {
        return strcmp(((const struct mount_fact *) a)->path, ((const struct mount_fact *) b)->path);
}

/* A directory is split if one of those that follow lies in it. */
static int add_mounts(struct path_fact *ws, const char *const *mounts, const char *const *beside) {
        ws->mounts = calloc(6, sizeof(*ws->mounts));
        for (size_t i = 0; ws->mounts && i < 6; i++) {
                const char *path = i < 3 ? mounts[i] : beside[i - 3];
                struct path_fact at = {0};
                bool split = false;

                if (!path)
                        continue;
                if (look_at(path, &at) < 0 || !at.real)
                        return -ENOMEM;
                for (size_t j = 0; j < 3 && mounts[j]; j++)
                        split = split || (path_is_beneath(mounts[j], path) && !streq(mounts[j], path));
                ws->mounts[ws->n_mounts++] = (struct mount_fact){.path = at.real,
                                                                 .directory = at.type == S_IFDIR,
                                                                 .mounted = i < 3,
                                                                 .split = split,
                                                                 .dev = at.dev,
                                                                 .ino = at.ino,
                                                                 .uid = at.uid,
                                                                 .gid = at.gid};
        }
        if (!ws->mounts)
                return -ENOMEM;
        qsort(ws->mounts, ws->n_mounts, sizeof(*ws->mounts), outer_first);
        return 0;
}

static int make_survey(const struct fixture *f, const struct hutch_policy *p, struct survey **ret) {
        _cleanup_(survey_freep) struct survey *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        r = strv_copy((char *const *) (f->env ? f->env : usual_env), &s->env);
        if (r >= 0)
                r = f->unmerged ? add_system(s, unmerged, ARRAY_SIZE(unmerged))
                                : add_system(s, merged, ARRAY_SIZE(merged));
        if (r >= 0)
                r = add_caller(s, f);
        if (r >= 0 && policy_workspace(p) != HUTCH_WORKSPACE_NONE)
                r = look_at(policy_dir(p), &s->workspace);
        if (r >= 0 && f->mounts[0])
                r = add_mounts(&s->workspace, f->mounts, f->beside);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(f->control) && f->control[i]; i++)
                r = strv_push(&s->control, f->control[i]);
        if (r >= 0 && f->parts) {
                s->workspace.mounts = calloc(f->parts, sizeof(*s->workspace.mounts));
                s->workspace.n_mounts = f->parts;
                r = s->workspace.mounts ? 0 : -ENOMEM;
        }
        s->paths = calloc(p->n_paths + 1, sizeof(*s->paths));
        s->resolv_conf = strdup(f->resolv_conf ? f->resolv_conf : "/etc/resolv.conf");
        if (r < 0 || !s->paths || !s->resolv_conf)
                return -ENOMEM;
        s->n_paths = p->n_paths;
        for (size_t i = 0; r >= 0 && i < p->n_paths; i++)
                r = look_at(p->paths[i].path, &s->paths[i]);
        s->has_bash = !f->no_bash;
        s->has_passwd = s->has_group = s->has_hosts = s->has_hostname = !f->no_etc;
        s->memory = 8ULL << 30;
        s->npmrc = "/etc/npmrc";
        if (policy_number(p, KEY_CPU) > 0)
                s->cpuinfo = strdup("processor\t: 0\n\n");
        if (policy_number(p, KEY_COW_SYSTEM)) {
                s->skeleton = f->no_cache ? NULL : strdup("/home/ann/.cache/hutch/skeleton/0123456789abcdef");
                s->system_passwd = strdup("root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n");
                s->system_group = strdup("root:x:0:\nadm:x:4:\n");
                s->tools = strdup("/usr/libexec/hutch/box-tools");
                s->has_dpkg = s->has_apt = true;
                for (size_t i = 0; r >= 0 && i < s->n_system; i++) {
                        const char *const mounts[3] = {"/opt/data"}, *const beside[3] = {"/opt/sdk"};
                        struct path_fact *tree = &s->system[i].tree;

                        *tree = (struct path_fact){.real = strdup(s->system[i].path), .type = S_IFDIR};
                        r = tree->real ? 0 : -ENOMEM;
                        if (r >= 0 && f->mounted && streq(f->mounted, s->system[i].path))
                                r = add_mounts(tree, mounts, beside);
                }
        }
        *ret = take_ptr(s);
        return r;
}

static int make_policy(const struct fixture *f, struct hutch_policy **ret, struct hutch_error *err) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL;
        int r;

        r = policy_new(f->dir ? f->dir : "/home/ann/src/app", "/home/ann", &p);
        if (r >= 0)
                r = policy_use_preset(p, f->api ? HUTCH_PRESET_API : HUTCH_PRESET_RUN, err);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(f->said) && f->said[i]; i++) {
                const char *equals = strchr(f->said[i], '=');
                _cleanup_(freep) char *name = strndup(f->said[i], strcspn(f->said[i], "="));

                r = name ? policy_set_option(p, name, equals ? equals + 1 : NULL, err) : -ENOMEM;
        }
        if (r >= 0 && f->try_system)
                r = policy_set_number(p, KEY_COW_SYSTEM, COW_SYSTEM_TRY, "test", err);
        if (r >= 0)
                r = policy_validate(p, err);
        if (r < 0)
                return r;
        *ret = take_ptr(p);
        return 0;
}

int fixture_make(const struct fixture *f, struct made *ret, struct hutch_error *err) {
        static const char *const usual_argv[] = {"make", "test", NULL};
        const struct backend *backend = NULL;
        int r;

        *ret = (struct made){0};
        r = make_policy(f, &ret->policy, err);
        if (r >= 0)
                r = make_survey(f, ret->policy, &ret->survey);
        if (r < 0)
                return r;
        ret->facts = (struct host_facts){
                .uid = f->root ? 0 : 1000,
                .gid = f->root ? 0 : 1000,
                .n_groups = f->groups,
                .privileged = f->root,
                .box_uid = !f->root || f->box_uid == (uid_t) -1 ? 0
                           : f->box_uid                         ? f->box_uid
                                                                : 0x7fff0000,
                .landlock_abi = f->landlock < 0 ? 0
                                : f->landlock   ? f->landlock
                                                : 7,
                .mount_api = !f->no_mount_api,
                .openat2 = true,
                .namespaces = YES,
                .cgroups = {f->no_cgroups ? CGROUP_NONE : CGROUP_V2, !f->no_cgroups, !f->no_cgroups, !f->no_cgroups,
                            false},
        };
        r = backend_choose(backend_rows, policy_text(ret->policy, KEY_ISOLATION), &ret->facts, &backend, err);
        if (r < 0)
                return r;
        backend->offer(ret->policy, &ret->facts, &ret->offers);
        ret->request = (struct hutch_request){
                .argv = f->argv      ? f->argv
                        : f->command ? NULL
                                     : usual_argv,
                .command = f->command,
                .cwd = f->cwd,
                .env = f->request_env,
                .timeout_ms = f->request_timeout_ms,
                .output_cap = f->request_cap,
        };
        ret->in = (struct plan_input){
                .policy = ret->policy,
                .request = &ret->request,
                .survey = ret->survey,
                .facts = &ret->facts,
                .offers = &ret->offers,
                .backend = backend->name,
                .traits = backend->traits,
                .session = f->session,
                .shell = f->shell,
        };
        return 0;
}

void made_done(struct made *m) {
        policy_free(m->policy);
        survey_free(m->survey);
        *m = (struct made){0};
}

int fixture_plan(const struct fixture *f, struct plan **ret, struct hutch_error *err) {
        _cleanup_(made_done) struct made m;
        int r = fixture_make(f, &m, err);

        return r < 0 ? r : plan_make(&m.in, ret, err);
}

static void print_step(struct buf *b, const struct step *s) {
        static const char *const flags[] = {"writable", "devices", "noexec", "granted", "replace",
                                            "submount", "system",  "seed",   "own",     "split"};
        bool any = false;

        buf_printf(b, "  %s:", s->dest);
        for (size_t f = 0; f < ARRAY_SIZE(flags); f++)
                if (s->flags & 1u << f) {
                        buf_printf(b, " %s", flags[f]);
                        any = true;
                }
        if (s->flags >> ARRAY_SIZE(flags))
                buf_printf(b, " and %#x", s->flags >> ARRAY_SIZE(flags) << ARRAY_SIZE(flags));
        if (!any)
                buf_puts(b, " plain");
        if (s->kind == STEP_COW)
                buf_printf(b, " layer %u%s%s", s->layer, s->text ? " as at " : "", s->text ? s->text : "");
        if (s->mode)
                buf_printf(b, " mode %o", s->mode);
        if (s->flags & STEP_GRANTED)
                buf_printf(b, " owner %u:%u inode %llu of %llu", s->owner, s->group, (unsigned long long) s->ino,
                           (unsigned long long) s->dev);
        buf_puts(b, "\n");
        if (s->kind == STEP_FILE)
                for (const char *line = s->text; line && *line; line = strchr(line, '\n') + 1)
                        buf_printf(b, "    | %.*s\n", (int) strcspn(line, "\n"), line);
}

char *fixture_print(const struct plan *plan) {
        struct buf b = {0};
        char *words = NULL;

        if (plan_explain(plan, NULL, &words) < 0)
                return NULL;
        buf_puts(&b, words);
        free(words);
        buf_puts(&b, "\n-- not told --\n");
        buf_printf(&b, "home %s, host name %s, mapped by %s, search", plan->home,
                   plan->host_name ? plan->host_name : "the host's", plan->map_by_parent ? "the warden" : "init");
        for (char **dir = plan->search; dir && *dir; dir++)
                buf_printf(&b, " %s", *dir);
        buf_printf(&b, "\ncontrol group: %s; layers: %u%s\n",
                   plan->memory_by_group ? "also for memory"
                   : plan->group         ? "yes"
                                         : "no",
                   plan->n_layers, plan->ephemeral ? ", in memory" : "");
        for (size_t i = 0; i < plan->n_steps; i++)
                print_step(&b, &plan->steps[i]);
        return buf_take_string(&b);
}

#define LIST(...)                                                                                                      \
        (const char *const[]) {                                                                                        \
                __VA_ARGS__, NULL                                                                                      \
        }

const struct fixture golden_cases[] = {
        {"run"},
        {"api", .api = true},
        {"as-user", {"as=user"}},
        {"as-user-without-etc", {"as=user"}, .no_etc = true, .no_bash = true},
        {"as-root", {"as=root"}},
        {"root-caller", .root = true, .dir = "/data"},
        {"root-caller-fallback-id", .root = true, .box_uid = 65534, .dir = "/data"},
        {"root-caller-as-user", {"as=user"}, .root = true, .dir = "/data"},
        {"root-caller-as-root", {"as=root", "ro=/home/ann/file"}, .root = true, .dir = "/data"},
        {"supplementary-groups", .groups = 2},
        {"one-supplementary-group", .groups = 1},
        {"workspace-ro", {"workspace=ro"}},
        {"workspace-cow", {"workspace=cow"}},
        {"workspace-cow-as-user", {"workspace=cow", "as=user"}},
        {"workspace-cow-with-mounts",
         {"workspace=cow"},
         .mounts = {"/home/ann/src/app/.env", "/home/ann/src/app/vendor", "/home/ann/src/app/vendor/mine"}},
        {"workspace-cow-with-mounts-beside",
         {"workspace=cow", "hide=vendor/mine/key", "cow=build"},
         .mounts = {"/home/ann/src/app/vendor/mine"},
         .beside = {"/home/ann/src/app/vendor", "/home/ann/src/app/build"}},
        {"workspace-cow-hide-what-has-mounts",
         {"workspace=cow", "hide=vendor"},
         .mounts = {"/home/ann/src/app/vendor/mine"},
         .beside = {"/home/ann/src/app/vendor", "/home/ann/src/app/build"}},
        {"root-caller-workspace-cow-with-mounts",
         {"workspace=cow"},
         .root = true,
         .mounts = {"/home/ann/src/app/vendor/mine"},
         .beside = {"/home/ann/src/app/vendor", "/home/ann/src/app/build"}},
        {"cow-system", {"cow=/"}},
        {"cow-system-as-user", {"cow=/", "as=user", "memory=1G", "cpu=100%"}},
        {"cow-system-as-root-of-root", {"cow=/", "as=root"}, .root = true},
        {"cow-system-mounted-opt", {"cow=/"}, .mounted = "/opt"},
        {"cow-system-tried", .try_system = true},
        {"cow-system-tried-in-vain", .try_system = true, .no_cache = true},
        {"cow-system-unmerged", {"cow=/", "workspace=none"}, .unmerged = true},
        {"workspace-cow-in-memory", {"workspace=cow", "ephemeral"}},
        {"workspace-cow-ro-deep-inside", {"workspace=cow", "ro=vendor/mine"}},
        {"cow-paths", {"cow=/data", "cow=/usr/share/doc:/mnt/doc", "ro=/data/out"}},
        {"workspace-none", {"workspace=none"}},
        {"workspace-none-as-user", {"workspace=none", "as=user"}},
        {"workspace-by-link", {"dir=/home/ann/app-link"}},
        {"workspace-that-is-its-box-path", {"dir=/workspace/app"}},
        {"workspace-in-tmp", {"dir=/tmp/job"}},
        {"at-workspace", {"at=workspace"}},
        {"at-workspace-as-user", {"at=workspace", "as=user"}},
        {"ro-inside-workspace", {"ro=vendor"}},
        {"ro-inside-workspace-as-user", {"ro=vendor", "as=user"}},
        {"rw-inside-ro-inside-workspace", {"ro=vendor", "rw=vendor/mine"}},
        {"ro-over-rw-order", {"rw=vendor/mine", "ro=vendor"}},
        {"rw-inside-ro", {"ro=/data", "rw=/data/out"}},
        {"ro-inside-rw-inside-ro", {"ro=/data", "rw=/data/out", "ro=/data/out/keep"}},
        {"dest", {"ro=/data:/mnt/d", "rw=/home/ann/file:/mnt/f"}},
        {"dest-then-inside", {"ro=/data:/mnt/d", "rw=/data/out"}},
        {"dest-over-system", {"ro=/data:/usr/share/doc"}},
        {"link-within-workspace", {"workspace=ro", "ro=inner"}},
        {"ro-deep-inside-workspace", {"ro=vendor/mine"}},
        {"ro-deep-inside-workspace-as-user", {"ro=vendor/mine/key", "as=user"}},
        {"hide-deep-inside-workspace", {"hide=vendor/mine/key"}},
        {"hide-deep-inside-read-only-workspace", {"workspace=ro", "hide=vendor/mine/key"}},
        {"hide-then-attach-again", {"hide=vendor/mine/key", "rw=vendor:/mnt/v"}},
        {"system-path-by-link", {"rw=/bin"}},
        {"hide-file-in-workspace", {"hide=.env"}},
        {"hide-missing-in-workspace", {"hide=.secret"}},
        {"hide-missing-elsewhere", {"hide=/nowhere/x"}},
        {"hide-in-system", {"hide=/etc/ssl/private"}},
        {"hide-then-ro", {"hide=vendor", "ro=vendor/mine"}},
        {"hide-at-dest", {"ro=/data:/mnt/d", "hide=/data/out"}},
        {"allow-socket", {"allow-socket=/run/docker.sock"}},
        {"control-sockets",
         {"ro=/data:/mnt/d"},
         .control = {"/home/ann/src/app/vendor/agent", "/data/out/bus", "/nix/socket"}},
        {"hide-socket", {"hide=/run/docker.sock"}},
        {"tmpfs", {"tmpfs=/scratch"}},
        {"tmpfs-in-workspace", {"tmpfs=build"}},
        {"dev", {"dev=/dev/fuse"}},
        {"dev-by-link", {"dev=/dev/cam"}},
        {"env", {"env=A=secret", "env=EDITOR", "env=NOT_SET", "env=TERM=dumb", "env=A=again"}},
        {"env-blocked", {"env=LD_PRELOAD", "env=PYTHONPATH", "env=NODE_OPTIONS=--x", "env=PATH"}},
        {"env-path-set", {"env=PATH=/opt/x:relative:/usr/bin"}},
        {"env-of-request", {"env=A=policy"}, .request_env = LIST("A=request", "B=", "BARE", "=x")},
        {"env-empty", .env = LIST("NO_COLOR=")},
        {"home-root", .home = "/"},
        {"home-none", .home = ""},
        {"home-in-system", .home = "/usr/home/ann"},
        {"home-in-dev", .home = "/dev/shm/ann"},
        {"home-in-tmp", .home = "/tmp/ann"},
        {"home-by-link", .home = "/u/ann", .home_real = "/home/ann"},
        {"unmerged-usr", .unmerged = true},
        {"resolv-conf-in-run", .resolv_conf = "/run/systemd/resolve/stub-resolv.conf"},
        {"landlock-none", .landlock = -1},
        {"landlock-1", .landlock = 1},
        {"landlock-2", .landlock = 2},
        {"landlock-6", .landlock = 6},
        {"net-open-landlock-5", {"net=open"}, .landlock = 5},
        {"net-open-landlock-6", {"net=open"}, .landlock = 6},
        {"net-open-nested", {"net=open", "allow-nested"}, .landlock = 6},
        {"net-loopback", {"net=loopback"}},
        {"nested", {"allow-nested"}},
        {"nested-as-root", {"allow-nested", "as=root"}},
        {"limits", {"timeout=30s", "output-cap=1M", "output-overflow=truncate"}},
        {"output-kill", {"output-cap=1M"}},
        {"session", {"workspace=cow", "as=user"}, .session = true},
        {"session-without-bash", {"workspace=none", "as=user"}, .session = true, .no_bash = true},
        {"session-with-shell", {"workspace=none", "as=user"}, .session = true, .shell = "/opt/bin/bash"},
        {"all-limits", {"memory=1M", "cpu=50%", "cpu-time=10s", "pids=5", "disk=1G"}},
        {"limits-of-a-group-for-pids", {"pids=5"}},
        {"limits-without-groups", {"cpu-time=10s", "pids=5", "disk=1G", "allow-degraded"}, .no_cgroups = true},
        {"limits-degraded", {"memory=1M", "cpu=50%", "pids=5", "disk=1G", "allow-degraded"}, .no_cgroups = true},
        {"isolation-none", {"isolation=none"}},
        {"isolation-none-no-workspace", {"isolation=none", "workspace=none"}},
        {"isolation-none-degraded", {"isolation=none", "ro=/data", "net=deny", "allow-degraded"}},
        {"shell-text", .command = "echo 'a b' | wc -c"},
        {"shell-text-without-bash", .command = "true", .no_bash = true},
        {"words-to-quote", .argv = LIST("echo", "", "a b", "$x", "it's", "tab\t", "\033[31m", "\xff")},
        {"strange-names", {"ro=odd name", "hide=ctl\033"}},
        {"cwd", .cwd = "/tmp"},
};
const size_t n_golden_cases = ARRAY_SIZE(golden_cases);
