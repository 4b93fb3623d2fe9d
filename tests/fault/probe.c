/* The witness: runs inside the box and tells whether every wall stands.
 *
 * First it says RAN, so that nobody can doubt it was started. Then it tries the walls. What it finds is printed in full
 * (identity, limits, mounts, devices, variables, descriptors), so that the test can compare a box that a fault was
 * injected into with one that had none: a mount that lost its read-only flag is a different line. The last line is
 * WALLS OK, or there is none.
 *
 * usage: probe SECRET PORT NAMESPACES     a file beside the workspace; a port that the host listens on, on its
 * loopback; "pid:[1] mnt:[2] …" of the host */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;
static int breaches;

static void __attribute__((format(printf, 2, 3))) expect(bool stands, const char *format, ...) {
        va_list args;

        if (stands)
                return;
        breaches++;
        fputs("BREACH: ", stdout);
        va_start(args, format);
        vprintf(format, args);
        va_end(args);
        putchar('\n');
}

static size_t slurp(const char *path, char *text, size_t room) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t len = 0;
        ssize_t n;

        while (fd >= 0 && len < room - 1 && (n = read(fd, text + len, room - 1 - len)) > 0)
                len += (size_t) n;
        if (fd >= 0)
                close(fd);
        text[len] = 0;
        expect(len > 0, "cannot read %s: %s", path, strerror(errno));
        return len;
}

/* The caller may have lowered them to see hutch cope; this program wants room. */
static void raise_limits(void) {
        const int which[] = {RLIMIT_NOFILE, RLIMIT_AS};
        struct rlimit limit;

        for (size_t i = 0; i < 2; i++)
                if (getrlimit(which[i], &limit) == 0) {
                        limit.rlim_cur = limit.rlim_max;
                        setrlimit(which[i], &limit);
                }
}

static void check_status(void) {
        static const char *const kept[] = {
                "Uid:",    "Gid:",    "Groups:", "SigBlk:", "SigIgn:",     "CapInh:", "CapPrm:",
                "CapEff:", "CapBnd:", "CapAmb:", "Seccomp", "NoNewPrivs:", "NSpid:"};
        char text[8192], *next = text;

        slurp("/proc/self/status", text, sizeof(text));
        for (char *line; (line = strsep(&next, "\n"));) {
                for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
                        if (strncmp(line, kept[i], strlen(kept[i])) == 0 && strncmp(line, "NSpid", 5) != 0)
                                puts(line);
                if (strncmp(line, "Cap", 3) == 0)
                        expect(strtoull(strchr(line, '\t'), NULL, 16) == 0, "%s", line);
                if (strncmp(line, "NoNewPrivs:", 11) == 0)
                        expect(atoi(line + 12) == 1, "%s", line);
                if (strncmp(line, "Seccomp:", 8) == 0)
                        expect(atoi(line + 9) == 2, "%s", line);
        }
        printf("securebits: %d\n", prctl(PR_GET_SECUREBITS));
        slurp("/proc/self/uid_map", text, sizeof(text));
        printf("uid_map: %s", text);
        slurp("/proc/self/gid_map", text, sizeof(text));
        printf("gid_map: %s", text);
}

static void check_filter(void) {
        errno = 0;
        expect(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 && errno == EPERM,
               "keyctl: %s", strerror(errno));
        errno = 0;
        expect(unshare(CLONE_NEWUSER) < 0 && errno == EPERM, "unshare: %s", strerror(errno));
        errno = 0;
        expect(syscall(SYS_bpf, 0, NULL, 0) < 0 && errno == EPERM, "bpf: %s", strerror(errno));
}

static void check_files(const char *secret) {
        static const char *const read_only[] = {"/", "/usr", "/etc"};
        char text[65536], *next = text;
        struct statvfs fs;

        for (size_t i = 0; i < 3; i++)
                expect(statvfs(read_only[i], &fs) == 0 && fs.f_flag & ST_RDONLY, "%s is writable", read_only[i]);
        expect(mkdir("/probe-was-here", 0755) < 0, "/ can be written to");
        expect(access(secret, F_OK) < 0 && open(secret, O_RDONLY) < 0, "%s is in reach", secret);
        expect(open("/etc/shadow", O_RDONLY) < 0, "/etc/shadow is in reach");
        expect(open("/proc/sys/kernel/core_pattern", O_WRONLY) < 0, "core_pattern can be written to");
        expect(open("/proc/1/mem", O_RDONLY) < 0, "the memory of init is in reach");
        expect(access("/sys/kernel", F_OK) < 0, "/sys is in reach");
        slurp("/proc/self/mountinfo", text, sizeof(text));
        for (char *line; (line = strsep(&next, "\n"));) {
                /* id parent major:minor root point options [optional…] - type source super-options */
                char *dash = strstr(line, " - "), root[512], point[512], options[256], type[64];

                if (!dash || sscanf(line, "%*s %*s %*s %511s %511s %255s", root, point, options) != 3 ||
                    sscanf(dash, " - %63s", type) != 1)
                        continue;
                if (strncmp(root, "/.scratch", 9) == 0)
                        root[9] = 0; /* numbered, and told whether its name is still there */
                printf("mount: %s of %s %s %s\n", point, type, root, options);
                expect(!strstr(line, " shared:") && !strstr(line, " master:"), "%s is not private", point);
        }
}

