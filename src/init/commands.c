/* Which programs may be executed, kept by Landlock.
 *
 * Rules only add rights, so everything is granted piece by piece: reading and executing to each program that may be
 * executed, nothing to the others beside it. They must not even be readable, because the dynamic loader, which every
 * program needs the right to execute, would run anything that it can map. Directories that hold programs are therefore
 * granted file by file, all others as a whole.
 *
 * Programs are compared as files, not as names: a denied program is denied under each of its links. A multi-call
 * program (busybox) is denied as a whole when one of its applets is. Nothing that the box can write is executable;
 * where there are mounts these are noexec as well (plan/commands.c), and files without a name are refused by a separate
 * filter (target.c). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "init.h"
#include "landlock.h"

#define READ_FILE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RUN (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE)
#define DEPTH_MOST 32

struct program {
        char *path;
        dev_t dev;
        ino_t ino;
        nlink_t links;
        bool executable, link, denied, allowed;
};

struct commands {
        const struct init_input *in;
        int ruleset;
        char **dirs; /* real paths of the directories that hold programs */
        struct program *programs;
        size_t n, room;
};

static void commands_done(struct commands *c) {
        for (size_t i = 0; i < c->n; i++)
                free(c->programs[i].path);
        free(c->programs);
        strv_free(c->dirs);
}

/* ---- where programs are ---- */

static const char *const known_dirs[] = {
        "/bin",           "/sbin",           "/usr/bin",     "/usr/sbin",       "/usr/games",
        "/usr/local/bin", "/usr/local/sbin", "/usr/libexec", "/usr/local/games"};

/* Further ones are found by their names beneath these. */
static const struct {
        const char *path;
        int depth;
} searched[] = {{"/usr/lib", 4}, {"/usr/lib64", 4}, {"/usr/local", 4}, {"/opt", 4}, {"/usr/share", 2}, {"/snap", 1}};

static bool is_program_dir(const struct commands *c, const char *path) {
        for (char **dir = c->dirs; dir && *dir; dir++)
                if (path_is_beneath(path, *dir))
                        return true;
        return false;
}

static bool holds_program_dir(const struct commands *c, const char *path) {
        for (char **dir = c->dirs; dir && *dir; dir++)
                if (path_is_beneath(*dir, path))
                        return true;
        return false;
}

static int add_dir(struct commands *c, const char *path) {
        _cleanup_(freep) char *real = realpath(path, NULL);

        if (!real)
                return errno == ENOMEM ? -ENOMEM : 0;
        return is_program_dir(c, real) || streq(real, "/") ? 0 : strv_push_take(&c->dirs, take_ptr(real));
}

static bool has_program_name(const char *name) {
        size_t n = strlen(name);

        return streq(name, "bin") || streq(name, "sbin") || streq(name, "libexec") ||
               (n > 5 && streq(name + n - 5, "-core"));
}

static int find_dirs(struct commands *c, const char *path, int depth) {
        DIR *dir = opendir(path);
        struct dirent *entry;
        int r = 0;

        while (r >= 0 && dir && (entry = readdir(dir))) {
                char inner[PATH_MAX];

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
                    (size_t) snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >= sizeof(inner))
                        continue;
                if (has_program_name(entry->d_name))
                        r = add_dir(c, inner);
                else if (depth > 1)
                        r = find_dirs(c, inner, depth - 1);
        }
        if (dir)
                closedir(dir);
        return r;
}

/* ---- which there are ---- */

static bool is_listed(char *const *list, const char *path, bool link) {
        const char *name = path_basename(path);

        for (; list && *list; list++) {
                size_t n = strlen(*list);

                if ((*list)[n - 1] == '/' ? !link && strncmp(path, *list, n) == 0
                    : strchr(*list, '/')  ? streq(path, *list)
                                          : fnmatch(*list, name, FNM_PERIOD) == 0)
                        return true;
        }
        return false;
}

