/* Scanning: finds the files, hands their texts to hutch-scan (src/scan) and keeps what it reports.
 *
 * One helper serves one call: a skill's files have one author, and nothing that a file could do to the helper reaches
 * another call. A helper that dies is an error, never an empty list. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "api.h"
#include "check.h"
#include "script.h"
#include "../base/error.h"
#include "../base/io.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "../scan/exchange.h"
#include "../scan/render.h"
#include "../warden/spawn.h"

#define DEFAULT_MOST ((uint64_t) 16 << 20)
#define RULES_MOST ((size_t) 4 << 20)
#define FILES_MOST 100000
#define DEPTH_MOST 64

struct hutch_findings {
        hutch_finding *v;
        size_t n, files;
};

struct scanning {
        hutch_scan_options options;
        struct hutch_findings *out;
        int socket;
        pid_t pid;
        const char *extra; /* rules that hutch itself makes for this scan; NULL: none */
        struct hutch_error *err;
};

static void scanning_done(struct scanning *s) {
        closep(&s->socket);
        if (s->pid > 0)
                warden_reap(s->pid);
}

void hutch_findings_free(hutch_findings *f) {
        for (size_t i = 0; f && i < f->n; i++) {
                free((char *) f->v[i].rule);
                free((char *) f->v[i].file);
                free((char *) f->v[i].excerpt);
                free((char *) f->v[i].reason);
                free((char *) f->v[i].fix);
                free((char *) f->v[i].why);
        }
        if (f)
                free(f->v);
        free(f);
}

static void findings_freep(hutch_findings **f) {
        hutch_findings_free(*f);
}

size_t hutch_findings_count(const hutch_findings *f) {
        return f ? f->n : 0;
}

size_t hutch_findings_files(const hutch_findings *f) {
        return f ? f->files : 0;
}

const hutch_finding *hutch_findings_get(const hutch_findings *f, size_t i) {
        return f && i < f->n ? &f->v[i] : NULL;
}

bool hutch_findings_critical(const hutch_findings *f) {
        for (size_t i = 0; f && i < f->n; i++)
                if (f->v[i].severity == HUTCH_CRITICAL && !f->v[i].suppressed)
                        return true;
        return false;
}

int hutch_findings_format(const hutch_findings *f, const char *format, char **ret, hutch_error *err) {
        int r;

        if (!f || !format || !ret)
                return api_null(err, __func__, !f ? "findings" : !format ? "format" : "ret");
        if (streq(format, "json"))
                r = findings_json(f->v, f->n, f->files, ret);
        else if (streq(format, "sarif"))
                r = findings_sarif(f->v, f->n, ret);
        else if (streq(format, "text"))
                r = findings_text(f->v, f->n, f->files, ret);
        else
                return error_set(err, HUTCH_E_USAGE, EINVAL, "unknown format '%s' (known: text, json, sarif)", format);
        return r < 0 ? error_oom(err) : 0;
}

static int add(struct scanning *s, const char *file, struct scan_finding *from) {
        static const hutch_severity severities[] = {HUTCH_INFO, HUTCH_WARNING, HUTCH_CRITICAL};
        hutch_finding *v = reallocarray(s->out->v, s->out->n + 1, sizeof(*v)), *f;

        if (!v)
                return error_oom(s->err);
        s->out->v = v;
        f = &v[s->out->n];
        *f = (hutch_finding){.struct_size = sizeof(*f),
                             .severity = severities[from->severity],
                             .line = from->line,
                             .column = from->column};
        f->file = strdup(file);
        if (!f->file)
                return error_oom(s->err);
        text_clean_in_place(from->excerpt);
        f->rule = take_ptr(from->rule);
        f->excerpt = take_ptr(from->excerpt);
        f->reason = take_ptr(from->reason);
        f->fix = take_ptr(from->fix);
        f->suppressed = from->suppressed && !s->options.ignore_suppressions;
        f->why = f->suppressed ? take_ptr(from->why) : NULL;
        s->out->n++;
        return 0;
}

