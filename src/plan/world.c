/* The files that describe the box instead of the host: its users, the name of the machine, how much of it the box has,
 * and what a shell of the box's user reads when it starts.
 *
 * Where /etc is read-only they are put over the host's. Where it is a private layer of the box (--cow /) they are files
 * in that layer, which adduser and similar tools can change. */
#include "plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"

static const char profile[] = "# ~/.profile: read by login shells\n"
                              "if [ -n \"$BASH_VERSION\" ] && [ -f \"$HOME/.bashrc\" ]; then\n"
                              "        . \"$HOME/.bashrc\"\n"
                              "fi\n";

static const char bashrc[] =
        "# ~/.bashrc: read by interactive shells\n"
        "case $- in *i*) ;; *) return ;; esac\n"
        "HISTCONTROL=ignoreboth\n"
        "HISTSIZE=10000\n"
        "shopt -s checkwinsize histappend\n"
        "PS1='\\u@\\h:\\w\\$ '\n"
        "if [ -t 1 ] && [ -z \"$NO_COLOR\" ] && command -v dircolors >/dev/null; then\n"
        "        eval \"$(dircolors -b)\"\n"
        "        alias ls='ls --color=auto' grep='grep --color=auto'\n"
        "        PS1='\\[\\e[1;32m\\]\\u@\\h\\[\\e[0m\\]:\\[\\e[1;34m\\]\\w\\[\\e[0m\\]\\$ '\n"
        "fi\n"
        "alias ll='ls -l' la='ls -A'\n"
        "if [ -t 1 ] && ! shopt -oq posix && [ -r /usr/share/bash-completion/bash_completion ]; then\n"
        "        . /usr/share/bash-completion/bash_completion\n"
        "fi\n";

static bool beneath_system(const struct survey *survey, const char *path) {
        for (size_t i = 0; i < survey->n_system; i++)
                if (!survey->system[i].link && path_is_beneath(path, survey->system[i].path))
                        return true;
        return false;
}

static int add_file(struct plan *plan, unsigned flags, mode_t mode, const char *dest, const char *format, ...)
        _printf_(5, 6);
static int add_file(struct plan *plan, unsigned flags, mode_t mode, const char *dest, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        va_list args;
        int n;

        va_start(args, format);
        n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0)
                return -ENOMEM;
        return plan_add_step(
                plan,
                (struct step){.kind = STEP_FILE, .flags = flags, .mode = mode, .dest = (char *) dest, .text = text});
}

static bool is_layer(const struct plan *plan, const char *path) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW && streq(plan->steps[i].dest, path))
                        return true;
        return false;
}

