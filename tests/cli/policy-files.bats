# Policy files: which are read, in which order, and what is said about mistakes.
load helper

more_setup() { mkdir -p "$HOME/.config/hutch" "$T/sdk" "$T/sdk2"; }
person() { cat >"$HOME/.config/hutch/config.yaml"; }

@test "config.yaml applies, a later file overrides and adds, options have the last word, explain names the lines" {
        echo one >"$T/sdk/f"
        person <<'END'
version: 1
filesystem: {read: ["${HOME}/../sdk"]}
limits: {timeout: 60s}
env: {set: {A: person, B: person, C: person}}
END
        printf 'env: {set: {B: given, C: given}}\nfilesystem: {read: ["%s"]}\n' "$T/sdk2" >given.yaml
        expect values "$(hutch --config given.yaml --env C=option -c 'echo $A $B $C; cat '"$T/sdk/f"'; ls -d '"$T/sdk2" | tr '\n' ' ')" \
                "person given option one $T/sdk2 "
        run hutch explain --config given.yaml
        for origin in "$HOME/.config/hutch/config.yaml:2" "$T/ws/given.yaml:2" "$T/ws/given.yaml:1" "$HOME/.config/hutch/config.yaml:4"; do
                [[ $output == *"($origin"* ]] || differs "explain does not name $origin"
        done
        agree
}

@test "JSON is YAML; paths are seen from the file, from ~ and by placeholders" {
        mkdir -p "$HOME/x" "$T/tmp" sub
        person <<<'{"filesystem": {"read": ["../../x", "~/x", "${TMPDIR}"], "hide": ["${WORKSPACE}/sub"]}}'
        touch sub/hidden
        run env TMPDIR="$T/tmp" "$HUTCH_BUILD/hutch" explain
        for line in "bind    ro $HOME/x " "bind    ro $T/tmp " "hide       $T/ws/sub "; do
                [[ $output == *"$line"* ]] || differs "no '$line'"
        done
        expect hidden "$(hutch ls sub)" ""
        agree
}

@test "every mistake of a file is reported at once, with line, column and a suggestion; nothing runs" {
        person <<'END'
limits: {memroy: 256M, timeout: soon, cpu: [1]}
max_memory_mb: 256
default_isolation: restricted
network: {allow: "a"}
env: {set: {A: [x]}}
limits: {pids: 3}
END
        run hutch touch ran
        expect status "$status" 125
        expect duplicate "${lines[0]}" "hutch: $HOME/.config/hutch/config.yaml:6:1: this key is given twice in the same mapping"
        sed -i '$d' "$HOME/.config/hutch/config.yaml"
        run hutch touch ran
        expect status "$status" 125
        expect lines "${#lines[@]}" 8
        for line in "1:10: unknown key 'limits.memroy'; did you mean 'limits.memory'?" "1:33: limits.timeout: 'soon' is not a duration" \
                "1:44: limits.cpu must be a percentage" "2:1: unknown key 'max_memory_mb'; did you mean 'limits.memory'?" \
                "3:1: unknown key 'default_isolation'; did you mean 'isolation'?" "4:18: network.allow must be a list" \
                "5:16: env.set.A must be a single value"; do
                [[ $output == *"config.yaml:$line"* ]] || differs "no '$line' in: $output"
        done
        [ ! -e ran ] || differs "the command was run"
        agree
}

@test "the keys of similar tools are suggested their equivalents" {
        one() {
                echo "$1: 1" >k.yaml
                run hutch --config k.yaml true
                told 125 "did you mean '$2'?"
        }
        each "timeout | limits.timeout
max_output_bytes | limits.output
max_memory_mb | limits.memory
max_cpu_percent | limits.cpu
work_dir | workspace.dir
blocked_env | env.block
allow_network | network.policy
default_isolation | isolation" one
        for key in image build_on_start network; do
                echo "docker: {$key: x}" >k.yaml
                run hutch --config k.yaml true
                told 125 "did you mean 'container.$key'?"
        done
        echo 'docker: {extra_volumes: x}' >k.yaml
        run hutch --config k.yaml true
        told 125 "did you mean 'container.volumes'?"
        agree
}