static int add_program(struct commands *c, const char *path, const struct stat *st, bool link) {
        struct program *p;

        if (c->n == c->room) {
                size_t room = c->room ? 2 * c->room : 1024;
                struct program *grown = reallocarray(c->programs, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                c->programs = grown;
                c->room = room;
        }
        p = &c->programs[c->n];
        *p = (struct program){.path = strdup(path),
                              .dev = st->st_dev,
                              .ino = st->st_ino,
                              .links = st->st_nlink,
                              .executable = st->st_mode & 0111,
                              .link = link};
        c->n += p->path != NULL;
        return p->path ? 0 : -ENOMEM;
}

static int list_programs(struct commands *c, const char *path, int depth) {
        DIR *dir = depth > DEPTH_MOST ? NULL : opendir(path);
        struct dirent *entry;
        int r = 0;

        while (r >= 0 && dir && (entry = readdir(dir))) {
                char inner[PATH_MAX];
                struct stat st, own;

                if (streq(entry->d_name, ".") || streq(entry->d_name, "..") ||
                    (size_t) snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >= sizeof(inner) ||
                    fstatat(dirfd(dir), entry->d_name, &own, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                st = own;
                if (S_ISLNK(own.st_mode) && fstatat(dirfd(dir), entry->d_name, &st, 0) < 0)
                        continue;
                if (S_ISREG(st.st_mode))
                        r = add_program(c, inner, &st, S_ISLNK(own.st_mode));
                else if (S_ISDIR(own.st_mode))
                        r = list_programs(c, inner, depth + 1);
        }
        if (dir)
                closedir(dir);
        return r;
}

/* ---- which are denied ---- */

/* Programs that do the work of many, by the name that they are called by. The names of their applets are strings in
 * them. */
static const char *const multi_call[] = {"busybox*",   "toybox*",    "coreutils*", "uutils*",
                                         "sbase-box*", "ubase-box*", "bbox*",      "klibc*"};

static bool is_multi_call(const char *path) {
        for (size_t i = 0; i < ARRAY_SIZE(multi_call); i++)
                if (fnmatch(multi_call[i], path_basename(path), 0) == 0)
                        return true;
        return false;
}

static bool has_applet(const char *path, char *const *denied) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat st;
        char *data;
        bool found = false;

        if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
                return fd < 0; /* what cannot be read has any applet */
        data = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
                return true;
        for (; !found && denied && *denied; denied++) {
                char text[NAME_MAX + 2] = "";
                size_t n = strlen(path_basename(*denied));

                if (n == 0 || n >= NAME_MAX)
                        continue;
                memcpy(text + 1, path_basename(*denied), n + 1);
                /* A pattern may mean any of them. */
                found = strpbrk(text + 1, "*?[") || memmem(data, (size_t) st.st_size, text, n + 2);
        }
        munmap(data, (size_t) st.st_size);
        return found;
}

static bool same_file(const struct program *a, const struct program *b) {
        return a->ino == b->ino && a->dev == b->dev;
}

/* Names of a denied program outside of the directories that hold programs: those where they are become such. */
static int find_links(struct commands *c, const char *path, const struct program *p, int depth) {
        DIR *dir = depth > DEPTH_MOST ? NULL : opendir(path[0] ? path : "/");
        struct dirent *entry;
        bool found = false;
        int r = 0;

        while (r >= 0 && dir && (entry = readdir(dir))) {
                char inner[PATH_MAX];
                struct stat st;

                if (streq(entry->d_name, ".") || streq(entry->d_name, "..") ||
                    (size_t) snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >= sizeof(inner) ||
                    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != p->dev)
                        continue;
                if (S_ISDIR(st.st_mode))
                        r = find_links(c, inner, p, depth + 1);
                else
                        found = found || (S_ISREG(st.st_mode) && st.st_ino == p->ino);
        }
        if (dir)
                closedir(dir);
        return r >= 0 && found ? add_dir(c, path) : r;
}

static bool all_names_known(const struct commands *c, const struct program *p) {
        nlink_t n = 0;

        for (size_t i = 0; i < c->n; i++)
                n += !c->programs[i].link && same_file(&c->programs[i], p);
        return n >= p->links;
}

static void mark(struct commands *c) {
        const struct plan *plan = c->in->plan;

        for (size_t i = 0; i < c->n; i++) {
                struct program *p = &c->programs[i];

                p->denied = is_listed(plan->commands_deny, p->path, p->link) ||
                            (!p->link && is_multi_call(p->path) && has_applet(p->path, plan->commands_deny));
                p->allowed = strv_length(plan->commands_allow) == 0 ||
                             is_listed(plan->commands_allow, p->path, p->link) ||
                             is_listed(plan->commands_named, p->path, p->link);
        }
}

/* A rule for one name of a file applies to all its names. The user should be informed which other names a rule covers.
 */
static void spread(struct commands *c) {
        for (size_t i = 0; i < c->n; i++) {
                struct program *p = &c->programs[i];
                const char *other = NULL;

                if (!p->denied || is_listed(c->in->plan->commands_deny, p->path, p->link) != p->denied)
                        continue;
                for (size_t k = 0; k < c->n; k++)
                        if (k != i && same_file(&c->programs[k], p) && !c->programs[k].denied) {
                                c->programs[k].denied = true;
                                if (!streq(path_basename(c->programs[k].path), path_basename(p->path)))
                                        other = c->programs[k].path;
                        }
                if (other)
                        init_note(c->in, NOTICE_COMMAND_SHARED, p->path,
                                  "%s is denied, and with it %s and every other name of that program", p->path, other);
        }
}

static int read_programs(struct commands *c) {
        for (size_t i = 0; i < c->n; i++)
                free(c->programs[i].path);
        c->n = 0;
        for (char **dir = c->dirs; dir && *dir; dir++) {
                int r = list_programs(c, *dir, 0);

                if (r < 0)
                        return r;
        }
        mark(c);
        return 0;
}

static int find_programs(struct commands *c) {
        const struct plan *plan = c->in->plan;
        size_t n_dirs;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(known_dirs); i++)
                r = add_dir(c, known_dirs[i]);
        for (char **dir = plan->search; r >= 0 && dir && *dir; dir++)
                r = add_dir(c, *dir);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(searched); i++)
                r = find_dirs(c, searched[i].path, searched[i].depth);
        if (r >= 0)
                r = read_programs(c);
        n_dirs = strv_length(c->dirs);
        for (size_t i = 0; r >= 0 && i < c->n; i++)
                if (c->programs[i].denied && !c->programs[i].link && !all_names_known(c, &c->programs[i])) {
                        if (plan->traits & TRAIT_IMAGE)
                                r = find_links(c, "", &c->programs[i], 0);
                        for (size_t k = 0; r >= 0 && k < plan->n_steps; k++)
                                if (plan->steps[k].kind == STEP_BIND &&
                                    !(plan->steps[k].flags & (STEP_WRITABLE | STEP_GRANTED)))
                                        r = find_links(c, plan->steps[k].dest, &c->programs[i], 0);
                }
        if (r < 0)
                return r;
        if (strv_length(c->dirs) > n_dirs)
                r = read_programs(c);
        if (r < 0)
                return r;
        spread(c);
        return r;
}

