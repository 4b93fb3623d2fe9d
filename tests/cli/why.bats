# hutch why, and what a person at a terminal is told: each answer comes from the plan, and a real box agrees with it.
load helper

@test "why: a path is answered by the plan with rule, origin and fix, and the box agrees" {
        need git
        git init -q .
        mkdir -p sub "$HOME/.config/hutch" "$T/sdk"
        echo x >sub/x
        echo x >plain
        printf 'filesystem: {hide: ["**/sub"], read: ["%s"]}\n' "$T/sdk" >"$HOME/.config/hutch/config.yaml"
        one() {
                local path got
                eval "path=$1 fix=\"$4\""
                got=$(hutch why "$path")
                [[ $? -eq $2 && $got == *"$3"* && $got == *"$fix"* && $got == *"tried   $5"* ]] || differs "[$path] $?: $got"
        }
        set +e
        each '~/.ssh/id_rsa | 1 | not in the box | fix     --ro $HOME/.ssh/id_rsa | does not exist
/etc/passwd | 0 | read-only | --cow / | a file, can be read, cannot be written
. | 0 | readable and writable | (workspace) | a directory, can be read, can be written
$T/sdk | 0 | read-only | config.yaml:1 | a directory, can be read, cannot be written
plain | 0 | readable and writable | (workspace) | a file, can be read, can be written
sub/x | 1 | hidden | config.yaml:1 | does not exist
.git/config | 0 | read-only | config: allow | a file, can be read, cannot be written' one
        set -e
        agree
}

@test "why: a host is answered by the rule that matches, or by the policy" {
        ends 1 hutch why example.org:443
        [[ $output == *"the network policy is 'deny'"*"fix     --allow-host example.org:443"* ]] || differs "$output"
        ends 0 hutch why --allow-host '*.example.org:443' a.example.org:443
        [[ $output == *"network.allow *.example.org:443  (--allow-host)"* ]] || differs "$output"
        ends 1 hutch why --allow-host '*.example.org:443' a.example.org:80
        ends 1 hutch why --allow-host '*.example.org' notexample.org
        ends 0 hutch why --allow-host 192.0.2.0/24 192.0.2.9:1
        ends 0 hutch why --net-strict --upstream-proxy http://proxy.example:3128 --allow-host example.org example.org:443
        [[ $output == *"if      the connection names the host"*"(--net-strict)"*"by      http://proxy.example:3128  (--upstream-proxy)"* ]] || differs "$output"
        ends 0 hutch why --net open 192.0.2.9:1
        ends 0 hutch why --credential a.example=KEY http://a.example.hutch.internal/v1
        [[ $output == *"rule    network.credentials a.example=KEY  (--credential)"* ]] || differs "$output"
        ends 1 hutch why --credential a.example=KEY a.example.hutch.internal:443
        ends 1 hutch why --credential a.example=KEY b.example.hutch.internal
        [[ $output == *"fix     --credential b.example=ENV_NAME"* ]] || differs "$output"
        ends 1 hutch why --credential a.example=KEY a.example
        ends 125 hutch why 'not a host'
        agree
}

@test "why: a fix works, or there is none" {
        need python3
        mkdir "$T/run" "$T/repo" && git init -q "$T/repo"
        python3 -c 'import socket,sys
for p in sys.argv[1:]: socket.socket(socket.AF_UNIX).bind(p)' "$T/run/docker.sock" "$T/run/other.sock"
        says() {
                local words fix=$3
                eval "words=($1)"
                eval "fix=\"$3\""
                run hutch why "${words[@]}"
                [ "$status" -eq "$2" ] && [[ $output == *"$fix"* ]] || differs "[$1] $status: $output"
        }
        each '"$T/run/docker.sock" | 1 | fix     --docker
"$T/run/other.sock" | 1 | fix     --allow-socket $T/run/other.sock
/nosuch/path | 1 | the host has no such path
/etc/shadow | 1 | cannot be read
--ro "$T/repo" "$T/repo" | 0 | git hooks
127.0.0.1:5432 | 1 | --allow-host-port 5432
localhost:5432 | 1 | --allow-host-port 5432
--allow-host-port 5432 localhost:5432 | 0 | allowed
--allow-host-port 5432 127.0.0.1:5433 | 1 | --allow-host-port 5433
https://u:p@example.org/x/y | 1 | --allow-host example.org:443
http://example.org:8080/x | 1 | --allow-host example.org:8080
--isolation landlock example.org:443 | 1 | --allow-host example.org:443' says
        run hutch why /proc/1/environ
        [[ $output != *"--ro"* ]] || differs "$output"
        run hutch --profile nome true
        [[ $output != *"'none'"* ]] || differs "$output"
        agree
}

@test "a failed command at a terminal: what the box is the reason for is guessed, and nothing else" {
        at_terminal() { script -qec "$HUTCH_BUILD/hutch $1" /dev/null </dev/null | tr -d '\r\0'; }
        [[ $(at_terminal "cat $HOME/.ssh/id_rsa") == *"note: a guess: $HOME/.ssh/id_rsa is not in the box: the home in the box is empty (try: --ro"* ]] || differs home
        need git
        git init -q .
        [[ $(at_terminal 'sh -c "echo x >.git/config"') == *"a guess: $T/ws/.git/config is read-only"*"config: allow"* ]] || differs config
        [[ $(at_terminal '--workspace ro touch new') == *"a guess: $T/ws is read-only"*"--workspace rw"* ]] || differs workspace
        [[ $(at_terminal "sh -c 'echo getaddrinfo EAI_AGAIN registry.npmjs.org >&2; exit 1'") == *"a guess: "*"--profile node"* ]] || differs registry
        [[ $(at_terminal "--net open sh -c 'echo registry.npmjs.org >&2; exit 1'") != *guess* ]] || differs "registry, with a network"
        [[ $(at_terminal 'ls nosuch') != *guess* ]] || differs "a file that the host lacks too"
        [[ $(at_terminal 'false') != *guess* ]] || differs "nothing was printed"
        [[ $(at_terminal "sh -c 'cat $HOME/.ssh/id_rsa; true'") != *guess* ]] || differs "the command succeeded"
        run hutch cat "$HOME/.ssh/id_rsa"
        [[ $output != *guess* ]] || differs "without a terminal"
        agree
}

@test "the first run on a host says in two lines what the box can do; later ones, and quiet ones, say nothing" {
        rm -r "$HOME/.local/state/hutch/seen"
        at_terminal() { script -qec "$HUTCH_BUILD/hutch $1" /dev/null </dev/null | tr -d '\r\0^@\b'; }
        expect quiet "$(at_terminal '--quiet true')" ""
        first=$(at_terminal true)
        expect lines "$(grep -c . <<<"$first")" 2
        [[ $first == *"the box writes the workspace"*"no network"* ]] || differs "$first"
        expect again "$(at_terminal true)" ""
        agree
}
