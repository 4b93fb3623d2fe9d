/* What attacks found in sessions of 0.1.0, each with its number: it fails there and passes now. */
#include "scene.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PYTHON "/usr/bin/python3 -c '"

/* A box that stops every process as soon as it exists, while the session's shell is started again. */
static void stopped_before_exec(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        double began;
        hutch_result *r = NULL;

        hutch_result_free(run_for(box,
                                  PYTHON "import os, signal, time\n"
                                         "if os.fork() == 0:\n"
                                         "    os.setsid()\n"
                                         "    end = time.time() + 4\n"
                                         "    while time.time() < end:\n"
                                         "        try: os.kill(-1, signal.SIGSTOP)\n"
                                         "        except OSError: pass\n"
                                         "    os.kill(-1, signal.SIGCONT)\n"
                                         "    os._exit(0)'; kill -9 $$",
                                  3000));
        began = now_ms();
        r = run_for(box, "echo on", 8000);
        ok(now_ms() - began < 15000, "W5a: a box that stops each new process keeps no deadline from its end (%.0f ms)",
           now_ms() - began);
        hutch_result_free(r);
        hutch_box_close(box);
}

static void threads(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        char text[512];

        snprintf(text, sizeof(text),
                 PYTHON "import subprocess, threading, time\n"
                        "def start(): subprocess.Popen([\"sleep\", \"%s\"], start_new_session=True); time.sleep(100)\n"
                        "threading.Thread(target=start).start(); time.sleep(100)'",
                 mark_of(1));
        hutch_result_free(run_for(box, text, 1500));
        ok(await_processes(mark_of(1), 0), "W5e: what a thread of the job started ends with the job");
        ok(in_step(box), "W5e: in step");
        hutch_box_close(box);
}

static void on_time(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        double worst = 0;

        for (int i = 0; i < 8; i++) {
                hutch_result *r = run_for(box, "sleep 10", 200);

                worst = r->duration_ms > worst ? r->duration_ms : worst;
                hutch_result_free(r);
        }
        ok(worst < 900, "W5g: a timeout of 200 ms ends 'sleep 10' on time (at most %.0f ms)", worst);
        hutch_box_close(box);
}

/* A pipe that is never read, beside another caller. */
static void no_reader(hutch_context *context) {
        hutch_request request = {.struct_size = sizeof(request), .command = "yes", .timeout_ms = 500};
        hutch_box *box = open_session(context, NULL);
        double began = now_ms();
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                abort();
        request.streams[1] = HUTCH_STREAM_FD;
        request.fds[1] = ends[1];
        hutch_result_free(run_request(box, &request));
        ok(now_ms() - began < 4000,
           "W5j: a reader that does not read keeps the session no longer than the timeout (%.0f ms)", now_ms() - began);
        ok(in_step(box), "W5j: in step");
        close(ends[0]);
        close(ends[1]);
        hutch_box_close(box);
}

static void usage(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        hutch_result *r;

        r = run_for(box, PYTHON "import time; x = bytearray(100 << 20); time.sleep(0.3)'", 20000);
        ok(r->peak_memory_bytes >= 100u << 20, "P f: peak_memory_bytes of a run in a session: %llu",
           (unsigned long long) r->peak_memory_bytes);
        hutch_result_free(r);
        r = run_for(box, "for i in 1 2 3 4 5 6 7 8 9; do :; done", 20000);
        ok(r->cpu_ms > 0 && r->cpu_ms < 10, "P f: cpu_ms below the kernel's tick: %.3f", r->cpu_ms);
        hutch_result_free(r);
        hutch_box_close(box);
}

/* As many descriptors on their way through sockets as the box may open, and then a session from outside. */
static void in_flight(hutch_context *context) {
        hutch_box *box = open_session(context, NULL), *other;
        hutch_result *r;

        hutch_result_free(run_for(
                box,
                PYTHON
                "import array, os, resource, socket, time\n"
                "soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
                "n = min(hard, 20000)\n"
                "resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))\n"
                "if os.fork() == 0:\n"
                "    os.setsid()\n"
                "    fd = array.array(\"i\", [1] * 200)\n"
                "    kept = []\n"
                "    try:\n"
                "        while True:\n"
                "            a, b = socket.socketpair()\n"
                "            kept.append((a, b))\n"
                "            for _ in range(20): a.sendmsg([b\"x\"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd)])\n"
                "    except OSError: pass\n"
                "    time.sleep(60)\n"
                "time.sleep(1.5)'",
                20000));
        other = NULL;
        {
                hutch_box_options options = {.struct_size = sizeof(options), .context = context, .session = true};
                hutch_policy *policy = NULL;

                MUST(hutch_policy_new(&policy));
                if (!ok(hutch_box_open(policy, &options, &other, &tap_err) >= 0,
                        "W4i: a session starts while a box has its descriptors in flight"))
                        printf("#   %s\n", tap_err.message);
                hutch_policy_free(policy);
        }
        r = run_for(box, "echo on", 5000);
        is(r->output[1], "on\n", "W4i: and the box's own session is reachable");
        hutch_result_free(r);
        if (other)
                hutch_box_close(other);
        hutch_box_close(box);
}

