/* systemd-run: a transient unit of the user's manager.
 *
 * What systemd can do for an ordinary user is less than a box needs: no process namespace, and everything of the host
 * that is not named stays visible. So the isolation of the landlock backend applies inside of the unit as well:
 * Landlock for files, the filter with its notifications for sockets, signals and attributes. The unit adds what these
 * cannot do: an empty home, a read-only system, a private /tmp, its own network, limits, and an end that kills every
 * process.
 *
 * The properties are those of a well-known line in its order; PrivateUsers=yes is what makes a user's manager honour
 * them. It silently ignores what it cannot do, so init checks (src/init/verify.c).
 *
 * A property gives characters a meaning (specifiers, separators, quotes); paths that have one are refused. Nothing else
 * of the plan is in the unit: init gets the command and its variables by its socket. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "backend.h"

static int refuse_name(struct hutch_error *err, const char *path) {
        return error_set(
                err, HUTCH_E_GUARANTEE_UNAVAILABLE, EINVAL,
                "cannot attach %s on 'systemd-run': its name has a character that unit properties give a meaning",
                path);
}

static int add_property(struct launch_spec *spec, const char *name, const char *path, struct hutch_error *err) {
        const char *plain = path[0] == '-' ? path + 1 : path;

        if (strpbrk(plain, " \t\n:\\\"'%$,;"))
                return refuse_name(err, plain);
        if (strv_push(&spec->argv, "-p") < 0 || strv_pushf(&spec->argv, "%s=%s", name, path) < 0)
                return error_oom(err);
        return 0;
}

static int add_number(struct launch_spec *spec, const char *name, uint64_t value, const char *unit) {
        return strv_push(&spec->argv, "-p") < 0
                       ? -ENOMEM
                       : strv_pushf(&spec->argv, "%s=%llu%s", name, (unsigned long long) value, unit);
}

/* Paths of the user; the system's always exist. An optional one may be missing. */
static int add_step(struct launch_spec *spec, const struct step *s, struct hutch_error *err) {
        char optional[PATH_MAX + 1];

        if (s->kind == STEP_SEAL && s->text) {
                snprintf(optional, sizeof(optional), "-%s", s->text);
                return add_property(spec, "BindReadOnlyPaths", optional, err);
        }
        if (s->kind != STEP_BIND || !(s->flags & STEP_GRANTED))
                return 0;
        snprintf(optional, sizeof(optional), "%s%s", s->flags & STEP_REPLACE ? "-" : "", s->source);
        return add_property(spec, s->flags & STEP_WRITABLE ? "BindPaths" : "BindReadOnlyPaths", optional, err);
}

static int add_limits(struct launch_spec *spec, const struct plan *plan) {
        int r = 0;

        if (plan->memory) {
                r = add_number(spec, "MemoryMax", plan->memory, "");
                if (r >= 0)
                        r = add_number(spec, "MemorySwapMax", 0, "");
        }
        if (r >= 0 && plan->cpu_percent)
                r = add_number(spec, "CPUQuota", plan->cpu_percent, "%");
        if (r >= 0 && plan->pids) /* and init */
                r = add_number(spec, "TasksMax", plan->pids + 1, "");
        return r;
}

static int push(struct launch_spec *spec, const char *const *words) {
        int r = 0;

        for (; r >= 0 && *words; words++)
                r = strv_push(&spec->argv, *words);
        return r;
}