static int add_own(struct scanning *s, const char *file, const char *rule, hutch_severity severity, const char *reason,
                   const char *fix) {
        struct scan_finding f = {.rule = strdup(rule),
                                 .excerpt = strdup(""),
                                 .reason = strdup(reason),
                                 .fix = strdup(fix),
                                 .line = 1,
                                 .column = 1,
                                 .severity = severity == HUTCH_CRITICAL  ? 2
                                             : severity == HUTCH_WARNING ? 1
                                                                         : 0};

        if (!f.rule || !f.excerpt || !f.reason || !f.fix) {
                free(f.rule);
                free(f.excerpt);
                free(f.reason);
                free(f.fix);
                return error_oom(s->err);
        }
        return add(s, file, &f);
}

/* ---- the helper ---- */

static int helper_gone(struct scanning *s, int r) {
        return error_set(s->err, HUTCH_E_SETUP_FAILED, r < 0 ? -r : EIO,
                         "hutch-scan ended unexpectedly; nothing was scanned");
}

/* A helper that ends with something unread resets the connection; what it sent before that is still there. */
static int receive(struct scanning *s, uint8_t **ret, size_t *ret_len) {
        int r = record_receive(s->socket, ret, ret_len);

        return r == -ECONNRESET ? record_receive(s->socket, ret, ret_len) : r;
}

/* It did not read what was sent: it has sent its reason, or is gone. */
static int helper_refused(struct scanning *s, int r) {
        _cleanup_(scan_report_done) struct scan_report report = {0};
        _cleanup_(freep) uint8_t *data = NULL;
        size_t len;

        if (receive(s, &data, &len) < 0 || scan_report_decode(data, len, &report) < 0 || !report.error)
                return helper_gone(s, r);
        return error_set(s->err, HUTCH_E_POLICY_INVALID, EINVAL, "%s", report.error);
}

static int send_rules(struct scanning *s, const char *name, const char *text, size_t len) {
        _cleanup_(buf_done) struct buf b = {0};
        int r;

        wire_put_str(&b, name);
        wire_put_bytes(&b, text, len);
        r = record_send(s->socket, &b);
        return r < 0 ? helper_refused(s, r) : 0;
}

static int begin(struct scanning *s, const hutch_scan_options *options) {
        int r;

        if (options)
                memcpy(&s->options, options,
                       options->struct_size && options->struct_size < sizeof(s->options) ? options->struct_size
                                                                                         : sizeof(s->options));
        if (!s->options.max_bytes || s->options.max_bytes > SCAN_RECORD_MOST / 2)
                s->options.max_bytes = s->options.max_bytes ? SCAN_RECORD_MOST / 2 : DEFAULT_MOST;
        s->out = calloc(1, sizeof(*s->out));
        if (!s->out)
                return error_oom(s->err);
        r = scan_spawn(&s->socket, &s->pid, s->err);
        if (r < 0)
                return r;
        for (const char *const *file = s->options.rules; file && *file; file++) {
                _cleanup_(freep) char *text = NULL;
                size_t len;

                r = read_whole_file(AT_FDCWD, *file, RULES_MOST, &text, &len);
                if (r < 0)
                        return error_set(s->err, HUTCH_E_PATH_MISSING, r, "cannot read scan rules from %s: %s", *file,
                                         errno_text(-r));
                if (len == 0)
                        continue;
                r = send_rules(s, *file, text, len);
                if (r < 0)
                        return r;
        }
        if (s->extra) {
                r = send_rules(s, "commands", s->extra, strlen(s->extra));
                if (r < 0)
                        return r;
        }
        return send_rules(s, "", "", 0);
}

static int scan_text(struct scanning *s, const char *file, uint32_t language, const char *text, size_t len) {
        _cleanup_(scan_report_done) struct scan_report report = {0};
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(freep) uint8_t *data = NULL;
        size_t data_len;
        int r;

        wire_put_u32(&b, language);
        wire_put_str(&b, file);
        wire_put_bytes(&b, text, len);
        (void) record_send(s->socket, &b); /* a helper that failed has sent its reason */
        r = receive(s, &data, &data_len);
        if (r >= 0)
                r = scan_report_decode(data, data_len, &report);
        if (r < 0)
                return helper_gone(s, r);
        if (report.error)
                return error_set(s->err, HUTCH_E_POLICY_INVALID, EINVAL, "%s", report.error);
        for (size_t i = 0; i < report.n; i++) {
                r = add(s, file, &report.findings[i]);
                if (r < 0)
                        return r;
        }
        s->out->files++;
        return report.dropped ? add_own(s, file, "too-many-findings", HUTCH_WARNING, "more findings than are listed",
                                        "read the file")
                              : 0;
}