static bool put(const char *dir, const char *name, const char *text) {
        char path[256];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        f = fopen(path, "w");
        if (f)
                fputs(text, f);
        return f && fclose(f) == 0;
}

static void *close_it(void *box) {
        hutch_box_close(box);
        return NULL;
}

/* A frozen process cannot be killed before it is thawed: an end that takes as long as this test wants. */
static void slow_end(hutch_context *context) {
        char group[128], find[128], pid[32] = "";
        hutch_box *slow, *other;
        pthread_t closing;
        hutch_result *r;
        FILE *f;

        if (geteuid() != 0)
                return; /* who cannot freeze a process cannot make an end slow */
        snprintf(group, sizeof(group), "/sys/fs/cgroup/freezer/hutch-test-%d", getpid());
        if (mkdir(group, 0755) < 0) {
                ok(true, "W5k # SKIP needs the freezer of control groups of version 1");
                return;
        }
        slow = open_session(context, NULL);
        other = open_session(context, NULL);
        snprintf(find, sizeof(find), "sleep %s & disown", mark_of(5));
        hutch_result_free(run_for(slow, find, 5000));
        await_processes(mark_of(5), 1);
        snprintf(find, sizeof(find), "pgrep -x -f 'sleep %s'", mark_of(5));
        f = popen(find, "r");
        ok(f && fgets(pid, sizeof(pid), f) && put(group, "cgroup.procs", pid) && put(group, "freezer.state", "FROZEN"),
           "W5k: a process of a box is frozen");
        if (f)
                pclose(f);
        pthread_create(&closing, NULL, close_it, slow);
        usleep(100000); /* the end has begun; should it not, the test shows less */
        r = run_for(other, "echo on", 5000);
        is(r->output[1], "on\n", "W5k: the end of a box that takes long keeps no other box waiting");
        hutch_result_free(r);
        put(group, "freezer.state", "THAWED");
        pthread_join(closing, NULL);
        ok(await_processes(mark_of(5), 0), "W5k: and it comes to its end");
        hutch_box_close(other);
        rmdir(group);
}

/* What the kernel lists for a process, in a form of its own: "Max data size 1024 unlimited bytes". */
static void data_limit(const char *proc, char soft[32]) {
        char path[64], line[256];
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%s/limits", proc);
        f = fopen(path, "r");
        soft[0] = 0;
        while (f && fgets(line, sizeof(line), f) && sscanf(line, "Max data size %31s", soft) != 1)
                ;
        if (f)
                fclose(f);
}

static void bounded_memory(hutch_context *context) {
        char own[32], wardens[32], pid[16], text[64];
        hutch_box *box = open_session(context, NULL);
        hutch_result *r;

        snprintf(text, sizeof(text), "sleep %s & disown", mark_of(6));
        hutch_result_free(run_for(box, text, 5000));
        await_processes(mark_of(6), 1);
        snprintf(pid, sizeof(pid), "%d", warden_of(mark_of(6)));
        data_limit(pid, wardens);
        data_limit("self", own);
#ifndef __SANITIZE_ADDRESS__ /* src/host/memory.c */
        is(wardens, "2147483648", "the warden's memory has a bound");
#endif
        r = run_for(box, "while read -r a b c d e; do [[ $a$b == Maxdata ]] && echo $d; done </proc/self/limits", 5000);
        snprintf(text, sizeof(text), "%s\n", own);
        is(r->output[1], text, "which its boxes do not have");
        hutch_result_free(r);
        hutch_box_close(box);
}

int main(void) {
        hutch_context *context = new_context();

        on_time(context);
        threads(context);
        no_reader(context);
        usage(context);
        in_flight(context);
        slow_end(context);
        bounded_memory(context);
        stopped_before_exec(context);
        hutch_context_free(context);
        return done_testing();
}
