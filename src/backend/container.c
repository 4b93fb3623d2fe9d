/* A container of docker or podman: the image's files, the workspace and what else the plan attaches, and init as its
 * entry point, so that the command's words reach it as they are.
 *
 * Nothing of the plan but paths and limits is in the engine's arguments; init gets the command and its variables by its
 * socket. The container bears the name of the directory that the socket is in: what a killed hutch left of one that was
 * being started is found by that name and removed by the next start. One that runs ends by itself: its init watches the
 * warden. */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "backend.h"

#define INIT_AT "/.hutch/init"
#define DIR_AT "/.hutch/box"

static bool answers(const char *path) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return fd >= 0 &&
               (size_t) snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) < sizeof(address.sun_path) &&
               connect(fd, (struct sockaddr *) &address, sizeof(address)) == 0;
}

/* docker needs its daemon. One at a socket of this host is queried; another one could not attach paths of this host. */
static bool docker_answers(char *const *env) {
        const char *host = env ? strv_find_assignment(env, "DOCKER_HOST") : getenv("DOCKER_HOST");

        if (!host || !host[0])
                return answers("/var/run/docker.sock");
        return startswith(host, "unix://") && answers(host + strlen("unix://"));
}

int container_find_engine(const char *engine, char *const *env, char ret[PATH_MAX], struct hutch_error *err) {
        const char *path = env ? strv_find_assignment(env, "PATH") : getenv("PATH");
        bool any = !engine || streq(engine, "auto");

        if ((any || streq(engine, "docker")) && backend_find_program("docker", path, false, ret) >= 0 &&
            docker_answers(env))
                return 0;
        if ((any || streq(engine, "podman")) && backend_find_program("podman", path, false, ret) >= 0)
                return 0;
        return error_set(
                err, HUTCH_E_BACKEND_UNAVAILABLE, ENOENT,
                any ? "no container engine answers: neither docker's socket nor podman is available to this user"
                    : "%s does not answer: it is not installed, or its socket is not available to this user",
                engine);
}

static bool is_podman(const char *program) {
        return streq(path_basename(program), "podman");
}

static int push(struct launch_spec *spec, const char *const *words) {
        int r = 0;

        for (; r >= 0 && *words; words++)
                r = strv_push(&spec->argv, *words);
        return r;
}

/* Commas and quotes would end an option's value. */
static int add_mount(struct launch_spec *spec, const char *source, const char *dest, bool writable,
                     struct hutch_error *err) {
        if (strpbrk(source, ",\"\n") || strpbrk(dest, ",\"\n"))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EINVAL,
                                 "cannot attach %s in a container: its name has a comma, a quote or a line break",
                                 source);
        if (strv_push(&spec->argv, "--mount") < 0 ||
            strv_pushf(&spec->argv, "type=bind,source=%s,target=%s%s", source, dest, writable ? "" : ",readonly") < 0)
                return error_oom(err);
        return 0;
}

/* podman would copy what the image has there. */
static int add_tmpfs(struct launch_spec *spec, const struct plan *plan, const struct step *s, struct hutch_error *err) {
        char size[32] = "";

        if (strpbrk(s->dest, ",:\"\n"))
                return error_set(
                        err, HUTCH_E_GUARANTEE_UNAVAILABLE, EINVAL,
                        "cannot mount %s in a container: its name has a comma, a colon, a quote or a line break",
                        s->dest);
        if (plan->disk)
                snprintf(size, sizeof(size), ",size=%llu", (unsigned long long) plan->disk);
        /* Owned by root unless its mode lets everybody write; podman does not support uid= there. */
        if (strv_push(&spec->argv, "--tmpfs") < 0 ||
            strv_pushf(&spec->argv, "%s:rw,%s,nosuid,nodev,mode=%o%s%s", s->dest,
                       s->flags & STEP_NOEXEC ? "noexec" : "exec", s->mode == 0700 ? 0777 : s->mode | 022, size,
                       is_podman(spec->argv[0]) ? ",notmpcopyup" : "") < 0)
                return error_oom(err);
        return 0;
}

static int add_step(struct launch_spec *spec, const struct plan *plan, const struct step *s, struct hutch_error *err) {
        char real[PATH_MAX];
        struct stat st;

        if (s->kind == STEP_TMPFS)
                return add_tmpfs(spec, plan, s, err);
        if (s->kind != STEP_BIND)
                return 0;
        if (!realpath(s->source, real) || stat(real, &st) < 0)
                return s->flags & STEP_REPLACE ? 0
                                               : error_set(err, HUTCH_E_PATH_MISSING, errno, "cannot attach %s: %s",
                                                           s->source, errno_text(errno));
        if (!streq(real, s->source) || S_ISSOCK(st.st_mode))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM, "cannot attach %s in a container: it is a %s",
                                 s->source, S_ISSOCK(st.st_mode) ? "socket" : "symbolic link; name its target");
        return add_mount(spec, s->source, s->dest, s->flags & STEP_WRITABLE, err);
}

