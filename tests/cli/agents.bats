#!/usr/bin/env bats
# Profiles of agents, with programs that lie where the real ones do.
bats_require_minimum_version 1.5.0
load helper

more_setup() {
        unset XDG_STATE_HOME XDG_CONFIG_HOME
        mkdir -p "$HOME"/.claude/{projects,hooks,plugins} "$HOME"/.codex/sessions "$HOME"/.gemini/history "$HOME/.local/bin" "$HOME/.config/gh"
        echo '{"hooks":{}}' >"$HOME/.claude/settings.json"
        echo '{"mcpServers":{}}' >"$HOME/.claude.json"
        echo '["token"]' >"$HOME/.claude/.credentials.json"
        echo secret >"$HOME/.config/gh/hosts.yml"
        echo 'model = "x"' >"$HOME/.codex/config.toml"
        echo '{}' >"$HOME/.gemini/settings.json"
        for agent in claude codex gemini; do
                mkdir -p "$HOME/.local/share/$agent/versions"
                printf '#!/bin/sh\n[ "$1" != -c ] || shift 2\neval "$1"\n' >"$HOME/.local/share/$agent/versions/1"
                chmod +x "$HOME/.local/share/$agent/versions/1"
                ln -s "../share/$agent/versions/1" "$HOME/.local/bin/$agent"
        done
        PATH=$HOME/.local/bin:$PATH
        hutch --net allowlist --allow-host 203.0.113.1:443 true 2>/dev/null || skip "needs --net allowlist"
}
state() { (cd "$HOME" && find . -path ./.local/state -prune -o -path ./.cache -prune -o -type f -print | sort | xargs sha256sum); }

@test "an agent runs with its profile by its name, which is said once" {
        run hutch claude 'cat ~/.claude/.credentials.json; cat ~/.claude.json; echo $DISABLE_AUTOUPDATER; pwd'
        [[ $output == *token*'{"mcpServers":{}}'*1*"$PWD"* ]]
        run hutch --json claude 'true'
        [ "$(field "$output" '[.notices[] | select(.code == "profile_used").subject] | first')" = claude ]
        run hutch --profile none --json claude 'cat ~/.claude/.credentials.json'
        [ "$(field "$output" .exit_code)" != 0 ]
}

