/* What a session's bash keeps from one run to the next, and what it must not. */
#include "scene.h"

/* A run that ends the shell itself: what comes after it is what a new shell was told. */
#define RESTART {"exec true", "", "", 0, "the shell was ended and started again"}

static const struct scene scenes[] = {
        {"the folder", {{"cd /usr/lib", "", "", 0}, {"pwd", "/usr/lib\n", "", 0}, {"cd -", "/workspace\n", "", 0}}},
        {"OLDPWD", {{"cd /usr; cd /etc", "", "", 0}, {"echo $OLDPWD", "/usr\n", "", 0}, {"cd - >/dev/null; pwd", "/usr\n", "", 0}}},
        {"the directory stack", {{"pushd /usr >/dev/null", "", "", 0}, {"popd", "/workspace\n", "", 0}, {"pwd", "/workspace\n", "", 0}}},
        {"a folder that is gone", {{"mkdir d; cd d; rmdir ../d", "", "", 0}, {"echo $PWD; cd ..; pwd", "/workspace/d\n/workspace\n", "", 0}}},
        {"exported variables", {{"export A='x y' B", "", "", 0}, {"env | grep ^A=", "A=x y\n", "", 0}, {"B=1", "", "", 0}, {"env | grep ^B=", "B=1\n", "", 0}}},
        {"plain variables, unexported", {{"V=plain", "", "", 0}, {"echo $V; env | grep ^V=", "plain\n", "", 1}}},
        {"unset", {{"export GONE=1", "", "", 0}, {"unset GONE", "", "", 0}, {"echo ${GONE-unset}; env | grep GONE", "unset\n", "", 1}}},
        {"values of any kind", {{"V=$' a\\n\\'\"\\\\$`\\t*\\x01\\xff '", "", "", 0}, {"printf %q \"$V\"", "$' a\\n\\'\"\\\\$`\\t*\\001\\377 '", "", 0}, RESTART, {"printf %q \"$V\"", "$' a\\n\\'\"\\\\$`\\t*\\001\\377 '", "", 0}}},
        {"integers, readonly and namerefs", {{"declare -i I=5; readonly R=r; declare -n N=I; declare -l L=ABC", "", "", 0}, {"I=I+2; echo $I $R $N $L", "7 r 7 abc\n", "", 0}, {"R=2", NULL, NULL, 1}}},
        {"arrays", {{"A=(one 'two 2' [5]=six)", "", "", 0}, {"echo ${#A[@]} \"${A[1]}\" ${!A[*]}", "3 two 2 0 1 5\n", "", 0}}},
        {"associative arrays", {{"declare -A M=([k]=v ['a b']='c d')", "", "", 0}, {"echo ${M[k]} \"${M[a b]}\" ${#M[@]}", "v c d 2\n", "", 0}}},
        {"functions", {{"f() { echo \"f got $1\"; return 3; }", "", "", 0}, {"f x", "f got x\n", "", 3}}},
        {"a function over several lines", {{"greet() {\n  local who=$1\n  echo hello $who\n}", "", "", 0}, {"greet you", "hello you\n", "", 0}, {"unset -f greet", "", "", 0}, {"greet 2>/dev/null", "", "", 127}}},
        {"exported functions", {{"f() { echo inner; }; export -f f", "", "", 0}, {"bash -c f", "inner\n", "", 0}}},
        {"a recursive function and its locals", {{"fact() { local n=$1; ((n < 2)) && echo 1 || echo $((n * $(fact $((n - 1))))); }", "", "", 0}, {"fact 5; echo ${n-none}", "120\nnone\n", "", 0}}},
        {"aliases", {{"alias hi='echo hi there'", "", "", 0}, {"hi", "hi there\n", "", 0}, {"unalias hi", "", "", 0}, {"hi 2>/dev/null", "", "", 127}}},
        {"set -o options", {{"set -f -o pipefail -u", "", "", 0}, {"echo *; false | true", "*\n", "", 1}, {"set +f; set -o | grep -E 'pipefail|nounset' | tr -s ' \\t' ' '", "nounset on\npipefail on\n", "", 0}}},
        {"shopt", {{"shopt -s nullglob extglob", "", "", 0}, {"echo nothing*here; [[ abc == +(a|b|c) ]] && echo ext", "\next\n", "", 0}}},
        {"traps", {{"trap 'echo caught' USR1", "", "", 0}, {"kill -USR1 $$", "caught\n", "", 0}, {"trap -p USR1", "trap -- 'echo caught' SIGUSR1\n", "", 0}, {"trap - USR1; trap -p USR1", "", "", 0}}},
        {"an ERR and a DEBUG trap", {{"trap 'echo failed' ERR", "", "", 0}, {"false", "failed\n", "", 1}, {"trap - ERR", "", "", 0}, {"false", "", "", 1}}},
        {"umask", {{"umask 027", "", "", 0}, {"umask; touch f; stat -c %a f", "0027\n640\n", "", 0}}},
        {"positional parameters", {{"set -- a 'b c' d", "", "", 0}, {"echo $# \"$2\"", "3 b c\n", "", 0}, {"shift; echo $1", "b c\n", "", 0}}},
        {"$? of the run before", {{"(exit 9)", "", "", 9}, {"echo $?; set -e", "9\n", "", 0}, {"exit 4", "", "", 4}, {"echo $?", "4\n", "", 0}, {"echo $?", "0\n", "", 0}}},
        {"background jobs", {{"sleep 1000 & echo started", "started\n", NULL, 0}, {"jobs -r | grep -c sleep", "1\n", NULL, 0}, {"kill %1; wait %1 2>/dev/null; echo $?", "143\n", NULL, 0}, {"jobs -r", "", NULL, 0}}},
        {"$! and wait over runs", {{"(sleep 0.1; exit 7) &", "", NULL, 0}, {"wait $!; echo $?", "7\n", NULL, 0}}},
        {"open file descriptors", {{"exec 7<<<'line one'", "", "", 0}, {"read -r -u 7 L; echo $L", "line one\n", "", 0}, {"exec 7<&-", "", "", 0}}},
        {"getopts starts where it was", {{"set -- -a -b", "", "", 0}, {"getopts ab o; echo $o", "a\n", "", 0}, {"getopts ab o; echo $o", "b\n", "", 0}}},
        {"files", {{"echo data > f; mkdir -p a/b", "", "", 0}, {"cat f; ls", "data\na\nf\n", "", 0}}},
        {"sourced files", {{"printf 'SRC=1\\ng() { echo g; }\\n' > lib; . ./lib", "", "", 0}, {"g; echo $SRC", "g\n1\n", "", 0}}},
        {"history", {{"echo first", "first\n", "", 0}, {"echo 'second one'", "second one\n", "", 0}, {"history | sed 's/^ *[0-9]* *//'", "echo first\necho 'second one'\n", NULL, 0}}},
        {"IFS, PATH and odd settings", {{"IFS=:; PATH=/usr/bin:/bin:/x; HOME=/tmp", "", "", 0}, {"v=a:b; printf '<%s>' $v; cd; pwd", "<a><b>/tmp\n", "", 0}}},
        {"PS1 and PROMPT_COMMAND print nothing", {{"PS1='\\u\\$ ' PS2='more ' PS4='+++ ' PROMPT_COMMAND='echo prompt'", "", "", 0}, {"echo quiet", "quiet\n", "", 0}}},
        {"set -x traces into the run's own stderr", {{"set -x", "", NULL, 0}, {"echo traced", "traced\n", "++ echo traced\n" /* one level down: it is sourced */, 0}, {"set +x", "", NULL, 0}, {"echo quiet", "quiet\n", "", 0}}},
        {"set -v", {{"set -v", "", NULL, 0}, {"echo spoken", "spoken\n", NULL, 0}, {"set +v", NULL, NULL, 0}, {"echo quiet", "quiet\n", "", 0}}},
        {"set -n is refused or survived", {{"set -n", NULL, NULL, ANY}, {"echo alive", "alive\n", NULL, 0}}},
        {"posix mode", {{"set -o posix", "", "", 0}, {"echo posix; set +o posix", "posix\n", "", 0}}},
        {"a subshell leaks nothing", {{"(cd /usr; X=1; f() { :; }; umask 077; set -f; trap 'echo t' EXIT; alias q=w) >/dev/null", "", "", 0}, {"pwd; echo ${X-none}; umask; type -t f q; [[ $- == *f* ]] || echo glob", "/workspace\nnone\n0022\nglob\n", NULL, 0}}},
        {"nor does a pipeline, a substitution or a job", {{"cd /usr | true; echo $(cd /etc; Y=2); { Z=3; } &", NULL, NULL, 0}, {"wait; pwd; echo ${Y-none}${Z-none}", "/workspace\nnonenone\n", NULL, 0}}},
        {"exit in a subshell ends the subshell", {{"(exit 4); echo $?; x=$(exit 5); echo $?; exit 3 | true; echo ${PIPESTATUS[0]}", "4\n5\n3\n", "", 0}}},
        {"functions named like builtins that hutch needs", {{"printf() { echo mine; }; unset() { :; }; declare() { :; }; cd() { echo cd; }; .() { :; }", "", "", 0}, {"printf x", "mine\n", "", 0}, {"cd /; builtin unset -f unset printf declare cd .; pwd", "cd\n/workspace\n", "", 0}}},
        {"a function named builtin costs the state of its run, no more", {{"X=1", "", "", 0}, {"X=2; builtin() { echo no; }", "", "", ANY, "with the state of the last completed run"}, {"echo $X; type -t builtin", "1\nbuiltin\n", "", 0}}},
        {"aliases named like ours", {{"alias printf='echo a' unset=true .='echo dot' builtin=false", "", "", 0}, {"printf x", "a x\n", "", 0}, {"\\unalias -a", "", "", 0}}},
        /* The same over a new shell. */
        {"all of it survives a shell that is gone",
         {{"cd /usr/lib; cd /etc; export E='e e'; P=plain; A=(1 '2 2'); declare -A M=([k]='v v'); umask 027; set -- p1 'p 2'", "", "", 0},
          {"f() { echo f $1; }; alias hi='echo hi'; set -f; shopt -s nullglob; trap 'echo usr1' USR1; declare -i I=3; readonly R=r", "", "", 0},
          RESTART,
          {"echo $PWD $OLDPWD \"$E\" $P \"${A[1]}\" \"${M[k]}\" $(umask) $# \"$2\"; env | grep ^E=", "/etc /usr/lib e e plain 2 2 v v 0027 2 p 2\nE=e e\n", "", 0},
          {"f x; hi; echo *; shopt nullglob | tr -s ' \\t' ' '; kill -USR1 $$", "f x\nhi\n*\nnullglob on\nusr1\n", "", 0},
          {"I=I+1; echo $I $R", "4 r\n", "", 0},
          {"R=2", NULL, NULL, 1}}},
        {"history survives it too", {{"echo one", "one\n", "", 0}, RESTART, {"history | sed 's/^ *[0-9]* *//'", "echo one\nexec true\n", NULL, 0}}},
        {"an EXIT trap does not run before the shell exits", {{"trap 'echo bye' EXIT", "", "", 0}, {"echo a", "a\n", "", 0}, {"trap -p EXIT", "trap -- 'echo bye' EXIT\n", "", 0}, {"exit 3", "bye\n", "", 3}, {"echo b", "b\n", "", 0}}},
};

int main(void) {
        hutch_context *context = new_context();

        play(context, "/bin/bash", scenes, sizeof(scenes) / sizeof(scenes[0]));
        hutch_context_free(context);
        return done_testing();
}