static int language_number(const char *name, uint32_t *ret, struct hutch_error *err) {
        static const struct {
                const char *name;
                uint32_t number;
        } known[] = {{"shell", 1}, {"sh", 1},         {"bash", 1}, {"python", 2}, {"javascript", 4}, {"js", 4},
                     {"node", 4},  {"typescript", 4}, {"ts", 4},   {"other", 8},  {"markdown", 16}};

        *ret = 0;
        if (!name)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (streq(name, known[i].name)) {
                        *ret = known[i].number;
                        return 0;
                }
        return error_set(err, HUTCH_E_USAGE, EINVAL,
                         "unknown language '%s' (known: shell, python, javascript, typescript, other)", name);
}

int hutch_scan(const char *text, size_t len, const char *language, const hutch_scan_options *options,
               hutch_findings **ret, hutch_error *err) {
        if (!text || !ret)
                return api_null(err, __func__, !text ? "text" : "ret");
        return scan_with_rules(text, len, language, options, NULL, ret, err);
}

int scan_with_rules(const char *text, size_t len, const char *language, const hutch_scan_options *options,
                    const char *rules, hutch_findings **ret, hutch_error *err) {
        _cleanup_(scanning_done) struct scanning s = {.socket = -1, .extra = rules, .err = err};
        uint32_t number;
        int r;

        r = language_number(language, &number, err);

        if (r < 0)
                return r;
        r = begin(&s, options);
        if (r >= 0 && len > s.options.max_bytes)
                r = add_own(&s, "", "oversized", HUTCH_WARNING, "too large to be scanned",
                            "read it, or raise the limit");
        else if (r >= 0)
                r = scan_text(&s, "", number, text, len);
        if (r < 0) {
                hutch_findings_free(s.out);
                return r;
        }
        *ret = s.out;
        return 0;
}

/* ---- files ---- */

static int scan_path(struct scanning *s, const char *path) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        _cleanup_(freep) char *text = NULL;
        struct stat st;
        size_t len;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(s->err, errno == ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_IO, errno, "%s: %s", path,
                                 errno_text(errno));
        if (!S_ISREG(st.st_mode))
                return error_set(s->err, HUTCH_E_USAGE, EINVAL, "%s: not a regular file", path);
        if ((uint64_t) st.st_size > s->options.max_bytes) {
                s->out->files++;
                return add_own(s, path, "oversized", HUTCH_WARNING, "the file is too large to be scanned",
                               "read it, or raise the limit with --max-size");
        }
        r = read_whole_fd(fd, s->options.max_bytes, &text, &len);
        if (r < 0)
                return error_set(s->err, HUTCH_E_IO, r, "%s: %s", path, errno_text(-r));
        return scan_text(s, path, 0, text, len);
}

static bool has_suffix(const char *name, const char *end) {
        size_t n = strlen(name), m = strlen(end);

        return n > m && streq(name + n - m, end);
}

