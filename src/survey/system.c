/* What the survey finds out about the system's directories for a box in which they are copy-on-write (--cow /). */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"

/* A change of these is a sign that directories were added or removed: databases of packages by their time, directories
 * by the number of their subdirectories. Checking each of twenty thousand would cost more than a box; a skeleton that
 * is out of date lacks directories (which then cannot be written to), and shows nothing that it should not. */
static const char *const databases[] = {"/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite",
                                        "/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/pacman/local",
                                        "/lib/apk/db/installed"};
static const char *const directories[] = {"/usr",
                                          "/usr/lib",
                                          "/usr/share",
                                          "/usr/include",
                                          "/usr/local",
                                          "/usr/local/lib",
                                          "/usr/local/share",
                                          "/usr/lib/node_modules",
                                          "/etc",
                                          "/opt"};

#define SKELETON_FORMAT 2

static void mix(uint64_t *hash, const void *data, size_t len) { /* FNV-1a */
        for (const unsigned char *p = data; len > 0; p++, len--)
                *hash = (*hash ^ *p) * 0x100000001b3ULL;
}

static uint64_t digest(void) {
        uint64_t hash = 0xcbf29ce484222325ULL, format = SKELETON_FORMAT;
        struct stat st;

        mix(&hash, &format, sizeof(format));
        for (size_t i = 0; i < ARRAY_SIZE(databases); i++)
                if (stat(databases[i], &st) == 0) {
                        mix(&hash, &st.st_ino, sizeof(st.st_ino));
                        mix(&hash, &st.st_mtim, sizeof(st.st_mtim));
                }
        for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
                if (stat(directories[i], &st) == 0) {
                        mix(&hash, &st.st_ino, sizeof(st.st_ino));
                        mix(&hash, &st.st_mode, sizeof(st.st_mode));
                        mix(&hash, &st.st_nlink, sizeof(st.st_nlink));
                }
        return hash;
}

static bool is_folder(const char *path) {
        struct stat st;

        return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The package database is a layer as a whole or not at all. */
static int find_mounts(struct survey *s) {
        _cleanup_(freep) char *info = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < s->n_system; i++)
                if (!s->system[i].link) {
                        r = survey_look_at(s->system[i].path, &s->system[i].tree);
                        if (r >= 0)
                                r = survey_mounts(&s->system[i].tree);
                }
        if (r < 0)
                return r;
        r = read_whole_file(AT_FDCWD, "/proc/self/mountinfo", 64 << 20, &info, NULL);
        if (r < 0)
                return r;
        for (char *next = info, *path; (path = path_next_mount(&next, NULL));)
                if (path_is_beneath(path, "/var/lib/dpkg") || path_is_beneath(path, "/var/lib/apt"))
                        s->database_mounted = true;
        return 0;
}

#define SYSTEM_IDS 1000
#define NOBODY 65534

/* The lines whose third field is an id of the system's. */
static int read_system_ids(const char *path, char **ret) {
        _cleanup_(freep) char *text = NULL, *kept = NULL;
        size_t len = 0;
        int r;

        r = read_whole_file(AT_FDCWD, path, 16 << 20, &text, &len);
        if (r < 0)
                return r == -ENOENT || r == -EACCES ? 0 : r;
        kept = calloc(1, len + 2);
        if (!kept)
                return -ENOMEM;
        len = 0;
        for (char *next = text, *line; (line = strsep(&next, "\n"));) {
                const char *id = strchr(line, ':');
                unsigned long long number;

                id = id ? strchr(id + 1, ':') : NULL;
                number = id ? strtoull(id + 1, NULL, 10) : SYSTEM_IDS;
                if (line[0] && line[0] != '+' && line[0] != '-' && (number < SYSTEM_IDS || number == NOBODY))
                        len += (size_t) sprintf(kept + len, "%s\n", line);
        }
        *ret = take_ptr(kept);
        return 0;
}

static int find_npmrc(const char **ret) {
        static const char *const places[] = {"/usr/etc/npmrc", "/usr/local/etc/npmrc", "/etc/npmrc"};

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                if (access(places[i], R_OK) == 0) {
                        *ret = places[i];
                        return 0;
                }
                if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
                        return -errno;
        }
        return 0;
}

int survey_look_at_machine(struct survey *s, const struct hutch_policy *policy) {
        unsigned long long share = (policy_number(policy, KEY_CPU) + 99) / 100;
        _cleanup_(freep) char *text = NULL;
        char *end;
        int r;

        r = find_npmrc(&s->npmrc);
        if (r < 0)
                return r;
        s->memory = (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE);
        if (policy_number(policy, KEY_CPU) == 0)
                return 0;
        r = read_whole_file(AT_FDCWD, "/proc/cpuinfo", 64 << 20, &text, NULL);
        if (r < 0)
                return r;
        end = text;
        while (end && share-- > 0) {
                end = strstr(end, "\n\n");
                end = end ? end + 2 : NULL;
        }
        if (end)
                *end = 0;
        s->cpuinfo = take_ptr(text);
        return 0;
}

int survey_look_at_layers(struct survey *s) {
        int r;

        if (s->cache && asprintf(&s->skeleton, "%s/skeleton/%016llx", s->cache, (unsigned long long) digest()) < 0)
                return -ENOMEM;
        s->has_dpkg = is_folder("/var/lib/dpkg");
        s->has_apt = is_folder("/var/lib/apt");
        r = find_mounts(s);
        if (r < 0)
                return r;
        r = read_system_ids("/etc/passwd", &s->system_passwd);
        return r < 0 ? r : read_system_ids("/etc/group", &s->system_group);
}
