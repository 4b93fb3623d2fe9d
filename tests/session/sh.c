/* Sessions of a plain sh: dash, and busybox's where it is there. Less persists than with bash; what does is in
 * hutch(3). */
#include "scene.h"

#define AGAIN "the shell was ended and started again"

static const struct scene scenes[] = {
        {"directory, variables, exports",
         {{"cd /usr; V='a b'; export E='e'\\''e'", "", "", 0},
          {"pwd; echo $V; env | grep ^E=", "/usr\na b\nE=e'e\n", "", 0},
          {"cd - >/dev/null; pwd", "/workspace\n", "", 0}}},
        {"functions and aliases",
         {{"f() { echo f $1; }; alias hi='echo hi'", "", "", 0}, {"f x; hi", "f x\nhi\n", "", 0}}},
        {"options, umask, positional parameters, traps",
         {{"set -f; umask 027; set -- a 'b c'; trap 'echo usr1' USR1", "", "", 0},
          {"echo *; umask; echo $# $2; kill -USR1 $$", "*\n0027\n2 b c\nusr1\n", "", 0}}},
        {"background jobs",
         {{"sleep 1000 & echo on", "on\n", NULL, 0}, {"kill $!; wait $! 2>/dev/null; echo $?", "143\n", NULL, 0}}},
        {"a subshell leaks nothing",
         {{"(cd /usr; X=1; umask 077)", "", "", 0}, {"pwd; echo ${X-none}; umask", "/workspace\nnone\n0022\n", "", 0}}},
        {"exit ends the shell, which comes back with the state of the run before",
         {{"cd /usr; V=\"it's a\nlong one\"; export E=e; alias hi='echo hi'; umask 027; set -- p 'q r' ''; set -f", "",
           "", 0},
          {"exit 7", "", "", 7, AGAIN},
          {"pwd; echo \"$V\"; env | grep ^E; hi; umask; echo $# $2; echo *",
           "/usr\nit's a\nlong one\nE=e\nhi\n0027\n3 q r\n*\n", "", 0}}},
        {"exit in a function, a loop, without a number",
         {{"f() { exit 3; }; f; echo no", "", "", 3, AGAIN},
          {"while :; do exit 4; done", "", "", 4, AGAIN},
          {"false; exit", "", "", 1, AGAIN}}},
        {"an EXIT trap of its own",
         {{"X=1", "", "", 0},
          {"trap 'echo bye >f' EXIT; exit 3", "", "", 3, "*"},
          {"echo $X; cat f", "1\nbye\n", "", 0, "*"}}},
        {"set -u and ${x:?}",
         {{"set -u; D=d", "", "", 0},
          {"echo $undefined; echo no", "", NULL, 2},
          {"echo $D", "d\n", "", 0},
          {": ${nothing:?is missing}; echo no", "", NULL, 2}}},
        {"syntax errors",
         {{"G=g", "", "", 0},
          {"if then", "", NULL, 2},
          {"echo )", "", NULL, 2},
          {"echo 'open", "", NULL, 2},
          {"echo $(open", "", NULL, 2},
          {"for i in 1; do", "", NULL, 2},
          {"echo $G", "g\n", "", 0}}},
        {"errors of special builtins",
         {{"G=g", "", "", 0},
          {"shift 99", "", NULL, ANY},
          {". /nonexistent", "", NULL, ANY},
          {"export 1x=2", "", NULL, ANY},
          {"set -o nonsense", "", NULL, ANY},
          {"echo $G", "g\n", "", 0}}},
        {"exec and kill -9",
         {{"H=h", "", "", 0},
          {"exec echo replaced", "replaced\n", "", 0, AGAIN},
          {"echo $H", "h\n", "", 0},
          {"H=lost; kill -9 $$", "", "", 137, AGAIN},
          {"echo $H", "h\n", "", 0}}},
        {"the shell interrupts itself",
         {{"M=m; kill -INT $$; echo no", NULL, NULL, ANY, "*"}, {"echo on", "on\n", "", 0, "*"}}},
        {"here-documents and several lines",
         {{"cat <<X\na $((1+1))\nX\nif true\nthen echo yes\nfi", "a 2\nyes\n", "", 0},
          {"cat <<X\nopen", NULL, NULL, ANY}}},
        {"programs that the shell is itself",
         {{"seq 9 | head -n 2", "1\n2\n", "", 0},
          {"head -n 1 </dev/null; tail -n 1 </dev/null; cat; wc -l", "0\n", "", 0},
          {"f() { head -n 1; }; printf 'a\\nb\\n' | f", "a\n", "", 0},
          {"seq 3 | (head -n 1; cat >/dev/null); echo b | sed s/b/c/ | grep c", "1\nc\n", "", 0},
          {"break; continue; return 3", "", NULL, 3},
          {"sort </dev/null; uniq </dev/null; echo end", "end\n", "", 0}}},
        {"$? of the run before", {{"(exit 9)", "", "", 9}, {"echo $?", "9\n", "", 0}}},
        {"functions and aliases named like ours",
         {{"printf() { echo mine; }; alias unset=true", "", "", 0}, {"printf x", "mine\n", "", 0}}},
        {"exec with redirections only",
         {{"exec >f 2>&1; echo to the file", "", "", 0}, {"cat f", "to the file\n", "", 0}}},
};