/* ---- the rules ---- */

static const struct program *find_file(const struct commands *c, const struct stat *st) {
        const struct program *found = NULL;

        for (size_t i = 0; i < c->n; i++)
                if (c->programs[i].ino == st->st_ino && c->programs[i].dev == st->st_dev &&
                    (!found || c->programs[i].denied || c->programs[i].allowed))
                        found = &c->programs[i];
        return found;
}

static bool is_denied(const struct commands *c, const struct stat *st) {
        const struct program *p = find_file(c, st);

        return p && p->denied;
}

/* A file that is not a program is data, whatever directory it is in. */
static int allow_programs(const struct commands *c, struct hutch_error *err) {
        for (size_t i = 0; i < c->n; i++) {
                const struct program *p = &c->programs[i];
                int r = 0;

                if (!p->denied && p->allowed)
                        r = landlock_allow(c->ruleset, p->path, RUN, err);
                else if (!p->denied && !p->executable)
                        r = landlock_allow(c->ruleset, p->path, READ_FILE, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Without a list of what is allowed, what the system's programs start by themselves can be started. */
static uint64_t system_rights(const struct plan *plan) {
        return strv_length(plan->commands_allow) > 0 ? READ_FILE : READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
}

/* A directory of the system, or of a person, which may hold directories with programs. */
static int allow_tree(const struct commands *c, const char *path, uint64_t rights, int depth, struct hutch_error *err) {
        DIR *dir;
        struct dirent *entry;
        struct stat st;
        int r = 0;

        if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode) || depth > DEPTH_MOST)
                return 0;
        if (is_program_dir(c, path))
                return S_ISDIR(st.st_mode) ? landlock_allow(c->ruleset, path, LANDLOCK_ACCESS_FS_READ_DIR, err) : 0;
        if (!S_ISDIR(st.st_mode))
                return is_denied(c, &st) ? 0 : landlock_allow(c->ruleset, path, rights, err);
        if (!holds_program_dir(c, path))
                return landlock_allow(c->ruleset, path, rights, err);
        r = landlock_allow(c->ruleset, path, LANDLOCK_ACCESS_FS_READ_DIR, err);
        dir = opendir(path);
        while (r >= 0 && dir && (entry = readdir(dir))) {
                char inner[PATH_MAX];

                if (!streq(entry->d_name, ".") && !streq(entry->d_name, "..") &&
                    (size_t) snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) < sizeof(inner))
                        r = allow_tree(c, inner, rights, depth + 1, err);
        }
        if (dir)
                closedir(dir);
        return r;
}

