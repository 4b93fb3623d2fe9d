#!/usr/bin/env bats
# Profiles of agents, with programs that lie where the real ones do.
bats_require_minimum_version 1.5.0
load helper

more_setup() {
        unset XDG_STATE_HOME XDG_CONFIG_HOME
        mkdir -p "$HOME"/.claude/{projects,hooks,plugins} "$HOME"/.codex/sessions "$HOME"/.gemini/history "$HOME/.local/bin" "$HOME/.config/gh"
        echo '{"hooks":{}}' >"$HOME/.claude/settings.json"
        echo '{"mcpServers":{}}' >"$HOME/.claude.json"
        echo token >"$HOME/.claude/.credentials.json"
        echo secret >"$HOME/.config/gh/hosts.yml"
        echo 'model = "x"' >"$HOME/.codex/config.toml"
        echo '{}' >"$HOME/.gemini/settings.json"
        for agent in claude codex gemini; do
                mkdir -p "$HOME/.local/share/$agent/versions"
                printf '#!/bin/sh\neval "$1"\n' >"$HOME/.local/share/$agent/versions/1"
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
        before=$(state)
        run hutch claude 'for f in settings.json settings.local.json CLAUDE.md hooks/x plugins/x agents/x commands/x skills/x statusline.sh shell-snapshots/x; do
                mkdir -p ~/.claude/${f%/*} 2>/dev/null; echo evil >~/.claude/$f; done 2>/dev/null
                echo evil >~/.claude.json; mv ~/.claude/settings.json ~/s; mv ~/.claude ~/c; rm -rf ~/.claude/hooks; echo evil >~/.local/bin/claude; echo evil >~/.local/share/claude/versions/1'
        run hutch codex 'echo evil >~/.codex/config.toml; echo evil >~/.codex/new.toml; mv ~/.codex ~/c'
        run hutch gemini 'echo evil >~/.gemini/settings.json; mkdir ~/.gemini/extensions; echo evil >~/.gemini/extensions/x'
        [ "$(state)" = "$before" ]
        (echo evil >"$HOME/.claude/settings.local.json") # the control: outside it can
        [ "$(state)" != "$before" ]
        hutch claude 'echo s >~/.claude/projects/s; echo new >~/.claude/.credentials.json' 2>/dev/null
        hutch codex 'echo s >~/.codex/sessions/s' 2>/dev/null
        [ "$(cat "$HOME/.claude/projects/s" "$HOME/.claude/.credentials.json" "$HOME/.codex/sessions/s")" = $'s\nnew\ns' ]
}

@test "tokens of gh and keys that nobody passed are out of reach" {
        run hutch claude 'cat ~/.config/gh/hosts.yml ~/.ssh/id_rsa; echo "[$GH_TOKEN][$ANTHROPIC_API_KEY]"'
        [[ $output == *"[][]"* ]] && [[ $output != *secret* ]] && [[ $output != *private* ]]
        GH_TOKEN=t ANTHROPIC_API_KEY=k run hutch claude 'echo "[$GH_TOKEN][$ANTHROPIC_API_KEY]"'
        [[ $output == *"[][k]"* ]]
}