static int add_limits(struct launch_spec *spec, const struct plan *plan) {
        int r = 0;

        if (plan->memory) {
                r = strv_pushf(&spec->argv, "--memory=%llu", (unsigned long long) plan->memory);
                if (r >= 0) /* the same: no swap on top */
                        r = strv_pushf(&spec->argv, "--memory-swap=%llu", (unsigned long long) plan->memory);
        }
        if (r >= 0 && plan->cpu_percent)
                r = strv_pushf(&spec->argv, "--cpus=%llu.%02llu", (unsigned long long) plan->cpu_percent / 100,
                               (unsigned long long) plan->cpu_percent % 100);
        if (r >= 0 && plan->pids) /* init, and one more for it to see that the limit was passed */
                r = strv_pushf(&spec->argv, "--pids-limit=%llu", (unsigned long long) plan->pids + 2);
        return r;
}

static int compile(const struct plan *plan, const struct init_place *place, struct launch_spec *ret,
                   struct hutch_error *err) {
        static const char entrypoint[] = "--entrypoint=" INIT_AT;
        char program[PATH_MAX];
        const char *name = path_basename(place->dir);
        int r = container_find_engine(plan->engine, plan->engine_env, program, err);
        const char *const words[] = {program,
                                     "run",
                                     "--rm",
                                     "--pull=never",
                                     "--label=hutch.box=1",
                                     "--security-opt=no-new-privileges",
                                     "--cap-drop=ALL",
                                     "--read-only",
                                     "--ipc=private",
                                     "--log-driver=none",
                                     entrypoint,
                                     "--workdir=/",
                                     NULL};

        if (r < 0)
                return r;
        if (push(ret, words) < 0 || strv_pushf(&ret->argv, "--name=%s", name) < 0 ||
            strv_pushf(&ret->argv, "--hostname=%s", plan->host_name ? plan->host_name : "sandbox") < 0 ||
            strv_pushf(&ret->argv, "--user=%u:%u", plan->uid, plan->gid) < 0 ||
            strv_pushf(&ret->argv, "--network=%s",
                       !plan->net_open ? "none"
                       : plan->bridge  ? "bridge"
                                       : "host") < 0 ||
            (is_podman(program) && plan->uid != 0 && strv_push(&ret->argv, "--userns=keep-id") < 0) ||
            add_limits(ret, plan) < 0)
                return error_oom(err);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                r = add_step(ret, plan, &plan->steps[i], err);
        if (r < 0)
                return r;
        r = add_mount(ret, place->program, INIT_AT, false, err);
        if (r < 0)
                return r;
        r = add_mount(ret, place->dir, DIR_AT, false, err);
        if (r < 0)
                return r;
        if (push(ret, (const char *const[]){plan->image, "socket", DIR_AT, NULL}) < 0 ||
            strv_push(&ret->kill, program) < 0 || strv_push(&ret->kill, "rm") < 0 || strv_push(&ret->kill, "-f") < 0 ||
            strv_push(&ret->kill, name) < 0)
                return error_oom(err);
        return 0;
}

static int check(const struct host_facts *facts _unused_, struct hutch_error *err) {
        char program[PATH_MAX];

        return container_find_engine("auto", NULL, program, err);
}

static void offer(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret) {
        backend_namespace.offer(policy, facts, ret);
        ret->have[HUTCH_G_FILESYSTEM] = facts->privileged ? STRENGTH_PARTIAL : STRENGTH_FULL;
        ret->lack[HUTCH_G_FILESYSTEM] = "the box runs as uid 0, without capabilities: run hutch as an ordinary user";
        ret->have[HUTCH_G_NETWORK] =
                policy_network(policy) == HUTCH_NET_DENY || policy_network(policy) == HUTCH_NET_OPEN ? STRENGTH_FULL
                                                                                                     : STRENGTH_NONE;
        ret->lack[HUTCH_G_NETWORK] = "a container has --net deny and --net open only";
        ret->have[HUTCH_G_MEMORY] = ret->have[HUTCH_G_PIDS] = STRENGTH_FULL;
        ret->have[HUTCH_G_CPU] = STRENGTH_FULL;
        ret->have[HUTCH_G_DISK] = STRENGTH_NONE;
        ret->lack[HUTCH_G_DISK] = "each of the box's own directories would have the limit for itself";
}

const struct backend backend_container = {.name = "container",
                                          .alias = "docker",
                                          .traits = TRAIT_OWN_ROOT | TRAIT_OWN_PIDS | TRAIT_OWN_NET | TRAIT_OWN_IPC |
                                                    TRAIT_FILTER | TRAIT_LANDLOCK | TRAIT_DELEGATED | TRAIT_IMAGE |
                                                    TRAIT_OWN_LIMITS,
                                          .check = check,
                                          .offer = offer,
                                          .compile = compile};