/* Whether the plan puts something at the path, or beneath it. */
static bool holds_step(const struct plan *plan, const char *path, bool beneath) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (beneath ? path_is_beneath(plan->steps[i].dest, path) : streq(plan->steps[i].dest, path))
                        return true;
        return false;
}

/* What the image of a container has, beside what the plan puts into it. A rule applies to everything beneath, so only
 * directories without any of the plan's get one. */
static int allow_image(const struct commands *c, const char *path, uint64_t rights, int depth,
                       struct hutch_error *err) {
        static const char *const other[] = {"/dev", "/proc", "/sys", "/.hutch"};
        DIR *dir = depth > DEPTH_MOST ? NULL : opendir(path);
        struct dirent *entry;
        int r = 0;

        while (r >= 0 && dir && (entry = readdir(dir))) {
                char inner[PATH_MAX];
                bool skip = streq(entry->d_name, ".") || streq(entry->d_name, "..") ||
                            (size_t) snprintf(inner, sizeof(inner), "%s/%s", depth > 0 ? path : "", entry->d_name) >=
                                    sizeof(inner);

                for (size_t i = 0; !skip && i < ARRAY_SIZE(other); i++)
                        skip = streq(inner, other[i]);
                if (skip || holds_step(c->in->plan, inner, false))
                        continue;
                r = holds_step(c->in->plan, inner, true) ? allow_image(c, inner, rights, depth + 1, err)
                                                         : allow_tree(c, inner, rights, 0, err);
        }
        if (dir)
                closedir(dir);
        return r;
}

static int allow_container(const struct commands *c, struct hutch_error *err) {
        static const char *const kernel[] = {"/proc", "/sys"};
        const struct plan *plan = c->in->plan;
        int r = allow_image(c, "/", system_rights(plan), 0, err);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(kernel); i++)
                if (access(kernel[i], F_OK) == 0)
                        r = landlock_allow(c->ruleset, kernel[i], READ_FILE, err);
        if (r >= 0 && plan->session)
                r = landlock_allow(c->ruleset, plan->channel, READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, err);
        return r;
}

