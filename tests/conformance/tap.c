/* See tap.h. */
#include "tap.h"

#include <dirent.h>
#include <stdarg.h>
#include <time.h>

__thread hutch_error tap_err;
__thread int tap_ret;
static int count, failed;

bool ok(bool good, const char *what, ...) {
        va_list args;

        printf("%sok %d - ", good ? "" : "not ", ++count);
        va_start(args, what);
        vprintf(what, args);
        va_end(args);
        putchar('\n');
        fflush(stdout);
        if (!good)
                failed++;
        return good;
}

bool is(const char *got, const char *want, const char *what) {
        bool same = got && !strcmp(got, want);

        if (!ok(same, "%s", what))
                printf("#   got  '%s'\n#   want '%s'\n", got ? got : "(null)", want);
        return same;
}

int done_testing(void) {
        printf("1..%d\n", count);
        return failed ? 1 : 0;
}

void bail_out(const char *file, int line, const char *call) {
        ok(false, "%s:%d: %s: %s", file, line, call, tap_err.message);
        exit(1);
}

hutch_context *new_context(void) {
        hutch_context *c = NULL;

        MUST(hutch_context_new(HUTCH_WARDEN_PROCESS, &c, &tap_err));
        return c;
}

hutch_box *new_box_with(hutch_context *context, const hutch_policy *policy) {
        hutch_box_options options = {.struct_size = sizeof(options), .context = context};
        hutch_box *box = NULL;

        MUST(hutch_box_open(policy, &options, &box, &tap_err));
        return box;
}

hutch_box *new_box(hutch_context *context) {
        hutch_policy *p = NULL;
        hutch_box *box;

        MUST(hutch_policy_new(&p));
        box = new_box_with(context, p);
        hutch_policy_free(p);
        return box;
}

hutch_result *run_text(hutch_box *box, const char *text) {
        hutch_request request = {.struct_size = sizeof(request), .command = text};
        hutch_result *r = NULL;

        tap_err = (hutch_error){0};
        tap_ret = hutch_box_run(box, &request, &r, &tap_err);
        if (!r)
                bail_out(__FILE__, __LINE__, text);
        return r;
}

void nap(unsigned ms) {
        nanosleep(&(struct timespec){ms / 1000, (long) (ms % 1000) * 1000000}, NULL);
}

double now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1000 + (double) t.tv_nsec / 1e6;
}

int count_fds(void) {
        DIR *d = opendir("/proc/self/fd");
        int n = 0;

        while (d && readdir(d))
                n++;
        if (d)
                closedir(d);
        return n;
}

const char *mark_of(int which) {
        static char text[8][32];

        snprintf(text[which], sizeof(text[which]), "9%d.%d", which, (int) getpid());
        return text[which];
}

/* Reads a file of /proc/<pid>/ with its NULs as spaces; false if there is none. */
static bool read_proc(const char *pid, const char *name, char *text, size_t room) {
        char path[300];
        size_t n;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
        f = fopen(path, "r");
        if (!f)
                return false;
        n = fread(text, 1, room - 1, f);
        fclose(f);
        for (size_t i = 0; i < n; i++)
                if (!text[i])
                        text[i] = ' ';
        text[n] = 0;
        return true;
}

int count_processes(const char *text) {
        DIR *d = opendir("/proc");
        char line[8192];
        int n = 0;

        for (struct dirent *e; d && (e = readdir(d));)
                if (atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() && read_proc(e->d_name, "cmdline", line, sizeof(line)) &&
                    strstr(line, text))
                        n++;
        if (d)
                closedir(d);
        return n;
}

bool await_processes(const char *text, int n) {
        for (int i = 0; i < 2000; i++) {
                if (count_processes(text) == n)
                        return true;
                nap(10);
        }
        return false;
}

static int find_process(const char *text) {
        DIR *d = opendir("/proc");
        char line[8192];
        int found = 0;

        for (struct dirent *e; !found && d && (e = readdir(d));)
                if (atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() && read_proc(e->d_name, "cmdline", line, sizeof(line)) &&
                    strstr(line, text))
                        found = atoi(e->d_name);
        if (d)
                closedir(d);
        return found;
}

int warden_of(const char *text) {
        int pid = find_process(text);

        while (pid > 1) {
                char name[16], line[1024], *behind;

                snprintf(name, sizeof(name), "%d", pid);
                if (!read_proc(name, "stat", line, sizeof(line)))
                        return 0;
                if (strstr(line, "(hutch-warden)"))
                        return pid;
                behind = strrchr(line, ')');
                if (!behind || sscanf(behind, ") %*c %d", &pid) != 1)
                        return 0;
        }
        return 0;
}

bool is_alive(int pid) {
        char name[16], line[1024], *behind;

        snprintf(name, sizeof(name), "%d", pid);
        if (!read_proc(name, "stat", line, sizeof(line)))
                return false;
        behind = strrchr(line, ')');
        return behind && behind[2] != 'Z' && behind[2] != 'X';
}

bool await_end(int pid) {
        for (int i = 0; i < 2000; i++) {
                if (!is_alive(pid))
                        return true;
                nap(10);
        }
        return false;
}