@test "sessions and credentials are kept, everything that the host's agent runs stays as it was" {
        for agent in claude codex gemini; do hutch $agent true 2>/dev/null; done # which makes what is missing
        before=$(state)
        run hutch claude 'for f in settings.json settings.local.json CLAUDE.md hooks/x plugins/x agents/x commands/x skills/x statusline.sh shell-snapshots/x; do
                mkdir -p ~/.claude/${f%/*} 2>/dev/null; echo evil >~/.claude/$f; done 2>/dev/null
                rm -f ~/.claude.json; echo evil >~/.claude.json; mv ~/.claude/settings.json ~/s; mv ~/.claude ~/c; rm -rf ~/.claude/hooks; echo evil >~/.local/bin/claude; echo evil >~/.local/share/claude/versions/1'
        run hutch codex 'echo evil >~/.codex/config.toml; echo evil >~/.codex/new.toml; mv ~/.codex ~/c'
        run hutch gemini 'echo evil >~/.gemini/settings.json; mkdir ~/.gemini/extensions; echo evil >~/.gemini/extensions/x'
        [ "$(state)" = "$before" ]
        (echo evil >"$HOME/.claude/settings.local.json") # the control: outside it can
        [ "$(state)" != "$before" ]
        hutch claude 'echo s >~/.claude/projects/s; echo "[2]" >~/.claude/.credentials.json' 2>/dev/null
        hutch codex 'echo s >~/.codex/sessions/s' 2>/dev/null
        [ "$(cat "$HOME/.claude/projects/s" "$HOME/.claude/.credentials.json" "$HOME/.codex/sessions/s")" = $'s\n[2]\ns' ]
}

@test "tokens of gh and keys that nobody passed are out of reach" {
        run hutch claude 'cat ~/.config/gh/hosts.yml ~/.ssh/id_rsa; echo "[$GH_TOKEN][$ANTHROPIC_API_KEY]"'
        [[ $output == *"[][]"* ]] && [[ $output != *secret* ]] && [[ $output != *private* ]]
        GH_TOKEN=t ANTHROPIC_API_KEY=k run hutch claude 'echo "[$GH_TOKEN][$ANTHROPIC_API_KEY]"'
        [[ $output == *"[][k]"* ]]
}

# What an agent does at a save: a new file, renamed over the old one.
save='save() { cat >"$1.new" && mv "$1.new" "$1"; }; '

@test "a first login in the box is kept: what the agent makes at its first start is made before" {
        rm -rf "$HOME/.claude" "$HOME/.claude.json" "$HOME/.codex" "$HOME/.gemini"
        hutch explain claude true >/dev/null 2>&1
        [ ! -e "$HOME/.claude" ] # an explanation makes nothing
        run hutch --json claude "$save"'echo "{\"t\":1}" | save ~/.claude/.credentials.json; echo h >>~/.claude/history.jsonl; echo p >~/.claude/projects/p
                echo "{\"numStartups\":1,\"oauthAccount\":{\"a\":1}}" | save ~/.claude.json'
        [ "$(field "$output" '[.notices[] | select(.code == "profile_made")] | length')" = 1 ]
        [ "$(cat "$HOME/.claude/.credentials.json" "$HOME/.claude/history.jsonl" "$HOME/.claude/projects/p")" = $'{"t":1}\nh\np' ]
        [ "$(field "$(cat "$HOME/.claude.json")" .oauthAccount.a)" = 1 ]
        [ "$(stat -c %a "$HOME/.claude" "$HOME/.claude/.credentials.json" "$HOME/.claude/projects" "$HOME/.claude.json" | xargs)" = "700 600 700 600" ]
        run hutch --json claude 'cat ~/.claude/.credentials.json'
        [ "$(field "$output" .stdout)" = '{"t":1}' ]
        [ "$(field "$output" '[.notices[] | select(.code == "profile_made")] | length')" = 0 ] # once
        hutch codex "$save"'echo "{}" | save ~/.codex/auth.json; echo s >~/.codex/sessions/s' 2>/dev/null
        hutch gemini "$save"'echo "{}" | save ~/.gemini/oauth_creds.json' 2>/dev/null
        [ "$(cat "$HOME/.codex/auth.json" "$HOME/.codex/sessions/s" "$HOME/.gemini/oauth_creds.json")" = $'{}\ns\n{}' ]
        # The way to log in that was chosen is kept, and nothing else of the settings.
        echo '{"hooks": 1}' >"$HOME/.gemini/settings.json"
        hutch gemini "$save"'echo "{\"hooks\": 2, \"mcpServers\": {}, \"security\": {\"auth\": {\"selectedType\": \"x\", \"y\": 1}}}" | save ~/.gemini/settings.json' 2>/dev/null
        [ "$(jq -c . "$HOME/.gemini/settings.json")" = '{"hooks":1,"security":{"auth":{"selectedType":"x"}}}' ]
}

@test "of a saved .claude.json the listed keys reach the host, never one that starts a program" {
        echo '{"numStartups":1,"mcpServers":{"own":{"command":"true"}},"projects":{"/a":{"lastCost":1,"mcpServers":{}}}}' >"$HOME/.claude.json"
        chmod 640 "$HOME/.claude.json"
        hutch claude "$save"'echo "{\"numStartups\":7,\"mcpServers\":{\"evil\":{\"command\":\"evil\"}},\"env\":{\"A\":\"evil\"},\"apiKeyHelper\":\"evil\",
                \"hooks\":{\"x\":\"evil\"},\"unknown\":\"evil\",\"projects\":{\"/a\":{\"lastCost\":2,\"allowedTools\":[\"evil\"],\"enabledMcpjsonServers\":[\"evil\"],\"mcpServers\":{\"evil\":{}}},
                \"$PWD\":{\"hasTrustDialogAccepted\":true,\"lastCost\":3,\"hasClaudeMdExternalIncludesApproved\":true}}}" | save ~/.claude.json' 2>/dev/null
        text=$(cat "$HOME/.claude.json")
        [ "$(field "$text" '[.numStartups, .mcpServers.own.command, .projects["/a"].lastCost, .projects["'"$PWD"'"].lastCost] | map(tostring) | join(" ")')" = "7 true 2 3" ]
        [[ $text != *evil* ]] && [[ $text != *TrustDialog* ]] && [[ $text != *External* ]]
        [ "$(stat -c %a "$HOME/.claude.json")" = 640 ]
        # what the host saved meanwhile stays, where the box did not change the same key
        hutch claude "$save"'sleep 1; echo "{\"numStartups\":7,\"theme\":\"light\"}" | save ~/.claude.json' 2>/dev/null &
        sleep 0.5
        echo '{"numStartups":9,"mcpServers":{"mine":{}}}' >"$HOME/.claude.json"
        wait $!
        [ "$(field "$(cat "$HOME/.claude.json")" '[(.numStartups | tostring), .theme, (.mcpServers | keys[0])] | join(" ")')" = "9 light mine" ]
}

@test "nothing that a hostile box puts in place of a copy reaches the host or stops the box" {
        echo '{"t":1}' >"$HOME/.claude/.credentials.json"
        hutch claude true 2>/dev/null
        before=$(state)
        for evil in 'ln -sf /etc/passwd ~/.claude/.credentials.json; ln -sf /proc/1/environ ~/.claude.json' \
                'rm ~/.claude/.credentials.json ~/.claude.json; mkfifo ~/.claude/.credentials.json ~/.claude.json' \
                'rm ~/.claude/.credentials.json ~/.claude.json; mkdir ~/.claude/.credentials.json ~/.claude.json' \
                'truncate -s 1G ~/.claude/.credentials.json ~/.claude.json' \
                'head -c 300000 /dev/zero | tr "\0" "[" | tee ~/.claude.json >~/.claude/.credentials.json' \
                'echo "{" | tee ~/.claude.json >~/.claude/.credentials.json' \
                'rm -f ~/.claude/.credentials.json ~/.claude.json' \
                'mv ~/.claude ~/other; ln -s /etc ~/.claude; cp /bin/true ~/.claude.json'; do
                run hutch --json claude "$evil; sleep 0.7; echo on"
                [ "$(field "$output" '[.exit_code, .stdout] | map(tostring) | join(" ")')" = $'0 on' ]
                [ "$(state)" = "$before" ]
        done
        run hutch --json claude 'truncate -s 1G ~/.claude/.credentials.json'
        [ "$(field "$output" '[.notices[] | select(.code == "kept_not_saved").severity] | first')" = warning ]
        ln -sf settings.json "$HOME/.claude/linked" # a link of the person's own is followed, and stays one
        rm "$HOME/.claude.json" && echo '{}' >"$HOME/real.json" && ln -s real.json "$HOME/.claude.json"
        hutch claude "$save"'echo "{\"numStartups\":3}" | save ~/.claude.json' 2>/dev/null
        [ -L "$HOME/.claude.json" ] && [ "$(field "$(cat "$HOME/real.json")" .numStartups)" = 3 ]
}

@test "a token that the host renews reaches the box, and kill -9 of hutch loses no save" {
        echo '{"t":1}' >"$HOME/.claude/.credentials.json"
        hutch claude 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do grep -q 2 ~/.claude/.credentials.json && exit 0; sleep 0.2; done; exit 1' 2>/dev/null &
        sleep 0.5
        echo '{"t":2}' >"$HOME/.claude/.c" && mv "$HOME/.claude/.c" "$HOME/.claude/.credentials.json"
        [ "$(id -u)" = 0 ] || wait $! # root's ids do not exist in the box's file system
        hutch claude "$save"'echo "{\"t\":3}" | save ~/.claude/.credentials.json; sleep 60' 2>/dev/null &
        sleep 2
        kill -9 $!
        [ "$(cat "$HOME/.claude/.credentials.json")" = '{"t":3}' ]
        [ -z "$(find "$HOME" -name '*.hutch')" ]
}

@test "a workspace's policy file cannot declare files that are saved back" {
        printf 'profile:\n  keep: [~/.claude/settings.json]\n' >hutch.yaml
        hutch trust --yes 2>/dev/null || true
        run hutch claude true
        [ "$status" = 125 ] && [[ $output == *hutch.yaml:*profile* ]]
}

@test "the service at another address is reachable: its host and port are allowed, with the variable as origin" {
        ANTHROPIC_BASE_URL=https://user:pw@gate.example:8443/v1 run hutch explain claude true
        [[ $output == *"gate.example:8443  (ANTHROPIC_BASE_URL)"* ]]
        for url in http://127.0.0.1:4000 http://localhost:4000/x 'http://[::1]:4000'; do
                ANTHROPIC_BASE_URL=$url run hutch explain claude true
                [[ $output == *"host port 4000"* ]]
        done
        OPENAI_BASE_URL=http://proxy.example/v1 run hutch explain codex true
        [[ $output == *"proxy.example:80  (OPENAI_BASE_URL)"* ]]
        ANTHROPIC_BASE_URL=http://127.0.0.1:4000 run hutch explain --net deny claude true # a person's word holds
        [[ $output == *"network   none"* ]] && [[ $output != *"host port"* ]]
        for url in 'ftp://gate.example' 'gate.example' 'http://:80' 'http://gate.example:99999' ''; do
                ANTHROPIC_BASE_URL=$url run hutch explain claude true
                [ "$status" = 0 ] && [[ $output != *"(ANTHROPIC_BASE_URL)"* ]]
        done
        ANTHROPIC_BASE_URL=https://gate.example run hutch explain --profile claude gemini true # the profile's own variables only
        [[ $output == *"gate.example:443"* ]]
        ANTHROPIC_BASE_URL=https://gate.example run hutch explain codex true
        [[ $output != *"gate.example"* ]]
}

@test "programs of the home come first in an agent's PATH, and mise trusts the workspace" {
        mkdir -p "$HOME/.local/share/mise/shims"
        run hutch --json claude 'echo $PATH; echo $MISE_YES $MISE_TRUSTED_CONFIG_PATHS'
        [[ $(field "$output" .stdout) == "$HOME/.local/bin:$HOME/.local/share/mise/shims:"*$'\n'"1 $PWD" ]]
        run hutch --json --env 'MISE_YES=${HOME}' true # a person's own value is taken as it is
        run hutch --json --env 'X=${HOME}' sh -c 'echo $X'
        [ "$(field "$output" .stdout)" = '${HOME}' ]
}

@test "shell text takes the profile of its first word, and nothing else does" {
        run hutch --json -c "claude 'cat ~/.claude/.credentials.json'; true"
        [ "$(field "$output" .stdout)" = '["token"]' ]
        [[ $(hutch explain -c 'claude x' 2>/dev/null) == *"profile claude"* ]]
        for text in 'echo claude' 'X=1 claude' '"claude" x' 'rm -rf ./claude'; do
                [[ $(hutch explain -c "$text" 2>/dev/null) != *"profile claude"* ]]
        done
}

@test "an agent's own sandbox stands down, unless --allow-nested lets it work" {
        run hutch explain codex exec hi
        [[ $output == *"codex -c 'sandbox_mode=\"danger-full-access\"' exec hi"* ]]
        run hutch explain --allow-nested codex exec hi
        [[ $output == *"codex exec hi"* ]]
        run hutch explain --profile codex other exec hi # arguments are for the profile's own command
        [[ $output == *"other exec hi"* ]]
        run hutch --json gemini 'echo $GEMINI_SANDBOX $GEMINI_CLI_TRUST_WORKSPACE'
        [ "$(field "$output" .stdout)" = "false true" ]
}

@test "a program that the agent wrote to its own directories is no command of the box" {
        mkdir -p "$HOME/.codex/sessions/bin"
        printf '#!/bin/sh\necho evil\n' >"$HOME/.codex/sessions/bin/git-evil"
        chmod +x "$HOME/.codex/sessions/bin/git-evil"
        run -127 hutch --profile codex git-evil
        [[ $output != *evil$'\n'* ]]
        run hutch --profile none --rw "$HOME/.codex/sessions" git-evil # a person's directory is searched
        [ "$status" = 0 ]
}

@test "a box with another home says that the agent is not logged in there" {
        run hutch --json --as user --profile claude true
        [ "$(field "$output" '[.notices[] | select(.code == "profile_not_kept").severity] | first')" = warning ]
        run hutch why --profile claude "$HOME/.claude/settings.json"
        [[ $output == *"the profile keeps it read-only"* ]] && [[ $output != *--rw* ]]
        run hutch why --profile claude "$HOME/.claude.json"
        [[ $output == *"as a copy"* ]] && [[ $output != *--rw* ]]
}
