/* The option loader: each option's accepted forms and what they set, its rejected forms and what is said about them.
 *
 * What a policy holds is printed as one line of whatever differs from a fresh one, so that a row shows all that an
 * option changes and a row fails when it changes more. */
#include "policy/options.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/io.h"
#include "unit.h"

static void show_value(struct buf *b, const struct hutch_policy *p, enum key key) {
        const struct key_info *info = key_info(key);

        buf_printf(b, "%s", info->option ? info->option : info->id);
        if (info->type == TYPE_CHOICE || policy_text(p, key))
                buf_printf(b, " %s", policy_text(p, key));
        else if (key_is_list(key))
                for (char **item = policy_list(p, key); item && *item; item++)
                        buf_printf(b, " %s", *item);
        else if (info->type != TYPE_FLAG)
                buf_printf(b, " %llu", (unsigned long long) policy_number(p, key));
        buf_puts(b, "; ");
}

static char *show(const struct hutch_policy *p) {
        struct buf b = {0};

        for (enum key key = 0; key < N_KEYS; key++)
                if (policy_is_set(p, key))
                        show_value(&b, p, key);
        for (size_t i = 0; i < p->n_paths; i++)
                buf_printf(&b, "%s %s%s%s (%s); ", access_name(p->paths[i].access), p->paths[i].path,
                           p->paths[i].dest ? " at " : "", p->paths[i].dest ? p->paths[i].dest : "",
                           p->paths[i].origin);
        for (size_t i = 0; i < p->n_hosts; i++)
                buf_printf(&b, "host %s port %u; ", p->hosts[i].host, p->hosts[i].port);
        for (size_t i = 0; i < p->n_env; i++)
                buf_printf(&b, "env %s%s%s (%s); ", p->env[i].name, p->env[i].value ? "=" : "",
                           p->env[i].value ? p->env[i].value : "", p->env[i].origin);
        return buf_take_string(&b);
}

static struct hutch_policy *fresh(void) {
        struct hutch_policy *p = NULL;

        assert_int_equal(policy_new("/base", "/home/ann", &p), 0);
        return p;
}

