/* See docker.h.
 *
 * DOCKER_HOST decides where it is set: a socket (unix:///path or /path) or a host (tcp://host:port), which becomes a
 * rule of the network. Otherwise the first of the usual places that is a socket: the system's, Docker Desktop's, the
 * rootless engine's. Access to an engine that runs as root is root on the host, so there is always a warning. */
#include "docker.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "../base/strv.h"

#define ORIGIN "docker"

static int warn(struct hutch_policy *p, const char *subject, const char *fix, const char *text,
                struct hutch_error *err) {
        return events_note(&p->events, NOTICE_DOCKER, subject, fix, "%s", text) < 0 ? error_oom(err) : 0;
}

/* 0 if a process listens there, or -errno. Nothing is sent. */
static int try_socket(const char *path) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(closep) int fd = -1;
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        if (!S_ISSOCK(st.st_mode))
                return -ENOTSOCK;
        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return errno == EAGAIN ? 0 : -errno;
        return 0;
}

static int attach_socket(struct hutch_policy *p, const char *path, const char *host, struct hutch_error *err) {
        char text[512];
        int r;

        snprintf(text, sizeof(text), "the box can use Docker (%.300s): with it, it is root on this host", path);
        r = policy_add_path(p, HUTCH_SOCKET, path, NULL, ORIGIN, err);
        if (r < 0)
                return r;
        if (host)
                r = policy_add_env(p, "DOCKER_HOST", host, ORIGIN, err);
        return r < 0 ? r : warn(p, path, NULL, text, err);
}

static int refuse_socket(struct hutch_policy *p, const char *path, int r, struct hutch_error *err) {
        char text[512];

        snprintf(text, sizeof(text), "Docker is not available in the box: %.300s: %s", path,
                 r == -ENOTSOCK       ? "not a socket"
                 : r == -ECONNREFUSED ? "no engine is running behind it"
                                      : errno_text(-r));
        return warn(p, path,
                    r == -EACCES ? "add yourself to the group 'docker', or use a rootless engine" : "start Docker",
                    text, err);
}

/* The port of an engine at this host's own loopback, which a box reaches as a port of the host. NULL: elsewhere. */
static const char *loopback_port(const char *rule) {
        static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const char *rest = startswith(rule, names[i]) ? rule + strlen(names[i]) : NULL;

                if (rest && (!rest[0] || rest[0] == ':'))
                        return rest[0] ? rest + 1 : "2375";
        }
        return NULL;
}

static int attach_host(struct hutch_policy *p, const char *host, struct hutch_error *err) {
        _cleanup_(freep) char *rule = strdup(host + strlen("tcp://"));
        const char *port;
        char text[512];
        int r;

        if (!rule)
                return error_oom(err);
        rule[strcspn(rule, "/")] = 0;
        snprintf(text, sizeof(text), "the box can use Docker at %.300s: with it, it is root there", rule);
        if (policy_network(p) != HUTCH_NET_OPEN) {
                if (policy_is_set(p, KEY_NETWORK) && policy_number(p, KEY_NETWORK) != HUTCH_NET_ALLOWLIST)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "--docker with DOCKER_HOST=%s needs the network: leave --net %s out", host,
                                         key_name(KEY_NETWORK, policy_number(p, KEY_NETWORK)));
                port = loopback_port(rule);
                r = port ? policy_set(p, KEY_ALLOW_HOST_PORT, port, ORIGIN, err)
                         : policy_add_host(p, rule, 0, ORIGIN, err);
                if (r < 0)
                        return error_wrap(err, r, "DOCKER_HOST");
        }
        r = policy_add_env(p, "DOCKER_HOST", host, ORIGIN, err);
        return r < 0 ? r : warn(p, rule, NULL, text, err);
}

static int search(struct hutch_policy *p, char *const *env, struct hutch_error *err) {
        const char *runtime = strv_find_assignment(env, "XDG_RUNTIME_DIR");
        char desktop[512] = "", rootless[512] = "", user[64], host[600];
        const char *const places[] = {"/var/run/docker.sock", "/run/docker.sock", desktop, rootless, user};
        const char *seen = NULL;
        int why = -ENOENT;

        if (p->home)
                snprintf(desktop, sizeof(desktop), "%s/.docker/run/docker.sock", p->home);
        if (runtime && runtime[0] == '/')
                snprintf(rootless, sizeof(rootless), "%s/docker.sock", runtime);
        snprintf(user, sizeof(user), "/run/user/%u/docker.sock", geteuid());
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                int r = places[i][0] ? try_socket(places[i]) : -ENOENT;

                if (r < 0 && r != -ENOENT && !seen) {
                        seen = places[i];
                        why = r;
                }
                if (r < 0)
                        continue;
                snprintf(host, sizeof(host), "unix://%s", places[i]);
                return attach_socket(p, places[i], i == 0 ? NULL : host, err);
        }
        return seen ? refuse_socket(p, seen, why, err)
                    : warn(p, NULL, "start Docker, or set DOCKER_HOST",
                           "Docker is not available in the box: no engine's socket was found", err);
}

int docker_attach(struct hutch_policy *p, char *const *env, struct hutch_error *err) {
        const char *host = strv_find_assignment(env, "DOCKER_HOST"), *path = host;
        char text[512];
        int r;

        if (!host || !host[0])
                return search(p, env, err);
        if (startswith(host, "tcp://"))
                return attach_host(p, host, err);
        if (startswith(host, "unix://"))
                path = host + strlen("unix://");
        if (path[0] != '/') {
                snprintf(text, sizeof(text),
                         "Docker is not available in the box: DOCKER_HOST=%.300s is neither a socket nor tcp://", host);
                return warn(p, host, "set DOCKER_HOST to unix:///PATH or tcp://HOST:PORT", text, err);
        }
        r = try_socket(path);
        return r < 0 ? refuse_socket(p, path, r, err) : attach_socket(p, path, host, err);
}