/* Functions are gone when the shell is, as the manual says. */
static void over_a_restart(hutch_context *context, const char *shell) {
        hutch_box *box = open_session(context, shell);
        hutch_result *r;

        hutch_result_free(run_text(box, "f() { echo f; }; V=v"));
        says(box, "f", "f\n", "a function lasts as long as the shell");
        hutch_result_free(run_text(box, "exit 1"));
        says(box, "type f >/dev/null 2>&1 || echo gone; echo $V", "gone\nv\n", "and not longer, unlike variables");
        hutch_result_free(run_text(box, "(sleep 0.2; kill -9 $$) &"));
        usleep(1000000);
        r = run_text(box, "echo $V");
        ok(!strcmp(r->output[1], "v\n") && strstr(notice_of(r), "the shell was ended"),
           "one that ended between two runs is reported: '%s'", notice_of(r));
        hutch_result_free(r);
        hutch_box_close(box);
}

/* A shell that waits for a line is there, whatever happens meanwhile. */
static void idles(hutch_context *context, const char *shell) {
        hutch_box *box = open_session(context, shell);

        hutch_result_free(run_text(box, "f() { echo f; }; trap 'T=t' USR1; sleep 0.05 &"));
        says(box, "test -e /dev/hutch/sh || echo none", "none\n", "the shell's lines have no name any more");
        usleep(600000);
        says(box, "f; wait $! && echo waited", "f\nwaited\n", "a job that ends while nothing runs");
        hutch_result_free(run_text(box, "(sleep 0.05; kill -USR1 $$; kill -WINCH $$; kill -URG $$) &"));
        usleep(600000);
        says(box, "f; echo $T; seq 3 | head -n 1", "f\nt\n1\n", "a trap, other signals");
        hutch_box_close(box);
}

static void with_variables(hutch_context *context, const char *shell) {
        static const char *const env[] = {"Q=q", "R=r", NULL};
        hutch_request request = {
                .struct_size = sizeof(request), .command = "echo $Q $R; sh -c 'echo $Q $R'", .env = env};
        hutch_box *box = open_session(context, shell);
        hutch_result *r;

        hutch_result_free(run_text(box, "R=own; export S=s"));
        r = run_request(box, &request);
        is(r->output[1], "q r\nq r\n", "variables of a run: for programs, too");
        hutch_result_free(r);
        says(box, "echo ${Q-none} $R $S; sh -c 'echo ${Q-none} ${R-none}'", "none own s\nnone none\n",
             "and gone afterwards");
        hutch_box_close(box);
}

static void stops(hutch_context *context, const char *shell) {
        static const struct {
                const char *text, *what;
        } rows[] = {
                {"sleep 1000", "a command"},
                {"while :; do :; done", "a loop of builtins"},
                {"while :; do sleep 0.01; done", "a loop of commands"},
                {"sleep 1000 | sleep 1000 | cat", "a pipeline"},
                {"x=$(sleep 1000)", "a command substitution"},
                {"(sleep 1000; sleep 1000)", "a subshell"},
                {"sleep 1000 & wait", "wait"},
        };
        hutch_box *box = open_session(context, shell);

        hutch_result_free(run_text(box, "cd /usr; V=v"));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                hutch_result *r = run_for(box, rows[i].text, 300), *after = run_text(box, "pwd; echo $V");

                if (!ok(r->kill_reason == HUTCH_KILLED_TIMEOUT && r->exit_code == 124 && strstr(notice_of(r), AGAIN) &&
                                r->duration_ms < 2000 && !strcmp(after->output[1], "/usr\nv\n") && in_step(box),
                        "a timeout ends %s and the shell, which comes back and says so", rows[i].what))
                        printf("#   exit %d, reason %d, %f ms, notice '%s', then '%s'\n", r->exit_code, r->kill_reason,
                               r->duration_ms, notice_of(r), after->output[1]);
                hutch_result_free(r);
                hutch_result_free(after);
        }
        hutch_box_close(box);
}

static void all(hutch_context *context, const char *shell) {
        printf("# %s\n", shell);
        play(context, shell, scenes, sizeof(scenes) / sizeof(scenes[0]));
        over_a_restart(context, shell);
        idles(context, shell);
        with_variables(context, shell);
        stops(context, shell);
}

int main(void) {
        hutch_context *context = new_context();

        all(context, "/bin/dash");
        if (access("/bin/busybox", X_OK) == 0)
                all(context, "/bin/busybox");
        else
                ok(true, "busybox # SKIP there is no busybox: install busybox-static");
        hutch_context_free(context);
        return done_testing();
}