static const struct option_row {
        const char *option, *value;
        const char *sets; /* what it sets, or … */
        hutch_code code;  /* … how it is refused, and with which words */
        const char *message;
} rows[] = {
        {"dir", "sub", "dir /base/sub; "},
        {"dir", ".", "dir /base; "},
        {"dir", "..", "dir /; "},
        {"dir", "/abs//x/", "dir /abs/x; "},
        {"dir", "~", "dir /home/ann; "},
        {"dir", "~/src", "dir /home/ann/src; "},
        {"dir", "~bob/src", "dir /base/~bob/src; "},
        {"dir", "", NULL, HUTCH_E_POLICY_INVALID, "--dir: the path is empty"},
        {"dir", NULL, NULL, HUTCH_E_USAGE, "option '--dir' needs a value: DIR"},

        {"at", "host", "at host; "},
        {"at", "workspace", "at workspace; "},
        {"at", "home", NULL, HUTCH_E_POLICY_INVALID, "--at: 'home' is not one of host|workspace; did you mean 'host'?"},
        {"cd", "sub", "cd sub; "},
        {"cd", NULL, NULL, HUTCH_E_USAGE, "option '--cd' needs a value: DIR"},
        {"memory", "1GB", "memory 1073741824; "},
        {"env", "AWS_*", "env AWS_* (--env); "},
        {"env", "AWS_*=1", NULL, HUTCH_E_POLICY_INVALID,
         "--env: 'AWS_*' is a pattern: it can pass variables of the caller, not set them"},
        {"env", "AWS_?", NULL, HUTCH_E_POLICY_INVALID, "--env: 'AWS_?' is not the name of a variable"},
        {"env-block", "AWS_*", "env-block AWS_*; "},
        {"env-block", "[A]", NULL, HUTCH_E_POLICY_INVALID, "--env-block: '[A]' is not the name of a variable"},

        {"workspace", "rw", "workspace rw; "},
        {"workspace", "ro", "workspace ro; "},
        {"workspace", "cow", "workspace cow; "},
        {"workspace", "none", "workspace none; "},
        {"workspace", "nome", NULL, HUTCH_E_POLICY_INVALID,
         "--workspace: 'nome' is not one of none|ro|rw|cow; did you mean 'none'?"},
        {"workspace", "RW", NULL, HUTCH_E_POLICY_INVALID, "--workspace: 'RW' is not one of none|ro|rw|cow"},
        {"workspace", "", NULL, HUTCH_E_POLICY_INVALID, "--workspace: '' is not one of none|ro|rw|cow"},
        {"workspace", NULL, NULL, HUTCH_E_USAGE, "option '--workspace' needs a value: none|ro|rw|cow"},

        {"ro", "data", "ro /base/data (--ro); "},
        {"ro", "/data:/d", "ro /data at /d (--ro); "},
        {"ro", "/data:/d/../e//f/", "ro /data at /e/f (--ro); "},
        {"ro", "/a\\:b", "ro /a:b (--ro); "},
        {"ro", "/a\\:b:/c\\:d", "ro /a:b at /c:d (--ro); "},
        {"ro", "/a:/b:c", "ro /a at /b:c (--ro); "},
        {"ro", "/a\\b\\", "ro /a\\b\\ (--ro); "},
        {"ro", "~", "ro /home/ann (--ro); "},
        {"ro", "~/x:/y", "ro /home/ann/x at /y (--ro); "},
        {"ro", "~//x", "ro /home/ann/x (--ro); "},
        {"ro", "/*?[", "ro /*?[ (--ro); "},
        {"ro", "/a:rel", NULL, HUTCH_E_POLICY_INVALID, "--ro: destination 'rel' must be an absolute path in the box"},
        {"ro", "/a:~/x", NULL, HUTCH_E_POLICY_INVALID, "--ro: destination '~/x' must be an absolute path in the box"},
        {"ro", "/a:", NULL, HUTCH_E_POLICY_INVALID, "--ro: destination '' must be an absolute path in the box"},
        {"ro", "/a:/", NULL, HUTCH_E_POLICY_INVALID, "--ro: the root of the box cannot be a destination"},
        {"ro", "/a:/x/..", NULL, HUTCH_E_POLICY_INVALID, "--ro: the root of the box cannot be a destination"},
        {"ro", ":/x", NULL, HUTCH_E_POLICY_INVALID, "--ro: the path is empty"},
        {"ro", "", NULL, HUTCH_E_POLICY_INVALID, "--ro: the path is empty"},
        {"ro", NULL, NULL, HUTCH_E_USAGE, "option '--ro' needs a value: PATH[:DEST]"},
        {"rw", "data:/d", "rw /base/data at /d (--rw); "},
        {"rw", "", NULL, HUTCH_E_POLICY_INVALID, "--rw: the path is empty"},
        {"rw", NULL, NULL, HUTCH_E_USAGE, "option '--rw' needs a value: PATH[:DEST]"},
        {"cow", "/", "COW_SYSTEM yes; "},
        {"cow", "/../", "COW_SYSTEM yes; "},
        {"cow", "/:/x", "cow / at /x (--cow); "},
        {"cow", "/a:/b", "cow /a at /b (--cow); "},
        {"cow", "", NULL, HUTCH_E_POLICY_INVALID, "--cow: the path is empty"},
        {"hide", "secret", "hide /base/secret (--hide); "},
        {"hide", "/a:/b", NULL, HUTCH_E_POLICY_INVALID, "--hide: '/a:/b': hide takes one path and no destination"},
        {"hide", "/a\\:b", "hide /a:b (--hide); "},
        {"hide", "**/.env", "hide /base/**/.env (--hide); "},
        {"hide", "a?", "hide /base/a? (--hide); "},
        {"hide", "", NULL, HUTCH_E_POLICY_INVALID, "--hide: the path is empty"},
        {"tmpfs", "/scratch", "tmpfs /scratch (--tmpfs); "},
        {"tmpfs", "/a:/b", NULL, HUTCH_E_POLICY_INVALID, "--tmpfs: '/a:/b': tmpfs takes one path and no destination"},
        {"dev", "/dev/fuse", "dev /dev/fuse (--dev); "},
        {"dev", "/dev/a:/dev/b", NULL, HUTCH_E_POLICY_INVALID,
         "--dev: '/dev/a:/dev/b': dev takes one path and no destination"},
        {"dev", NULL, NULL, HUTCH_E_USAGE, "option '--dev' needs a value: PATH"},

        {"as", "host", "as host; "},
        {"as", "user", "as user; "},
        {"as", "root", "as root; "},
        {"as", "roto", NULL, HUTCH_E_POLICY_INVALID, "--as: 'roto' is not one of host|user|root; did you mean 'root'?"},
        {"as", "0", NULL, HUTCH_E_POLICY_INVALID, "--as: '0' is not one of host|user|root"},

        {"net", "deny", "net deny; "},
        {"net", "open", "net open; "},
        {"net", "loopback", "net loopback; "},
        {"net", "allowlist", "net allowlist; "},
        {"net", "opne", NULL, HUTCH_E_POLICY_INVALID,
         "--net: 'opne' is not one of deny|open|loopback|allowlist; did you mean 'open'?"},
        {"net", "internet", NULL, HUTCH_E_POLICY_INVALID,
         "--net: 'internet' is not one of deny|open|loopback|allowlist"},

        {"allow-host", "example.org", "host example.org port 0; "},
        {"allow-host", "example.org:443", "host example.org port 443; "},
        {"allow-host", "*.example.org:65535", "host *.example.org port 65535; "},
        {"allow-host", "2001:DB8:0::1", "host 2001:db8::1 port 0; "},
        {"allow-host", "[2001:db8::1]:80", "host 2001:db8::1 port 80; "},
        {"allow-host", "[2001:db8::/32]:80", "host 2001:db8::/32 port 80; "},
        {"allow-host", "::1", NULL, HUTCH_E_POLICY_INVALID,
         "--allow-host: invalid host '::1': this is the box's own loopback; use --allow-host-port PORT for a port of "
         "the host"},
        {"allow-host", "a:0", NULL, HUTCH_E_POLICY_INVALID,
         "--allow-host: invalid host 'a:0': the port must be a number from 1 to 65535"},
        {"allow-host", "a:http", NULL, HUTCH_E_POLICY_INVALID,
         "--allow-host: invalid host 'a:http': the port must be a number from 1 to 65535"},
        {"allow-host", "", NULL, HUTCH_E_POLICY_INVALID,
         "--allow-host: invalid host '': expected HOST, HOST:PORT or [IPV6]:PORT"},
        {"allow-host", ":443", NULL, HUTCH_E_POLICY_INVALID,
         "--allow-host: invalid host ':443': expected HOST, HOST:PORT or [IPV6]:PORT"},
        {"allow-host", NULL, NULL, HUTCH_E_USAGE, "option '--allow-host' needs a value: HOST[:PORT]"},

        {"credential", "a.example=KEY:x-api-key", "credential a.example=KEY:x-api-key; "},
        {"credential", "a.example=sk-secret", NULL, HUTCH_E_POLICY_INVALID,
         "--credential: 'a.example=…' is not HOST[:PORT]=ENV_NAME[:HEADER]: ENV_NAME is not the name of a variable"},
        {"credential", NULL, NULL, HUTCH_E_USAGE, "option '--credential' needs a value: HOST=ENV_NAME[:HEADER]"},

        {"publish", "8080", "publish 8080; "},
        {"publish", "0:8080", "publish 0:8080; "},
        {"publish", "auto", "publish auto; "},
        {"publish", "80:", NULL, HUTCH_E_POLICY_INVALID, "--publish: '80:' is not PORT, HOSTPORT:PORT or auto"},
        {"publish", "1:0", NULL, HUTCH_E_POLICY_INVALID, "--publish: '1:0' is not PORT, HOSTPORT:PORT or auto"},
        {"allow-socket", "run/agent", "allow-socket /base/run/agent (--allow-socket); "},
        {"allow-socket", "/a:/b", NULL, HUTCH_E_POLICY_INVALID,
         "--allow-socket: '/a:/b': allow-socket takes one path and no destination"},
        {"allow-host-port", "5432", "allow-host-port 5432; "},
        {"allow-host-port", "*", "allow-host-port *; "},
        {"allow-host-port", "0", NULL, HUTCH_E_POLICY_INVALID,
         "--allow-host-port: '0' is not a port (1 to 65535) or '*'"},
        {"net-strict", NULL, "net-strict; "},
        {"net-strict", "x", NULL, HUTCH_E_USAGE, "option '--net-strict' takes no value"},
        {"upstream-proxy", "http://proxy.example:3128", "upstream-proxy http://proxy.example:3128; "},
        {"upstream-proxy", NULL, NULL, HUTCH_E_USAGE, "option '--upstream-proxy' needs a value: URL"},
        {"upstream-proxy", "https://me:pw@proxy.example:3128", NULL, HUTCH_E_POLICY_INVALID,
         "--upstream-proxy: invalid upstream proxy: only http:// proxies are supported"},
        {"net-log", "/x/log", "net-log /x/log; "},
        {"net-log", NULL, NULL, HUTCH_E_USAGE, "option '--net-log' needs a value: FILE"},

        {"isolation", "auto", "isolation auto; "},
        {"isolation", "restricted", "isolation auto; "},
        {"isolation", "none", "isolation none; "},
        {"isolation", "namespace", "isolation namespace; "},
        {"isolation", NULL, NULL, HUTCH_E_USAGE,
         "option '--isolation' needs a value: auto|namespace|landlock|bwrap|systemd-run|container|none"},

        {"timeout", "500ms", "timeout 500; "},
        {"timeout", "2m", "timeout 120000; "},
        {"timeout", "soon", NULL, HUTCH_E_POLICY_INVALID, "--timeout: 'soon' is not a duration (500ms, 30s, 2m)"},
        {"timeout", "-1", NULL, HUTCH_E_POLICY_INVALID, "--timeout: '-1' is not a duration (500ms, 30s, 2m)"},
        {"memory", "256M", "memory 268435456; "},
        {"memory", "256MB", "memory 268435456; "},
        {"memory", "99999999999T", NULL, HUTCH_E_POLICY_INVALID, "--memory: '99999999999T' is not a size (256M, 2G)"},
        {"cpu", "50%", "cpu 50; "},
        {"cpu", "150", "cpu 150; "},
        {"cpu", "lots", NULL, HUTCH_E_POLICY_INVALID, "--cpu: 'lots' is not a percentage (50%)"},
        {"cpu-time", "10m", "cpu-time 600000; "},
        {"cpu-time", "10x", NULL, HUTCH_E_POLICY_INVALID, "--cpu-time: '10x' is not a duration (500ms, 30s, 2m)"},
        {"pids", "64", "pids 64; "},
        {"pids", "6.4", NULL, HUTCH_E_POLICY_INVALID, "--pids: '6.4' is not a number"},
        {"pids", "64K", NULL, HUTCH_E_POLICY_INVALID, "--pids: '64K' is not a number"},
        {"disk", "1G", "disk 1073741824; "},
        {"disk", "", NULL, HUTCH_E_POLICY_INVALID, "--disk: '' is not a size (256M, 2G)"},
        {"output-cap", "1M", "output-cap 1048576; "},
        {"output-cap", "x", NULL, HUTCH_E_POLICY_INVALID, "--output-cap: 'x' is not a size (256M, 2G)"},
        {"output-overflow", "kill", "output-overflow kill; "},
        {"output-overflow", "truncate", "output-overflow truncate; "},
        {"output-overflow", "trunkate", NULL, HUTCH_E_POLICY_INVALID,
         "--output-overflow: 'trunkate' is not one of kill|truncate; did you mean 'truncate'?"},

        {"env", "A=b", "env A=b (--env); "},
        {"env", "A=", "env A= (--env); "},
        {"env", "A=b=c d", "env A=b=c d (--env); "},
        {"env", "A", "env A (--env); "},
        {"env", "=b", NULL, HUTCH_E_POLICY_INVALID, "--env: '' is not the name of a variable"},
        {"env", "", NULL, HUTCH_E_POLICY_INVALID, "--env: '' is not the name of a variable"},
        {"env", "A B=secret", NULL, HUTCH_E_POLICY_INVALID, "--env: 'A B' is not the name of a variable"},
        {"env", NULL, NULL, HUTCH_E_USAGE, "option '--env' needs a value: NAME[=VALUE]"},
        {"env-block", "A", "env-block A; "},
        {"env-block", "A=b", NULL, HUTCH_E_POLICY_INVALID, "--env-block: 'A=b' is not the name of a variable"},
        {"env-block", "", NULL, HUTCH_E_POLICY_INVALID, "--env-block: '' is not the name of a variable"},
        {"env-block", NULL, NULL, HUTCH_E_USAGE, "option '--env-block' needs a value: NAME"},
        {"env-file", "/nonexistent/x", NULL, HUTCH_E_PATH_MISSING, "--env-file: /nonexistent/x: does not exist"},
        {"env-file", "/", NULL, HUTCH_E_IO, "--env-file: /: is a directory"},
        {"env-file", NULL, NULL, HUTCH_E_USAGE, "option '--env-file' needs a value: FILE"},

        {"protect", ".envrc.local", "protect .envrc.local; "},
        {"protect", "a/b", "protect a/b; "},
        {"protect", "../a", NULL, HUTCH_E_POLICY_INVALID,
         "--protect: '../a' is not the name of a file or directory below the workspace"},
        {"protect", "a/./b", NULL, HUTCH_E_POLICY_INVALID,
         "--protect: 'a/./b' is not the name of a file or directory below the workspace"},
        {"protect", "a/", NULL, HUTCH_E_POLICY_INVALID,
         "--protect: 'a/' is not the name of a file or directory below the workspace"},
        {"protect", "/a", NULL, HUTCH_E_POLICY_INVALID,
         "--protect: '/a' is not the name of a file or directory below the workspace"},
        {"protect", "a*", NULL, HUTCH_E_POLICY_INVALID,
         "--protect: 'a*': patterns are not supported, because new matches would have to be looked for in the whole tree: "
         "give each name, or the directory that contains them"},
        {"unprotect", ".vscode", "unprotect .vscode; "},
        {"unprotect", "", NULL, HUTCH_E_POLICY_INVALID,
         "--unprotect: '' is not the name of a file or directory below the workspace"},
        {"bare", NULL, "bare; "},
        {"bare", "true", NULL, HUTCH_E_USAGE, "option '--bare' takes no value"},
        {"docker", NULL, "docker; "},
        {"docker", "x", NULL, HUTCH_E_USAGE, "option '--docker' takes no value"},
        {"profile", "none", "profile none; "},
        {"profile", NULL, NULL, HUTCH_E_USAGE, "option '--profile' needs a value: NAME|none"},
        {"config", "/x/c.yaml", "config /x/c.yaml; "},
        {"config", NULL, NULL, HUTCH_E_USAGE, "option '--config' needs a value: FILE"},
        {"require-trust", NULL, "require-trust; "},
        {"require-trust", "x", NULL, HUTCH_E_USAGE, "option '--require-trust' takes no value"},
        {"allow-degraded", NULL, "allow-degraded; "},
        {"allow-command", "git", "allow-command git; "},
        {"allow-command", "a b", NULL, HUTCH_E_POLICY_INVALID, "--allow-command: 'a b' is not the name of a command"},
        {"env-only", "FOO_*", "env-only FOO_*; "},
        {"env-only", "A=b", NULL, HUTCH_E_POLICY_INVALID, "--env-only: 'A=b' is not the name of a variable"},
        {"scan-block", "warn", "scan-block warn; "},
        {"scan-block", "all", NULL, HUTCH_E_POLICY_INVALID, "--scan-block: 'all' is not one of critical|warn|never"},
        {"rules", "r.yaml", "rules r.yaml; "},
        {"rules", NULL, NULL, HUTCH_E_USAGE, "option '--rules' needs a value: FILE"},
        {"interpreter", "python=python3.12", "interpreter python=python3.12; "},
        {"interpreter", "perl=perl", NULL, HUTCH_E_POLICY_INVALID,
         "--interpreter: 'perl=perl' is not RUNTIME=PATH: runtimes are python, node and shell"},
        {"interpreter", "node=bin/node", NULL, HUTCH_E_POLICY_INVALID,
         "--interpreter: 'bin/node' is neither the name of a program nor an absolute path"},
        {"temp-dir", "/srv/tmp", "temp-dir /srv/tmp; "},
        {"temp-dir", NULL, NULL, HUTCH_E_USAGE, "option '--temp-dir' needs a value: DIR"},
        {"origin", "community", "origin community; "},
        {"origin", "friend", NULL, HUTCH_E_POLICY_INVALID,
         "--origin: 'friend' is not one of builtin|community|untrusted"},
        {"deny-command", "python3*", "deny-command python3*; "},
        {"deny-command", "/bin/p*", NULL, HUTCH_E_POLICY_INVALID,
         "--deny-command: '/bin/p*': patterns work in names, not in paths"},
        {"allow-degraded", "x", NULL, HUTCH_E_USAGE, "option '--allow-degraded' takes no value"},
        {"strict", NULL, "strict; "},
        {"strict", "x", NULL, HUTCH_E_USAGE, "option '--strict' takes no value"},
        {"allow-nested", NULL, "allow-nested; "},
        {"ephemeral", NULL, "ephemeral; "},
        {"copy-limit", "64M", "copy-limit 67108864; "},
        {"copy-limit", "big", NULL, HUTCH_E_POLICY_INVALID, "--copy-limit: 'big' is not a size (256M, 2G)"},
        {"track", NULL, "track; "},
        {"track", "x", NULL, HUTCH_E_USAGE, "option '--track' takes no value"},
        {"ephemeral", "x", NULL, HUTCH_E_USAGE, "option '--ephemeral' takes no value"},
        {"allow-nested", "x", NULL, HUTCH_E_USAGE, "option '--allow-nested' takes no value"},

        {"memroy", "1M", NULL, HUTCH_E_USAGE, "unknown option '--memroy'; did you mean '--memory'?"},
        {"Memory", "1M", NULL, HUTCH_E_USAGE, "unknown option '--Memory'; did you mean '--memory'?"},
        {"frobnicate", "1", NULL, HUTCH_E_USAGE, "unknown option '--frobnicate'"},
        {"", NULL, NULL, HUTCH_E_USAGE, "unknown option '--'"},
};

