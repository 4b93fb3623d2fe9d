/* Facts that the kernel is asked for: who the caller is, in which user namespace. */
#include "host/facts.h"
#include "host/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include "unit.h"

static void test_read(void **state _unused_) {
        struct host_facts f;
        struct hutch_error err = {0};

        assert_int_equal(host_facts_read(&f, &err), 0);
        assert_int_equal(f.uid, geteuid());
        assert_int_equal(f.gid, getegid());
        assert_true(f.landlock_abi >= 0 && f.landlock_abi < 100);
        assert_int_not_equal(f.namespaces, YES); /* only a trial can tell; that there are none is seen without */
        if (f.uid != 0)
                assert_false(f.privileged);
        if (f.privileged)
                assert_int_not_equal(f.box_uid, 0);
}

/* The trials leave no child, whatever this host can do, and tell why what failed has failed. */
static void test_probe(void **state _unused_) {
        struct probes probes;
        struct hutch_error err = {0};

        assert_int_equal(host_probe(&probes, &err), 0);
        for (int i = 0; i < N_PROBES; i++)
                if (probes.of[i].tried && !probes.of[i].works)
                        unit_check(probes.of[i].errnum || probes.of[i].detail[0],
                                   "probe %d failed and does not say why", i);
        assert_true(probes.kernel[0]);
        assert_int_equal(probes.of[PROBE_IDMAP].tried, geteuid() == 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

/* What a caller finds out that is uid 0 in a user namespace with this map; the child's answer. */
struct answer {
        int got_there, r;
        struct host_facts facts;
};

static bool write_text(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);

        if (fd >= 0)
                close(fd);
        return done;
}

static void become_root_of_namespace(int report, int go) {
        struct answer answer = {0};
        char c;

        answer.got_there = unshare(CLONE_NEWUSER) == 0;
        if (write(report, "u", 1) != 1 || read(go, &c, 1) != 1)
                _exit(1);
        answer.got_there = answer.got_there && c == 'y' && setuid(0) == 0 && geteuid() == 0;
        if (answer.got_there)
                answer.r = host_facts_read(&answer.facts, NULL);
        if (write(report, &answer, sizeof(answer)) != sizeof(answer))
                _exit(1);
        _exit(0);
}

static struct answer ask_in_namespace(const char *map) {
        struct answer answer = {0};
        int report[2], go[2], status;
        char path[64], c;
        pid_t pid;

        assert_int_equal(pipe2(report, O_CLOEXEC), 0);
        assert_int_equal(pipe2(go, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                become_root_of_namespace(report[1], go[0]);
        close(report[1]);
        assert_int_equal(read(report[0], &c, 1), 1);
        snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
        assert_int_equal(write(go[1], write_text(path, map) ? "y" : "n", 1), 1);
        if (read(report[0], &answer, sizeof(answer)) != sizeof(answer))
                answer.got_there = 0;
        waitpid(pid, &status, 0);
        close(report[0]);
        close(go[0]);
        close(go[1]);
        return answer;
}

static const struct map_row {
        const char *name, *map; /* map NULL: the caller's own id as 0 */
        bool privileged, needs_root;
        uid_t box_uid;
} map_rows[] = {
        /* As `unshare -r` makes it, and every rootless container with a single id: an ordinary user under another name.
         */
        {"uid 0 of a namespace with one ordinary id", "0 1000 1", false, true, 0},
        {"uid 0 of a namespace with the caller's id", NULL, false, false, 0},
        {"uid 0 of a namespace with the host's root alone", "0 0 1", true, true, 0},
        {"uid 0 of a rootless container", "0 1000 1\n1 100000 65536", true, true, 65534},
        {"uid 0 of a container with few ids", "0 1000 1\n1 100000 1000", true, true, 0},
        {"uid 0 of a container with all ids", "0 0 4294967295", true, true, 0x7fff0000},
};

static void test_map(void **state) {
        const struct map_row *row = *state;
        struct answer answer;
        char own[64];

        snprintf(own, sizeof(own), "0 %u 1", geteuid());
        answer = ask_in_namespace(row->map ? row->map : own);
        if (!answer.got_there) {
                print_message("# no user namespace to be had here\n");
                skip();
        }
        assert_int_equal(answer.r, 0);
        assert_int_equal(answer.facts.uid, 0);
        assert_int_equal(answer.facts.privileged, row->privileged);
        if (row->privileged)
                assert_int_equal(answer.facts.box_uid, row->box_uid);
}

int main(void) {
        unit_add("read", test_read, NULL);
        unit_add("probe", test_probe, NULL);
        /* Only root may write most of these maps; and its own id is the host's root, which another row has. */
        for (size_t i = 0; i < ARRAY_SIZE(map_rows); i++)
                if (geteuid() == 0 ? map_rows[i].map != NULL : !map_rows[i].needs_root)
                        unit_add(map_rows[i].name, test_map, &map_rows[i]);
        return unit_run("host/facts");
}
