/* The ways in which a text ends, or ends the shell: the status is right, the session lives on, in step, with its state.
 */
#include "scene.h"

#define LOST "with the last state that it reported"

static const struct scene scenes[] = {
        {"exit N", {{"X=1; exit 7; echo never", "", "", 7}, {"echo $X", "1\n", "", 0}}},
        {"exit without a number",
         {{"(exit 5); exit", "", "", 5}, {"true; exit", "", "", 0}, {"echo a; false; exit", "a\n", "", 1}}},
        {"exit with odd numbers", {{"exit 256", "", "", 0}, {"exit 300", "", "", 44}, {"exit -1", "", NULL, 255}}},
        {"exit with nonsense", {{"Y=2; exit nonsense", "", NULL, 2}, {"echo ${Y-gone}", "2\n", NULL, 0}}},
        {"exit from a function, a loop, a sourced file, an eval",
         {{"f() { echo in; exit 3; echo no; }; f; echo no", "in\n", "", 3},
          {"for i in 1 2; do echo $i; exit 4; done; echo no", "1\n", "", 4},
          {"echo 'exit 5' > x; . ./x; echo no", "", "", 5},
          {"eval 'exit 6'; echo no", "", "", 6},
          {"while read -r l; do exit 7; done <<< a; echo no", "", "", 7},
          {"if exit 8; then echo no; fi", "", "", 8}}},
        {"exit keeps what the text did before",
         {{"cd /usr; A=(1 2); f() { echo f; }; exit 2", "", "", 2}, {"pwd; echo ${A[1]}; f", "/usr\n2\nf\n", "", 0}}},
        {"builtin exit and logout",
         {{"B=b; builtin exit 9", "", "", 9},
          {"echo $B", "b\n", "", 0},
          {"logout", NULL, NULL, ANY},
          {"echo $B", "b\n", NULL, 0}}},
        {"exit with an INT trap of its own",
         {{"trap 'echo int' INT; C=c; exit 4", "", NULL, 4},
          {"echo $C; trap -p INT", "c\ntrap -- 'echo int' SIGINT\n", NULL, 0}}},
        {"return", {{"echo a; return 4; echo b", "a\n", "", 4}, {"echo c", "c\n", "", 0}}},
        {"set -e with a failing command",
         {{"set -e; D=d; false; echo never", "", "", 1},
          {"echo $D; [[ $- == *e* ]] && echo on", "d\non\n", "", 0},
          {"(exit 6); echo never", "", "", 6},
          {"false || true; echo after", "after\n", "", 0},
          {"set +e", "", "", 0},
          {"false; echo on", "on\n", "", 0}}},
        {"set -e in a function and a pipeline",
         {{"set -eo pipefail; f() { false; echo no; }", "", "", 0},
          {"f; echo no", "", "", 1},
          {"false | cat; echo no", "", "", 1},
          {"if f; then echo cond; fi", "no\ncond\n", "", 0}}},
        {"set -u with an unset variable",
         {{"set -u; E=e", "", "", 0},
          {"echo before; echo $undefined; echo never", "before\n", NULL, ANY},
          {"echo $E", "e\n", "", 0}}},
        {"${x:?}", {{"F=f; : ${nothing:?is missing}; echo never", "", NULL, ANY}, {"echo $F", "f\n", "", 0}}},
        {"a syntax error",
         {{"G=g", "", "", 0},
          {"if then fi", "", NULL, 2},
          {"echo $G", "g\n", "", 0},
          {"echo ) (", "", NULL, 2},
          {"done", "", NULL, 2}}},
        {"a syntax error after commands",
         {{"echo first\n)\necho third", "first\n", NULL, 2}, {"echo next", "next\n", "", 0}}},
        {"unbalanced quotes",
         {{"echo 'open", "", NULL, 2},
          {"echo \"open", "", NULL, 2},
          {"echo `open", "", NULL, ANY},
          {"echo $(open", "", NULL, 2},
          {"echo ${open", "", NULL, ANY, "*"} /* bash 5.2 may abort here, after the one before */,
          {"echo $((1+", "", NULL, ANY},
          {"echo ok", "ok\n", "", 0}}},
        {"unfinished compounds",
         {{"for i in 1 2; do", "", NULL, 2},
          {"f() {", "", NULL, 2},
          {"case x in", "", NULL, 2},
          {"if true; then echo", "", NULL, 2},
          {"{ echo a;", "", NULL, 2},
          {"true &&", "", NULL, 2},
          {"true |", "", NULL, 2}}},
        {"a trailing backslash", {{"echo a\\", NULL, NULL, 0}, {"echo b", "b\n", "", 0}}},
        {"a trailing backslash after a bracket", {{"echo '(' \\", "(\n", "", 0}, {"echo c", "c\n", "", 0}}},
        {"a bracket that is traced",
         {{"set -x; echo '('", "(\n", "++ echo '('\n", 0},
          {"echo '('", "(\n", "++ echo '('\n", 0},
          {"set +x", "", NULL, 0}}},
        {"an unfinished here-document", {{"cat <<X\nline", "line\n", NULL, 0}, {"echo c", "c\n", "", 0}}},
        {"an unfinished here-document with a bracket", {{"cat <<X\n(\n\tX", "(\n\tX\n", NULL, 0}}},
        {"here-documents",
         {{"cat <<X\na $((1+1))\nX\ncat <<'Y'\n$b\nY", "a 2\n$b\n", "", 0},
          {"cat <<-T\n\ttabbed\n\tT\ncat <<<'here string'", "tabbed\nhere string\n", "", 0}}},
        {"several lines",
         {{"x=1\nif [ $x = 1 ]\nthen\n  echo yes\nfi\n\n# a comment\necho done", "yes\ndone\n", "", 0}}},
        {"the empty text, blanks and comments",
         {{"", "", "", 0}, {"   \n\n\t", "", "", 0}, {"# nothing", "", "", 0}, {":", "", "", 0}}},
        {"carriage returns", {{"echo a\r\necho b\r", "a\r\nb\r\n", "", 0}}},
        {"exec of a program that takes its time",
         {{"N=n", "", "", 0},
          {"exec sh -c 'sleep 2; echo done'", "done\n", "", 0, "started again"},
          {"echo $N", "n\n", "", 0}}},
        {"exec of another program",
         {{"H=h", "", "", 0},
          {"exec echo replaced", "replaced\n", "", 0, LOST},
          {"echo $H", "h\n", "", 0},
          {"exec sh -c 'exit 9'", "", "", 9, LOST}}},
        {"exec of a program that is not there",
         {{"I=i; exec /nonexistent/program", "", NULL, 127}, {"echo $I", "i\n", NULL, 0}}},
        {"exec with redirections only",
         {{"exec >f 2>&1; echo to the file; ls nothing", "", "", ANY},
          {"echo here", "here\n", "", 0},
          {"head -1 f", "to the file\n", "", 0}}},
        {"exec that closes every stream", {{"exec 0<&- 1>&- 2>&-", "", "", 0}, {"echo open", "open\n", "", 0}}},
        {"the shell kills itself",
         {{"J=j", "", "", 0},
          {"J=lost; kill -9 $$", "", "", 137, LOST},
          {"echo $J", "j\n", "", 0},
          {"kill -SEGV $$", "", NULL, 139, "*"},
          {"echo $J", "j\n", "", 0}}},
        {"signals that the shell heeds",
         {{"K=k; kill -TERM $$; kill -HUP $$", NULL, NULL, ANY, "*"}, {"echo ${K-k}", "k\n", NULL, 0}}},
        {"a signal to its own group",
         {{"L=l", "", "", 0}, {"kill -9 0", NULL, NULL, 137, LOST}, {"echo $L", "l\n", "", 0}}},
        {"the shell interrupts itself", {{"M=m; kill -INT $$; echo no", NULL, NULL, ANY}, {"echo $M", "m\n", "", 0}}},
        {"the shell stops itself", {{"N=n; kill -STOP $$; echo on", "on\n", NULL, 0}, {"echo $N", "n\n", NULL, 0}}},
        {"endless recursion",
         {{"O=o; r() { r; }", "", "", 0},
          {"FUNCNEST=50; r", "", NULL, ANY},
          {"unset FUNCNEST; echo $O", "o\n", "", 0}}},
        {"a command that is not there",
         {{"no-such-command", "", NULL, 127}, {"/etc/passwd", "", NULL, 126}, {"./nothing", "", NULL, 127}}},
        {"texts that end within a substitution",
         {{"W=w", "", "", 0},
          {"x=$(PATH=/ sr/bin:/b", "", NULL, 2},
          {"/bin/echo a", "a\n", "", 0},
          {"x=$(PATH=/ sr/bin:/b", "", NULL, ANY},
          {"/bin/echo b", "b\n", "", 0},
          {"for i in 1 2 3 4 5 6 7 8; do y[$i]=$(echo $i); done; echo $W ${#y[@]}", "w 8\n", "", 0},
          {"echo \"(\"; (exit 3)", "(\n", "", 3}}},
        {"what a program finds open",
         {{"ls /proc/self/fd", "0\n1\n2\n3\n", "", 0},
          {"ls /proc/self/fd; true", "0\n1\n2\n3\n", "", 0},
          {"readlink /proc/self/fd/0", "/dev/null\n", "", 0},
          {"(ls /proc/self/fd &) ; wait; sleep 0.2", "0\n1\n2\n3\n", "", 0}}},
        {"a shell that prints at its prompt",
         {{"PROMPT_COMMAND='echo prompt; echo prompt >&2'", "", "", 0},
          {"echo a", "a\n", "", 0},
          {"ls /nothing-there", "", NULL, 2},
          {"true", "", "", 0},
          {"echo b; echo c >&2", "b\n", "c\n", 0}}},
        {"a job that ends while a builtin runs",
         {{"sleep 0.1 & sleep 0.05 & true", "", NULL, 0},
          {"echo a", "a\n", "", 0},
          {"sleep 0.3", "", NULL, 0},
          {"echo b", "b\n", "", 0},
          {"cd /no/such/directory", "", NULL, 1},
          {"true", "", "", 0}}},
        {"a variable that cannot be changed, in plain words",
         {{"readonly V=1", "", "", 0}, {"V=2", "", NULL, 1}, {"echo on", "on\n", "", 0}}},
        {"a program that dies by a signal",
         {{"sh -c 'kill -9 $$'", "", NULL, 137}, {"sh -c 'kill -SEGV $$'", "", NULL, 139}}},
        {"closing the answers' pipe", {{"P=p; exec 198>&-", "", NULL, ANY}, {"echo ${P-p}", "p\n", NULL, 0}}},
        {"writing to the answers' pipe",
         {{"printf 'R1 0\\0R2 0\\0R3 0\\0' >&198", "", NULL, ANY},
          {"echo a", "a\n", "", 0},
          {"for i in 3 4 5 6 7 8 9 10 255; do printf 'R4 77\\0D\\0' 2>/dev/null >&$i; done; true", "", NULL, 0},
          {"echo b", "b\n", "", 0}}},
        {"through /proc as well",
         {{"for f in /proc/$$/fd/*; do [ -w $f ] && (printf 'R%d 9\\0' 1 2 3 4 5 6 7 >$f) 2>/dev/null; done; true",
           NULL, NULL, 0},
          {"echo a", "a\n", "", 0}}},
        {"reading the commands' pipe is not reading commands",
         {{"Q=q; read -r -t 0.2 line; echo \"got:$line\"; cat", "got:\n", "", 0}, {"echo $Q", "q\n", "", 0}}},
        {"unset -f of everything",
         {{"R=r; unset -f $(compgen -A function)", "", NULL, ANY, "*"},
          {"echo ${R-r}", "r\n", NULL, 0, "*"},
          {"exit 3", NULL, NULL, 3, "*"},
          {"echo alive", "alive\n", NULL, 0, "*"}}},
        {"functions of ours are overwritten",
         {{"S=s; __hutch_dump() { :; }; __hutch_bye() { :; }", "", "", 0, "*"},
          {"echo ${S-s}", "s\n", "", 0, "*"},
          {"exit 3", NULL, NULL, 3, "*"},
          {"echo alive", "alive\n", NULL, 0, "*"}}},
        {"variables of ours are readonly",
         {{"readonly PS1 PS2 PWD __hutch_status __hutch_on_exit", NULL, NULL, ANY, "*"},
          {"echo alive", "alive\n", NULL, ANY, "*"},
          {"(exit 3)", "", NULL, ANY, "*"}}},
        {"enable -n",
         {{"enable -n printf kill unset trap source .", NULL, NULL, ANY, "*"},
          {"echo alive", "alive\n", NULL, 0, "*"}}},
        {"set -m and set +m",
         {{"set +m", "", NULL, 0},
          {"sleep 0.01; echo a", "a\n", NULL, 0},
          {"set -m; sleep 0.01 & wait; echo b", "b\n", NULL, 0}}},
        {"suspend", {{"T=t; suspend; echo on", NULL, NULL, ANY, "*"}, {"echo ${T-t}", "t\n", NULL, 0, "*"}}},
        {"a job that stops",
         {{"sh -c 'kill -STOP $$'; echo $?", "147\n", NULL, 0}, {"kill -9 %1; echo on", "on\n", NULL, 0}}},
        {"a closed standard stream per command", {{"echo a >&-; echo b", "b\n", NULL, 0}}},
        {"ulimit of the shell",
         {{"ulimit -n 12", "", NULL, ANY, "*"},
          {"echo alive", "alive\n", NULL, 0, "*"},
          {"ulimit -f 0; echo x > f; echo on", NULL, NULL, ANY, "*"}}},
        {"locale changes",
         {{"export LC_ALL=C; export LC_ALL=C.UTF-8; x=ä; echo ${#x}", "1\n", NULL, 0},
          {"LC_ALL=nonsense; echo on", "on\n", NULL, 0}}},
};