/* Whether a file of a directory may be run, or specifies what to run. */
static bool is_of_interest(int dir, const char *name, const struct stat *st) {
        static const char *const ends[] = {".sh",  ".bash",        ".ksh",  ".py",      ".pyw",         ".js",
                                           ".mjs", ".cjs",         ".ts",   ".mts",     ".cts",         ".jsx",
                                           ".tsx", ".pl",          ".rb",   ".php",     ".lua",         ".awk",
                                           ".md",  "package.json", ".bats", ".command", "composer.json"};
        _cleanup_(closep) int fd = -1;
        char head[4];

        if (st->st_mode & 0111 || streq(name, "package.json") || streq(name, "composer.json"))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                if (has_suffix(name, ends[i]))
                        return true;
        fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        return fd >= 0 && read(fd, head, 4) >= 2 &&
               ((head[0] == '#' && head[1] == '!') || memcmp(head, "\177ELF", 4) == 0);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int list_directory(struct scanning *s, int dir, const char *path, unsigned depth, char ***files) {
        struct dirent **entries = NULL;
        int n, r = 0;

        n = scandirat(dir, ".", &entries, NULL, by_name);
        if (n < 0)
                return error_set(s->err, HUTCH_E_IO, errno, "%s: %s", path, errno_text(errno));
        for (int i = 0; i < n; i++) {
                const char *name = entries[i]->d_name;
                _cleanup_(freep) char *full = NULL;
                _cleanup_(closep) int sub = -1;
                struct stat st;

                if (r < 0 || streq(name, ".") || streq(name, "..") || streq(name, ".git") ||
                    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        free(entries[i]);
                        continue;
                }
                if (asprintf(&full, "%s/%s", path, name) < 0)
                        r = error_oom(s->err);
                else if (S_ISLNK(st.st_mode))
                        r = add_own(s, full, "symbolic-link", HUTCH_INFO, "a symbolic link, which is not followed",
                                    "scan its target if it is to be run");
                else if (S_ISDIR(st.st_mode) && depth >= DEPTH_MOST)
                        r = add_own(s, full, "scan-incomplete", HUTCH_WARNING, "the directory is nested too deep",
                                    "scan it by itself");
                else if (S_ISDIR(st.st_mode)) {
                        sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                        r = sub < 0 ? add_own(s, full, "scan-incomplete", HUTCH_WARNING, "the directory cannot be read",
                                              "check its permissions")
                                    : list_directory(s, sub, full, depth + 1, files);
                } else if (S_ISREG(st.st_mode) && is_of_interest(dir, name, &st))
                        r = strv_push(files, full) < 0 ? error_oom(s->err) : 0;
                free(entries[i]);
        }
        free(entries);
        return r;
}

int hutch_scan_paths(const char *const *paths, const hutch_scan_options *options, hutch_findings **ret,
                     hutch_error *err) {
        _cleanup_(scanning_done) struct scanning s = {.socket = -1, .err = err};
        _cleanup_(strv_freep) char **files = NULL;
        _cleanup_(findings_freep) hutch_findings *out = NULL;
        size_t total;
        int r;

        if (!paths || !ret)
                return api_null(err, __func__, !paths ? "paths" : "ret");
        r = begin(&s, options);
        out = s.out;
        for (; r >= 0 && *paths; paths++) {
                _cleanup_(closep) int dir = open(*paths, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                if (dir >= 0)
                        r = list_directory(&s, dir, *paths, 0, &files);
                else if (strv_push(&files, *paths) < 0)
                        r = error_oom(err);
        }
        total = strv_length(files);
        for (size_t i = 0; r >= 0 && files && i < total; i++) {
                if (s.options.on_file)
                        s.options.on_file(s.options.user, files[i], i, total);
                r = scan_path(&s, files[i]);
        }
        if (r < 0)
                return r;
        *ret = take_ptr(out);
        return 0;
}

/* ---- runtimes ---- */

/* Shells whose language the scanner reads; csh, fish and tclsh have others. */
bool script_is_shell(const char *name) {
        static const char *const shells[] = {"sh",    "bash", "dash", "ash",   "ksh",
                                             "ksh93", "mksh", "zsh",  "rbash", "posh"};

        for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
                if (streq(name, shells[i]))
                        return true;
        return false;
}

const char *hutch_detect_runtime(const char *path) {
        static const struct {
                const char *end, *runtime;
        } known[] = {{".py", "python"}, {".js", "node"},  {".mjs", "node"}, {".cjs", "node"},  {".ts", "node"},
                     {".mts", "node"},  {".cts", "node"}, {".sh", "shell"}, {".bash", "shell"}};
        _cleanup_(closep) int fd = -1;
        char head[256], name[64];
        ssize_t n;

        if (!path)
                return "binary";
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (has_suffix(path, known[i].end))
                        return known[i].runtime;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        n = fd < 0 ? -1 : read(fd, head, sizeof(head));
        if (n < 3 || !text_interpreter(head, (size_t) n, name, sizeof(name)))
                return "binary";
        if (startswith(name, "python") || startswith(name, "pypy"))
                return "python";
        if (streq(name, "node") || streq(name, "nodejs"))
                return "node";
        return script_is_shell(name) ? "shell" : "binary";
}