@test "what makes YAML expensive or ambiguous is refused" {
        one() {
                printf -- "$1" >bad.yaml
                run hutch --config bad.yaml true
                told 125 "bad.yaml:$2"
        }
        each 'a: &x [1]\nb: *x\n | 1:4: anchors
a: *x\n | 1:4: aliases
env: !!map {}\n | 1:6: tags
--- {}\n--- {}\n | 2:1: a policy file is one document
a: [[[[[[[[[1]]]]]]]]]\n | 1:11: nested too deeply
env: {set: {A: "\\0"}}\n | 1:16: the value contains a NUL byte
\377\n | 1:1: not UTF-8 text
- a\n | 1:1: a policy file is a mapping' one
        head -c 300000 /dev/zero | tr '\0' '#' >bad.yaml
        ends 125 hutch --config bad.yaml true
        [[ $output == *"larger than"* || $output == *"too large"* ]] || differs "$output"
        agree
}

@test ".jail: paths of the person and of a trusted workspace, read-only at their place; a missing one is a warning" {
        echo content >"$T/sdk/f"
        printf '# tools\n\n%s\n  %s  \n%s\n' "$T/sdk" "$T/sdk2" "$T/missing" >"$HOME/.jail"
        run hutch -c "cat $T/sdk/f && ! touch $T/sdk/g 2>/dev/null && ls -d $T/sdk2"
        expect status "$status" 0
        expect read "${lines[0]}" content
        expect warning "$(grep -c "warning: $HOME/.jail:5: $T/missing: does not exist" <<<"$output")" 1
        printf '%s\n%s\n' "$T/sdk" "$T/sdk/f" >.jail
        hutch trust --yes >/dev/null
        sed -i '$d' "$HOME/.jail"
        run hutch explain
        expect once "$(grep -c "bind    ro $T/sdk " <<<"$output")" 1
        [[ $output == *"bind    ro $T/sdk  ($T/ws/.jail:1)"* ]] || differs "the later line is not named"
        [[ $output == *"bind    ro $T/sdk/f  ($T/ws/.jail:2)"* ]] || differs "a file is not attached"
        printf 'a/b\n~/c\n' >"$HOME/.jail"
        run hutch true
        expect status "$status" 125
        [[ $output == *"$HOME/.jail:1: 'a/b' is not an absolute path"*"$HOME/.jail:2: '~/c' is not"* ]] || differs "$output"
        agree
}

@test "a network policy given last decides over hosts of a file, and hosts over a file's deny" {
        person <<<'network: {allow: ["192.0.2.1:443"]}'
        expect allowlist "$(hutch explain | sed -n 's/^allow *//p' | sed 's/  (.*//')" 192.0.2.1:443
        expect deny "$(hutch explain --net deny | sed -n 's/^network *//p')" "none but the box's own loopback"
        person <<<'network: {policy: deny}'
        expect allowed "$(hutch explain --allow-host 192.0.2.7 | sed -n 's/^allow *//p' | sed 's/  (.*//')" 192.0.2.7
        agree
}

@test "profiles: chosen by the command's name, by option, refused by none; the person's own takes its place" {
        hutch profiles | grep -q '^docker ' || differs "docker is not listed"
        mkdir -p "$HOME/.config/hutch/profiles" "$T/only"
        printf 'profile: {summary: mine, commands: [x]}\nfilesystem: {read: ["%s", /none/such]}\nenv: {set: {FROM: profile, OVER: profile}}\n' "$T/only" \
                >"$HOME/.config/hutch/profiles/mine.yaml"
        person <<<'env: {set: {OVER: person}}'
        expect used "$(hutch --profile mine -c 'echo $FROM $OVER; ls -d '"$T/only" | tr '\n' ' ')" "profile person $T/only "
        expect none "$(hutch --profile none -c 'echo "[$FROM]"')" "[]"
        expect shown "$(hutch profiles show docker | grep -c 'commands: \[docker\]')" 1
        expect notice "$(hutch explain --json docker ps | jq -r '.notices[] | select(.code == "profile_used") | .subject')" docker
        agree
}