/* Where the mounts already refuse what Landlock would refuse, its domain shows by number only: a process can be in 16,
 * one in another. */
static void count_landlock(void) {
        struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK};
        int ruleset = (int) syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0), more = 0;

        while (ruleset >= 0 && more < 16 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0)
                more++;
        printf("Landlock domains: %d\n", ruleset < 0 ? 0 : 16 - more);
        if (ruleset >= 0)
                close(ruleset);
}

static void list(const char *path) {
        struct dirent **entries;
        int n = scandir(path, &entries, NULL, alphasort);

        expect(n > 0, "cannot list %s: %s", path, strerror(errno));
        for (int i = 0; i < n; i++) {
                char full[512];
                struct stat st;

                snprintf(full, sizeof(full), "%s/%s", path, entries[i]->d_name);
                if (entries[i]->d_name[0] != '.' && lstat(full, &st) == 0)
                        printf("%s: %s %o %u\n", path, entries[i]->d_name, st.st_mode, st.st_uid);
        }
}

static void check_network(int port) {
        struct sockaddr_in host = {
                .sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct ifreq lo = {.ifr_name = "lo"};
        char text[4096], *next = text;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        expect(fd >= 0 && connect(fd, (struct sockaddr *) &host, sizeof(host)) < 0, "the host's loopback answers");
        expect(ioctl(fd, SIOCGIFFLAGS, &lo) == 0 && lo.ifr_flags & IFF_UP, "lo is down");
        close(fd);
        slurp("/proc/net/dev", text, sizeof(text));
        for (char *line; (line = strsep(&next, "\n"));) {
                char *colon = strchr(line, ':');

                if (!colon)
                        continue;
                *colon = 0;
                line += strspn(line, " ");
                expect(strcmp(line, "lo") == 0, "interface %s", line);
        }
}

static void check_namespaces(const char *of_host) {
        static const char *const kinds[] = {"user", "mnt", "pid", "ipc", "uts", "net", "cgroup"};
        char path[64], target[128], text[256];
        int processes = 0;
        struct dirent *entry;
        DIR *dir;

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                ssize_t n;

                snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
                n = readlink(path, target, sizeof(target) - 1);
                target[n > 0 ? n : 0] = 0;
                expect(n > 0 && !strstr(of_host, target), "the host's namespace: %s", target);
        }
        expect(getpid() < 10, "pid %d", getpid());
        slurp("/proc/1/comm", text, sizeof(text));
        expect(strncmp(text, "hutch", 5) == 0, "pid 1 is %s", text);
        dir = opendir("/proc");
        while (dir && (entry = readdir(dir)))
                processes += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
        if (dir)
                closedir(dir);
        expect(processes == 2, "%d processes in /proc", processes);
}

static void check_fds(void) {
        for (int fd = 3; fd < 4096; fd++)
                expect(fcntl(fd, F_GETFD) < 0, "fd %d is open", fd);
}

static int compare(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void tell_surroundings(void) {
        char text[1024];
        struct rlimit limit;
        size_t n = 0;

        for (int i = 0; i < RLIM_NLIMITS; i++)
                if (i != RLIMIT_NOFILE && i != RLIMIT_AS && getrlimit((__rlimit_resource_t) i, &limit) == 0)
                        printf("rlimit %d: %llu %llu\n", i, (unsigned long long) limit.rlim_cur,
                               (unsigned long long) limit.rlim_max);
        printf("cwd: %s\n", getcwd(text, sizeof(text)) ? text : "-");
        printf("host name: %s\n", gethostname(text, sizeof(text)) == 0 ? text : "-");
        while (environ[n])
                n++;
        qsort(environ, n, sizeof(char *), compare);
        for (size_t i = 0; i < n; i++)
                printf("variable: %s\n", environ[i]);
        list("/");
        list("/dev");
}

int main(int argc, char **argv) {
        setvbuf(stdout, NULL, _IOFBF, 1 << 17);
        if (argc != 4)
                return 2;
        puts("RAN");
        fflush(stdout);
        check_fds();
        raise_limits();
        check_status();
        check_filter();
        check_files(argv[1]);
        check_network(atoi(argv[2]));
        check_namespaces(argv[3]);
        tell_surroundings();
        count_landlock();
        puts(breaches ? "WALLS BROKEN" : "WALLS OK");
        return fflush(stdout) != 0 || breaches ? 1 : 0;
}