static int compile(const struct plan *plan, const struct init_place *place, struct launch_spec *ret,
                   struct hutch_error *err) {
        const char *path = strv_find_assignment(plan->engine_env, "PATH"),
                   *home = strv_find_assignment(plan->engine_env, "HOME"), *name = path_basename(place->dir);
        char program[PATH_MAX], control[PATH_MAX], home_mode[PATH_MAX + 16];
        int r = backend_find_program("systemd-run", path, false, program);

        if (r >= 0)
                r = backend_find_program("systemctl", path, false, control);
        if (r < 0)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, r, "systemd-run is not installed");
        if (!home || home[0] != '/' || streq(home, "/") || strpbrk(home, " \t\n:\\\"'%$,;"))
                return refuse_name(err, home ? home : "the home");
        snprintf(home_mode, sizeof(home_mode), "TemporaryFileSystem=%s:mode=0755", home);
        if (push(ret, (const char *const[]){program, "--user", "--pipe", "--quiet", "--collect", NULL}) < 0 ||
            strv_pushf(&ret->argv, "--unit=%s", name) < 0 ||
            push(ret, (const char *const[]){"-p", home_mode, "-p", "ProtectSystem=strict", "-p", "PrivateTmp=yes", "-p",
                                            "NoNewPrivileges=yes", NULL}) < 0)
                return error_oom(err);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                r = add_step(ret, &plan->steps[i], err);
        if (r < 0)
                return r;
        r = add_property(ret, "BindReadOnlyPaths", place->program, err);
        if (r < 0)
                return r;
        r = add_property(ret, "BindReadOnlyPaths", place->dir, err);
        if (r < 0)
                return r;
        if (push(ret, (const char *const[]){"-p", "PrivateUsers=yes", NULL}) < 0 ||
            (plan->traits & TRAIT_OWN_NET && push(ret, (const char *const[]){"-p", "PrivateNetwork=yes", NULL}) < 0) ||
            add_limits(ret, plan) < 0 ||
            push(ret, (const char *const[]){"--", place->program, "socket", place->dir, NULL}) < 0)
                return error_oom(err);
        if (strv_push(&ret->kill, control) < 0 || strv_push(&ret->kill, "--user") < 0 ||
            strv_push(&ret->kill, "stop") < 0 || strv_push(&ret->kill, name) < 0)
                return error_oom(err);
        return 0;
}

static bool manager_answers(void) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return runtime && fd >= 0 &&
               (size_t) snprintf(address.sun_path, sizeof(address.sun_path), "%s/systemd/private", runtime) <
                       sizeof(address.sun_path) &&
               connect(fd, (struct sockaddr *) &address, sizeof(address)) == 0;
}

static int check(const struct host_facts *facts, struct hutch_error *err) {
        char program[PATH_MAX];

        if (facts->privileged)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, EPERM,
                                 "a unit started by root would run as root: run hutch as an ordinary user");
        if (backend_find_program("systemd-run", getenv("PATH"), false, program) < 0 || !manager_answers())
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ENOENT,
                                 "no systemd user manager answers: log in as that user, or once as root 'loginctl "
                                 "enable-linger USER', with XDG_RUNTIME_DIR set");
        if (facts->landlock_abi < 1)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ENOSYS,
                                 "inside of a unit hutch needs Landlock (Linux 5.13, with landlock in the lsm= list)");
        return 0;
}

static void offer(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret) {
        backend_landlock.offer(policy, facts, ret);
        /* A user's manager makes the network namespace in the unit's user namespace, so that the relay's helper may
         * enter it as the owner; not where its programs' listen() is to be followed (src/plan/network.c). */
        ret->have[HUTCH_G_NETWORK] = policy_network(policy) == HUTCH_NET_LOOPBACK ? STRENGTH_NONE : STRENGTH_FULL;
        ret->lack[HUTCH_G_NETWORK] = "a unit has no --net loopback: publish ports by --publish PORT";
        ret->have[HUTCH_G_MEMORY] = ret->have[HUTCH_G_PIDS] = STRENGTH_FULL;
        ret->have[HUTCH_G_CPU] = policy_is_set(policy, KEY_CPU_TIME) ? STRENGTH_NONE : STRENGTH_FULL;
}

const struct backend backend_systemd = {.name = "systemd-run",
                                        .traits = TRAIT_OWN_NET | TRAIT_FILTER | TRAIT_LANDLOCK | TRAIT_DELEGATED |
                                                  TRAIT_OWN_LIMITS,
                                        .check = check,
                                        .offer = offer,
                                        .compile = compile};