static void test_option(void **state) {
        const struct option_row *row = *state;
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();
        _cleanup_(freep) char *got = NULL;
        struct hutch_error err = {0};
        int r = policy_set_option(p, row->option, row->value, &err);

        got = show(p);
        if (row->sets) {
                unit_check(r == 0, "refused: %s", err.message);
                unit_same("the policy", got, row->sets);
                return;
        }
        unit_check(r < 0, "taken: %s", got);
        unit_same("the message", err.message, row->message);
        unit_same("the code", hutch_code_name(err.code), hutch_code_name(row->code));
        unit_same("what a refused option leaves", got, "");
}

/* Every option stands in the table above, with a form that is taken and one that is not. */
static void test_table_is_whole(void **state _unused_) {
        struct hutch_option_info info;
        size_t n;

        for (n = 0; option_describe(n, &info); n++) {
                bool taken = streq(info.name, "env-file"), refused = streq(info.name, "isolation");

                for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                        if (streq(rows[i].option, info.name)) {
                                taken = taken || rows[i].sets;
                                refused = refused || !rows[i].sets;
                        }
                unit_check(taken, "no row shows --%s being taken", info.name);
                unit_check(refused, "no row shows --%s being refused", info.name);
                assert_true(info.help && info.help[0]);
                assert_false(info.value_name && !info.value_name[0]);
        }
        assert_true(n >= 26);
        assert_false(option_describe(n, &info));
        assert_false(option_describe(SIZE_MAX, &info));
}