/* A shell that cannot begin with the state that it is given comes without it, rather than not at all. */
static void poisoned(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);

        hutch_result_free(run_text(
                box,
                "declare() { kill -9 $$; }; export -f declare; PROMPT_COMMAND='kill -9 $$'; trap 'kill -9 $$' DEBUG"));
        for (int i = 0; i < 8; i++)
                hutch_result_free(run_for(box, "echo try", 20000));
        ok(in_step(box), "a state that kills each new shell is given up in the end");
        hutch_box_close(box);
}

/* The shell may be gone when a text comes, and its end not yet known: the text is not to blame. */
static void between(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        unsigned failed = 0, lost = 0;
        char text[64], want[32];

        for (int i = 0; i < 150; i++) {
                hutch_result *r;

                snprintf(text, sizeof(text), "(sleep 0.00%d; kill -9 $$) &", i % 7);
                hutch_result_free(run_for(box, text, 20000));
                for (int k = 0; k < 12; k++) {
                        snprintf(text, sizeof(text), "echo %d.%d", i, k);
                        snprintf(want, sizeof(want), "%d.%d\n", i, k);
                        r = run_for(box, text, 20000);
                        failed += tap_ret < 0;
                        lost += strcmp(r->output[1], want) != 0 && r->exit_code != 137;
                        hutch_result_free(r);
                }
        }
        ok(failed == 0 && lost == 0, "a shell that is killed between two runs fails no run (%u failed, %u lost)",
           failed, lost);
        for (int i = 0, status = 1; i < 20 && status; i++) { /* the last killers may be late */
                hutch_result *r = run_for(box, "while pgrep -x bash | grep -qvx $$; do :; done", 60000);

                status = r->exit_code;
                hutch_result_free(r);
        }
        ok(in_step(box), "a shell that is killed between two runs: in step");
        hutch_box_close(box);
}

int main(void) {
        hutch_context *context = new_context();

        play(context, "/bin/bash", scenes, sizeof(scenes) / sizeof(scenes[0]));
        poisoned(context);
        between(context);
        hutch_context_free(context);
        return done_testing();
}