/* The loader of every dynamic program. What it may map is limited by what may be read. */
static int allow_loaders(const struct commands *c, struct hutch_error *err) {
        static const char *const dirs[] = {"/lib64", "/lib",   "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                                           "/lib32", "/libx32"};
        static const char *const names[] = {"ld-linux*.so*", "ld-musl-*.so*", "ld64.so*", "ld-*.so"};

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                DIR *dir = opendir(dirs[i]);
                struct dirent *entry;
                int r = 0;

                while (r >= 0 && dir && (entry = readdir(dir))) {
                        char path[PATH_MAX];
                        bool match = false;

                        for (size_t k = 0; k < ARRAY_SIZE(names); k++)
                                match = match || fnmatch(names[k], entry->d_name, 0) == 0;
                        snprintf(path, sizeof(path), "%s/%s", dirs[i], entry->d_name);
                        if (match)
                                r = landlock_allow(c->ruleset, path, RUN, err);
                }
                if (dir)
                        closedir(dir);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Programs that the policy names by their paths, in places that are not searched. */
static int allow_named(const struct commands *c, char *const *entry, struct hutch_error *err) {
        for (; entry && *entry; entry++) {
                struct stat st;
                int r;

                if ((*entry)[0] != '/' || stat(*entry, &st) < 0 || is_denied(c, &st))
                        continue;
                r = landlock_allow(c->ruleset, *entry, S_ISDIR(st.st_mode) ? RUN | LANDLOCK_ACCESS_FS_READ_DIR : RUN,
                                   err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int allow_steps(const struct commands *c, uint64_t handled, struct hutch_error *err) {
        const struct plan *plan = c->in->plan;
        bool own_root = plan->traits & TRAIT_OWN_ROOT;
        uint64_t system = system_rights(plan);

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];
                int r;

                if (s->kind == STEP_SYMLINK || s->kind == STEP_PIN || s->kind == STEP_SEAL || s->kind == STEP_KEEP ||
                    (own_root && startswith(s->dest, "/dev/")))
                        continue;
                if (!own_root && s->flags & STEP_SYSTEM && geteuid() == 0 && streq(s->dest, "/etc"))
                        continue; /* confine.c: not what only root may read */
                if (s->flags & STEP_WRITABLE)
                        r = landlock_allow(c->ruleset, s->dest,
                                           handled & ~(uint64_t) LANDLOCK_ACCESS_FS_EXECUTE &
                                                   ~(own_root ? 0 : LANDLOCK_DEVICES),
                                           err);
                else
                        r = allow_tree(c, s->dest,
                                       s->kind == STEP_BIND && !(s->flags & STEP_GRANTED) ? system : READ_FILE, 0, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int init_allow_commands(const struct init_input *in, int ruleset, uint64_t handled, struct hutch_error *err) {
        _cleanup_(commands_done) struct commands c = {.in = in, .ruleset = ruleset};
        int r;

        if (find_programs(&c) < 0)
                return error_oom(err);
        r = 0;
        if (in->plan->traits & TRAIT_OWN_ROOT) {
                r = landlock_allow(ruleset, "/", LANDLOCK_ACCESS_FS_READ_DIR, err);
                if (r >= 0)
                        r = landlock_allow(ruleset, "/dev", handled & ~(uint64_t) LANDLOCK_ACCESS_FS_EXECUTE, err);
        }
        if (r < 0)
                return r;
        r = allow_steps(&c, handled, err);
        if (r >= 0 && in->plan->traits & TRAIT_IMAGE)
                r = allow_container(&c, err);
        if (r < 0)
                return r;
        r = allow_programs(&c, err);
        if (r < 0)
                return r;
        r = allow_loaders(&c, err);
        if (r < 0)
                return r;
        r = allow_named(&c, in->plan->commands_allow, err);
        return r < 0 ? r : allow_named(&c, in->plan->commands_named, err);
}