static void test_order(void **state _unused_) {
        static const char *const said[][2] = {{"ro", "/a"},     {"rw", "/a/b"},      {"hide", "/a/b/c"},
                                              {"env", "X=1"},   {"memory", "1M"},    {"env", "X=2"},
                                              {"memory", "2M"}, {"workspace", "ro"}, {"workspace", "rw"}};
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();
        _cleanup_(freep) char *got = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(said); i++)
                assert_int_equal(policy_set_option(p, said[i][0], said[i][1], NULL), 0);
        got = show(p);
        unit_same("what was said, as it was said", got,
                  "workspace rw; memory 2097152; ro /a (--ro); rw /a/b (--rw); hide /a/b/c (--hide); env X=1 (--env); "
                  "env X=2 (--env); ");
}

/* --allow-host is an allowlist only where nobody spoke about the network before; the contradiction is found by
 * validation. */
static void test_allow_host_after_net(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();
        struct hutch_error err = {0};

        assert_int_equal(policy_set_option(p, "net", "open", NULL), 0);
        assert_int_equal(policy_set_option(p, "allow-host", "a", NULL), 0);
        assert_int_equal(policy_network(p), HUTCH_NET_OPEN);
        assert_true(policy_validate(p, &err) < 0);
}

static void test_no_home(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL;
        struct hutch_error err = {0};

        assert_int_equal(policy_new("/base", NULL, &p), 0);
        assert_true(policy_set_option(p, "ro", "~/x", &err) < 0);
        unit_same("the message", err.message, "--ro: '~/x': HOME is not set");
        assert_int_equal(err.code, HUTCH_E_POLICY_INVALID);
}

