/* What a command of a profile makes at its first start (profile.h): made on the host before the box, because a file
 * that does not exist cannot be attached, and what the command kept there would be gone with the box. Only beneath the
 * caller's home, with the modes that keep others out, and never through a link. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/path.h"
#include "../policy/value.h"
#include "box.h"

/* One directory beneath `dir`: what exists is opened, what is missing is made. */
static int enter(int dir, const char *name) {
        int fd;

        if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int make(const char *home, const char *path, bool directory) {
        _cleanup_(freep) char *rest = strdup(path_tail(path, home) + 1);
        _cleanup_(closep) int at = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char *next = rest, *name;

        if (!rest)
                return -ENOMEM;
        if (at < 0)
                return -errno;
        while ((name = strsep(&next, "/"))) {
                int fd = next || directory
                                 ? enter(at, name)
                                 : openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

                if (fd < 0)
                        return next || directory ? fd : -errno;
                close(at);
                at = fd;
        }
        return 0;
}

int box_make_missing(const struct hutch_policy *p, struct report *report, struct hutch_error *err) {
        _cleanup_(freep) char *text = NULL, *names = NULL;

        if (policy_number(p, KEY_IDENTITY) == HUTCH_AS_USER)
                return 0;
        for (size_t i = 0; p->home && i < p->n_paths; i++) {
                const struct path_rule *rule = &p->paths[i];
                char *longer;

                if (rule->missing < MISSING_MAKE_FILE || !path_is_beneath(rule->path, p->home) ||
                    streq(rule->path, p->home) || access(rule->path, F_OK) == 0)
                        continue;
                /* One that cannot be made is left out, as any other path of a profile. */
                if (make(p->home, rule->path, rule->missing == MISSING_MAKE_DIR) < 0)
                        continue;
                if (asprintf(&longer, "%s%s~%s", names ? names : "", names ? ", " : "",
                             path_tail(rule->path, p->home)) < 0)
                        return error_oom(err);
                free(names);
                names = longer;
        }
        if (!names)
                return 0;
        if (asprintf(&text, "made for the profile, so that what is kept there is not lost with the box: %s", names) < 0)
                return error_oom(err);
        struct hutch_event event = event_notice(NOTICE_PROFILE_MADE, names, "--profile none", text);
        report_event(report, &event);
        return 0;
}

int box_drop_missing(const struct hutch_policy *p, struct hutch_policy **ret) {
        _cleanup_(policy_freep) struct hutch_policy *copy = NULL;
        bool any = false;

        for (size_t i = 0; i < p->n_paths; i++)
                any |= p->paths[i].missing >= MISSING_MAKE_FILE && access(p->paths[i].path, F_OK) < 0;
        if (!any)
                return 0;
        if (policy_copy(p, &copy) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < copy->n_paths;)
                if (copy->paths[i].missing >= MISSING_MAKE_FILE && access(copy->paths[i].path, F_OK) < 0)
                        policy_drop_path(copy, i);
                else
                        i++;
        *ret = take_ptr(copy);
        return 0;
}