/* The users of the system are the host's where packages can be installed: their files and rules name them. */
static int add_etc(struct plan *plan, const struct plan_input *in) {
        const struct survey *survey = in->survey;
        bool layer = is_layer(plan, "/etc"), own = layer && survey->system_passwd && survey->system_group;
        unsigned flags = layer ? STEP_SEED | STEP_WRITABLE : STEP_REPLACE;
        mode_t mode = layer ? 0644 : 0444;
        int r = 0;

        if (policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_USER) {
                if (survey->has_passwd)
                        r = add_file(plan, flags, mode, "/etc/passwd", "%s%s:x:%u:%u:%s:%s:%s\n%s",
                                     own ? survey->system_passwd : "root:x:0:0:root:/root:/bin/sh\n", plan->user,
                                     plan->uid, plan->gid, plan->user, plan->home,
                                     survey->has_bash ? "/bin/bash" : "/bin/sh",
                                     own ? "" : "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
                if (r >= 0 && survey->has_group)
                        r = add_file(plan, flags, mode, "/etc/group", "%s%s:x:%u:\n%s",
                                     own ? survey->system_group : "root:x:0:\n", plan->user, plan->gid,
                                     own ? "" : "nogroup:x:65534:\n");
                if (r >= 0 && survey->has_hosts)
                        r = add_file(plan, flags, mode, "/etc/hosts",
                                     "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
                                     plan->host_name);
                if (r >= 0 && survey->has_hostname)
                        r = add_file(plan, flags, mode, "/etc/hostname", "%s\n", plan->host_name);
        }
        if (r < 0)
                return r;
        /* The host's is not readable, and without one no user can be added. */
        if (layer)
                r = add_file(plan, flags, 0640, "/etc/shadow", "root:*:19000:0:99999:7:::\n");
        if (r < 0)
                return r;
        if (layer)
                r = add_file(plan, flags, 0640, "/etc/gshadow", "root:*::\n");
        return r;
}

static int add_home(struct plan *plan) {
        _cleanup_(freep) char *rc = NULL, *login = NULL;
        int r;

        if (asprintf(&rc, "%s/.bashrc", plan->home) < 0 || asprintf(&login, "%s/.profile", plan->home) < 0)
                return -ENOMEM;
        r = add_file(plan, STEP_SEED | STEP_WRITABLE, 0644, rc, "%s", bashrc);
        return r < 0 ? r : add_file(plan, STEP_SEED | STEP_WRITABLE, 0644, login, "%s", profile);
}

/* A value in git's own quotes. */
static void put_value(struct buf *b, const char *key, const char *value) {
        if (!value)
                return;
        buf_printf(b, "\t%s = \"", key);
        for (const char *p = value; *p; p++) {
                if (*p == '"' || *p == '\\')
                        buf_puts(b, "\\");
                if (*p == '\n')
                        buf_puts(b, "\\n");
                else
                        buf_put(b, p, 1);
        }
        buf_puts(b, "\"\n");
}

/* The policy's name, or else the person's, so that a commit in the box is theirs. It is the box's own file. */
int plan_add_git_identity(struct plan *plan, const struct plan_input *in) {
        const char *name = policy_text(in->policy, KEY_GIT_NAME), *email = policy_text(in->policy, KEY_GIT_EMAIL);
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(freep) char *path = NULL, *text = NULL;

        name = name ? name : in->survey->git_name;
        email = email ? email : in->survey->git_email;
        if (!name && !email)
                return 0;
        buf_puts(&b, "[user]\n");
        put_value(&b, "name", name);
        put_value(&b, "email", email);
        text = buf_take_string(&b);
        if (!text || asprintf(&path, "%s/.gitconfig", plan->home) < 0)
                return -ENOMEM;
        return add_file(plan, STEP_SEED | STEP_WRITABLE, 0644, path, "%s", text);
}

/* The share of the machine that the box has. These are the values at its start: the numbers are not updated, so all of
 * its memory counts as free. A covered /proc would prevent a nested box from mounting its own. */
static int add_machine(struct plan *plan, const struct survey *survey) {
        unsigned long long total = plan->memory / 1024;
        int r = 0;

        if (plan->nested)
                return 0;
        if (plan->memory && plan->memory < survey->memory)
                r = add_file(plan, STEP_REPLACE, 0444, "/proc/meminfo",
                             "MemTotal:       %8llu kB\nMemFree:        %8llu kB\nMemAvailable:   %8llu kB\n"
                             "Buffers:               0 kB\nCached:                0 kB\nSwapCached:            0 kB\n"
                             "Shmem:                 0 kB\nSReclaimable:          0 kB\nSwapTotal:             0 kB\n"
                             "SwapFree:              0 kB\n",
                             total, total, total);
        if (r < 0)
                return r;
        if (plan->cpu_percent && survey->cpuinfo)
                r = add_file(plan, STEP_REPLACE, 0444, "/proc/cpuinfo", "%s", survey->cpuinfo);
        return r;
}

int plan_add_world(struct plan *plan, const struct plan_input *in) {
        const struct survey *survey = in->survey;
        int r = 0;

        /* A resolver's file often is a link into /run, of which the box has its own. */
        if (survey->resolv_conf && !beneath_system(survey, survey->resolv_conf))
                r = plan_add_step(
                        plan,
                        (struct step){.kind = STEP_BIND, .source = survey->resolv_conf, .dest = survey->resolv_conf});
        if (r < 0)
                return r;
        r = add_etc(plan, in);
        if (r < 0)
                return r;
        if (policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_USER)
                r = add_home(plan);
        if (r < 0)
                return r;
        r = plan_add_git_identity(plan, in);
        return r < 0 ? r : add_machine(plan, survey);
}