/* A HOME that is no absolute path is the caller's mistake, not lack of memory. */
static void test_relative_home(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL;
        struct hutch_error err = {0};

        assert_int_equal(policy_new("/base", "relative", &p), 0);
        assert_true(policy_set_option(p, "ro", "~/x", &err) < 0);
        assert_int_equal(err.code, HUTCH_E_POLICY_INVALID);
        unit_check(strstr(err.message, "HOME") != NULL, "the message does not name HOME: %s", err.message);
}

#define TEXT(s) (s), sizeof(s) - 1

static const struct file_row {
        const char *name, *text;
        size_t len;
        const char *sets, *message; /* message: what follows the file's name */
} file_rows[] = {
        {"an empty file", TEXT(""), "", NULL},
        {"assignments and passes", TEXT("A=1\nB\n"), "env A=1 (--env-file); env B (--env-file); ", NULL},
        {"no newline at the end", TEXT("A=1\nB=2"), "env A=1 (--env-file); env B=2 (--env-file); ", NULL},
        {"comments and blank lines", TEXT("# c\n\n   \n\t# d\nA=#1\n"), "env A=#1 (--env-file); ", NULL},
        {"lines as Windows ends them", TEXT("A=1\r\n\r\nB=2\r\n"), "env A=1 (--env-file); env B=2 (--env-file); ",
         NULL},
        {"a return inside of a value stays", TEXT("A=x\ry\n"), "env A=x\ry (--env-file); ", NULL},
        {"blanks before a name", TEXT("  A=1\n"), "env A=1 (--env-file); ", NULL},
        {"values as they stand", TEXT("A=\"q\" $X 'y' \n"), "env A=\"q\" $X 'y'  (--env-file); ", NULL},
        {"a value with equals signs", TEXT("A=b=c=\n"), "env A=b=c= (--env-file); ", NULL},
        {"a line that is none", TEXT("A=1\n\n=secret\n"), NULL, ":3: not NAME=VALUE or NAME"},
        {"a name with a blank", TEXT("export A=1\n"), NULL, ":1: not NAME=VALUE or NAME"},
        {"a NUL", TEXT("A=1\0B\n"), NULL, ": contains a NUL byte"},
};

