# A workspace's own policy files: what they restrict applies, what they grant only after a person accepted exactly that.
load helper

more_setup() {
        mkdir -p "$T/sdk" sub
        echo secret >sub/f
        echo granted >"$T/sdk/f"
        unset XDG_STATE_HOME
}
own() { printf 'filesystem: {read: ["%s"], hide: [sub]}\nlimits: {timeout: 50s}\n' "$T/sdk" >hutch.yaml; }
notices() { hutch --json "$@" true | jq -r '.notices[] | select(.code | startswith("workspace_")) | .code + " " + .text'; }
granted() { hutch -c "cat $T/sdk/f" 2>/dev/null; }

@test "restrictions apply at once, grants after hutch trust, until one byte changes" {
        own
        expect hidden "$(hutch ls sub)" ""
        expect withheld "$(granted)" ""
        [[ $(notices) == "workspace_untrusted $T/ws/hutch.yaml is not trusted: not applied: filesystem.read" ]] || differs "$(notices)"
        ends 125 hutch --require-trust touch ran
        [ ! -e ran ] || differs "ran without the trust that is required"
        hutch trust --yes >/dev/null
        expect granted "$(granted)" granted
        expect quiet "$(notices)" ""
        ends 0 hutch --require-trust true
        echo >>hutch.yaml
        expect changed "$(granted)" ""
        [[ $(notices) == *"changed since it was trusted: not applied: filesystem.read" ]] || differs "$(notices)"
        ends 125 hutch --require-trust true
        own
        expect "the same content again" "$(granted)" granted
        hutch trust --forget
        expect forgotten "$(granted)" ""
        agree
}

@test "only what is lower or stricter is taken of an untrusted file" {
        one() {
                printf '%s\n' "$1" >hutch.yaml
                local got
                got=$(hutch explain ${3:-} 2>&1)
                [[ $got == *"$2"* ]] || differs "[$1]: no '$2' in: $got"
        }
        each 'limits: {timeout: 5s} | timeout   5000 ms | --profile none
workspace: {mode: ro} | bind    ro
network: {policy: deny} | none but the box
network: {policy: open} | none but the box
env: {set: {LD_PRELOAD: /x}} | not applied: env.set
env: {pass: ["*"]} | not applied: env.pass
filesystem: {write: [/srv], cow: [/], dev: [/dev/null]} | not applied: filesystem.cow, filesystem.write, filesystem.dev
isolation: none | backend   namespace
require_trust: false | backend' one
        mkdir -p "$HOME/.config/hutch"
        echo 'limits: {timeout: 2s}' >"$HOME/.config/hutch/config.yaml"
        one 'limits: {timeout: 5s}' 'timeout   2000 ms'
        echo 'require_trust: true' >"$HOME/.config/hutch/config.yaml"
        echo 'require_trust: false' >hutch.yaml
        ends 125 hutch true
        agree
}

@test "a box cannot reach its grants: every trick with .jail and hutch.yaml grants nothing the next time, and is reported" {
        trick() { # what a box leaves behind; what the next run says
                rm -rf .jail hutch.yaml other
                eval "$1" || differs "[$1] the control: it could not be made"
                local got
                got=$(hutch --json -c "cat $T/sdk/f" 2>/dev/null) || true
                [[ $(field "$got" .stdout) != *granted* ]] || differs "[$1] was granted"
                [[ $(field "$got" '.notices[].text') == *"$2"* ]] || differs "[$1] no '$2' in: $(field "$got" '[.notices[].text], .error.message')"
        }
        each 'echo $T/sdk >.jail | .jail is not trusted
echo $T/sdk >other; ln -s other .jail | .jail is not read: it is a symbolic link
echo $T/sdk >other; ln other .jail | .jail is not read: it has a second name
mkfifo .jail | .jail is not read: it is not a regular file
mkdir .jail | .jail is not read: it is not a regular file
own; mv hutch.yaml other; ln -s other hutch.yaml | hutch.yaml is not read: it is a symbolic link
own; ln hutch.yaml other | hutch.yaml is not read: it has a second name
mkfifo hutch.yaml | hutch.yaml is not read: it is not a regular file
own; head -c 300000 /dev/zero >>hutch.yaml | hutch.yaml is not read: it is larger' trick
        rm -rf .jail hutch.yaml other
        # The control: accepted, the same file grants.
        echo "$T/sdk" >.jail
        hutch trust --yes >/dev/null
        expect control "$(granted)" granted
        agree
}

@test "a box writes neither file where it exists, nor the record" {
        own
        echo "$T/sdk" >.jail
        hutch trust --yes >/dev/null
        for attack in 'echo x >>hutch.yaml' 'echo x >>.jail' 'rm hutch.yaml' 'mv .jail x' 'chmod 777 .jail' 'ln hutch.yaml second' \
                'sed -i s/read/write/ hutch.yaml' "ls $HOME/.local/state/hutch"; do
                ! hutch -c "$attack" 2>/dev/null || differs "[$attack] succeeded"
        done
        expect unchanged "$(hutch trust)" "already trusted, unchanged"
        ends 125 hutch --rw "$HOME/.local/state/hutch/trust" true
        ends 125 hutch --rw "$HOME/.local" true
        agree
}

@test "a file that goes away is reported, and a record is of one directory" {
        echo "$T/sdk" >.jail
        hutch trust --yes >/dev/null
        rm .jail
        [[ $(notices) == *".jail was trusted and no longer exists" ]] || differs "$(notices)"
        mkdir "$T/other"
        echo "$T/sdk" >"$T/other/.jail"
        [[ $(notices -d "$T/other") == *"is not trusted"* ]] || differs "$(notices -d "$T/other")"
        agree
}

@test "at a terminal a changed file is shown as a difference, and the answer decides" {
        own
        hutch trust --yes >/dev/null
        sed -i 's/50s/40s/' hutch.yaml
        ask() { printf '%s\n' "$1" | script -qec "$HUTCH_BUILD/hutch -c 'cat $T/sdk/f'" /dev/null | tr -d '\r'; }
        no=$(ask n)
        [[ $no == *"-limits: {timeout: 50s}"*"+limits: {timeout: 40s}"*"changed since you trusted them"* ]] || differs "no difference: $no"
        [[ $no != *granted* ]] || differs "granted after no"
        yes=$(ask y)
        [[ $yes == *granted* ]] || differs "not granted after yes: $yes"
        expect "not asked again" "$(granted)" granted
        agree
}

@test "a language's profile applies to the boxes of one workspace once it was trusted, until its text changes" {
        hutch explain --net allowlist --allow-host 203.0.113.1:443 true >/dev/null 2>&1 || skip "needs --net allowlist"
        allowed() { hutch explain "$@" true 2>/dev/null | sed -n 's/^allow *\([^ ]*\) .*(profile \(.*\):.*/\1 \2/p' | tr '\n' ' '; }
        echo 'registry=https://registry.npmjs.org/' >"$HOME/.npmrc"
        expect before "$(allowed)" ""
        ends 125 hutch trust --profile node # no terminal to ask at
        expect asked "$(allowed)" ""
        hutch trust --profile node --yes >/dev/null
        expect accepted "$(allowed)" "registry.npmjs.org:443 node (hutch trust) "
        expect configuration "$(hutch -c 'cat ~/.npmrc')" 'registry=https://registry.npmjs.org/'
        expect session "$(allowed --as user)" "registry.npmjs.org:443 node (hutch trust) "
        expect none "$(allowed --profile none)" ""
        [[ $(allowed --profile go) == *"registry.npmjs.org:443 node (hutch trust)"* ]] || differs "beside another: $(allowed --profile go)"
        expect denied "$(hutch explain --net deny true | grep -c '^allow')" 0
        mkdir "$T/other"
        expect "another workspace" "$(allowed -d "$T/other")" ""
        ! hutch -c "ls $HOME/.local/state/hutch/trust || echo x >$HOME/.local/state/hutch/trust/x" 2>/dev/null || differs "a box reaches the record"
        hutch trust --profile python --yes "$PWD" >/dev/null
        [[ $(allowed) == *npmjs*pypi* || $(allowed) == *pypi*npmjs* ]] || differs "two: $(allowed)"
        hutch trust --profile python --forget
        expect "one forgotten" "$(allowed)" "registry.npmjs.org:443 node (hutch trust) "
        # The person's own profile of that name is another text.
        mkdir -p "$HOME/.config/hutch/profiles"
        hutch profiles show node >own
        (cat own; echo '    - more.example:443') >"$HOME/.config/hutch/profiles/node.yaml"
        expect changed "$(allowed)" ""
        [[ $(notices) == "workspace_untrusted profile node changed since it was trusted for this workspace: not applied" ]] || differs "$(notices)"
        ask() { printf '%s\n' "$1" | script -qec "$HUTCH_BUILD/hutch true" /dev/null | tr -d '\r'; }
        [[ $(ask n) == *"+    - more.example:443"*"this profile changed"* ]] || differs "not asked again"
        expect no "$(allowed)" ""
        ask y >/dev/null
        [[ $(allowed) == *more.example* ]] || differs "not applied after yes: $(allowed)"
        hutch trust --forget
        expect forgotten "$(allowed)" ""
        expect removed "$(ls "$HOME/.local/state/hutch/trust")" ""
        agree
}