static void test_env_file(void **state) {
        const struct file_row *row = *state;
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();
        _cleanup_(freep) char *got = NULL;
        struct hutch_error err = {0};
        char path[4200], message[4400];
        int fd, r;

        snprintf(path, sizeof(path), "%s/env", unit_folder());
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, row->text, row->len), 0);
        close(fd);
        r = policy_set_option(p, "env-file", path, &err);
        if (row->message) {
                assert_true(r < 0);
                snprintf(message, sizeof(message), "--env-file: %s%s", path, row->message);
                unit_same("the message", err.message, message);
                unit_check(!strstr(err.message, "secret"), "a value is in the message");
                return;
        }
        assert_int_equal(r, 0);
        got = show(p);
        unit_same("the policy", got, row->sets);
}

int main(void) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char name[160];

                snprintf(name, sizeof(name), "--%s%s%s%s", rows[i].option, rows[i].value ? " '" : "",
                         rows[i].value ? rows[i].value : "", rows[i].value ? "'" : "");
                for (char *c = name; *c; c++)
                        if (*c == '#' || *c == '\n')
                                *c = ' ';
                unit_add(name, test_option, &rows[i]);
        }
        unit_add("every option is in the table", test_table_is_whole, NULL);
        unit_add("order is kept", test_order, NULL);
        unit_add("--allow-host after --net", test_allow_host_after_net, NULL);
        unit_add("~ without HOME", test_no_home, NULL);
        unit_add("~ with a relative HOME", test_relative_home, NULL);
        unit_add_rows(file_rows, test_env_file);
        return unit_run("policy/options");
}
