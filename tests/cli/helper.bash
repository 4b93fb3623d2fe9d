# What the files share. Each test has a directory of its own, $T, with a workspace $T/ws in it, which is the current directory, and a home of its own,
# $HOME, that lies beside it. HOME holds a key, so that a test can look for it.
#
# Tables are here-documents: a line is a case, its columns are separated by " | ". What differs is collected by `differs` and shown at the end
# by `agree`, so that one bad line does not hide the next.

setup() {
        T=$(mktemp -d "$HUTCH_TMP/cli.XXXXXX")
        export HOME=$T/home
        export XDG_CACHE_HOME=${HUTCH_CACHE:-$HUTCH_TMP/cache} # shared: a skeleton of the system for each test would take its time
        mkdir -p "$T/ws" "$HOME/.ssh"
        echo private >"$HOME/.ssh/id_rsa"
        mkdir -p "$HOME/.local/state/hutch/seen" && : >"$HOME/.local/state/hutch/seen/run" # no first run's words
        cd "$T/ws" || return 1
        DIFFERENCES=
        NAP=7$RANDOM.$BASHPID # for sleep(1): nobody else sleeps as long, and it never ends by itself
        more_setup
}
more_setup() { :; }

teardown() {
        cd /
        chmod -R u+rwX "$T" 2>/dev/null
        rm -rf "$T"
}

hutch() { "$HUTCH_BUILD/hutch" "$@"; }
deny() { "$HUTCH_BUILD/tests/conformance/deny" "$@"; }
am_root() { [ "$(id -u)" = 0 ]; }

differs() { DIFFERENCES+="$*"$'\n'; }
agree() {
        [ -z "$DIFFERENCES" ] || {
                printf '%s' "$DIFFERENCES"
                return 1
        }
}
trim() { local s=$1; s=${s#"${s%%[! ]*}"}; printf '%s' "${s%"${s##*[! ]}"}"; }

# each ROWS FUNCTION: calls FUNCTION with the columns of each line of ROWS.
each() {
        local line column columns
        while IFS= read -r line; do
                [ -n "$line" ] && [ "${line:0:1}" != '#' ] || continue
                columns=()
                [[ $line != *" |" ]] || line+=" "
                while [[ $line == *" | "* ]]; do
                        column=${line%%" | "*}
                        columns+=("$(trim "$column")")
                        line=${line#*" | "}
                done
                columns+=("$(trim "$line")")
                "$2" "${columns[@]}"
        done <<<"$1"
}

# told STATUS TEXT: what `run` saw ended with STATUS, and hutch said one line on it, which holds TEXT.
told() {
        [ "$status" -eq "$1" ] || { differs "status $status, not $1: $output"; return; }
        [ "${#lines[@]}" -eq 1 ] || differs "not one line: $output"
        [[ ${lines[0]-} == "hutch: "*"$2"* ]] || differs "no '$2' in: $output"
}

# refused ROWS: each line is "options | what the one line must name": exit 125, and nothing was run.
refused() {
        one() {
                local words
                eval "words=($1)"
                rm -f ran
                run hutch "${words[@]}" -- touch ran
                local before=$DIFFERENCES
                told 125 "$2"
                [ "$before" = "$DIFFERENCES" ] || DIFFERENCES=$before"[$1] ${DIFFERENCES#"$before"}"
                [ ! -e ran ] || differs "[$1] the command was run"
        }
        each "$1" one
        agree
}

# prints ROWS: each line is "options | shell text for the box | what it prints", newlines as blanks.
prints() {
        one() {
                local words got
                eval "words=($1)"
                got=$(hutch "${words[@]}" -c "$2" 2>&1 | tr '\n' ' ')
                got=$(trim "$got")
                eval "want=\"$3\""
                [ "$got" = "$want" ] || differs "[$1] $2: '$got', not '$want'"
        }
        each "$1" one
        agree
}

# Whether a layer can be kept in memory: tmpfs has the attributes for it from Linux 6.6 on.
memory_layers() { python3 -c 'import os, sys, tempfile; f = tempfile.NamedTemporaryFile(dir="/dev/shm"); os.setxattr(f.name, "user.hutch", b"")' 2>/dev/null; }

in_memory() { ! memory_layers || echo --ephemeral; } # where layers can be
kernel_before() { # kernel_before 6.3
        local have
        have=$(uname -r | cut -d. -f1,2)
        [ "$have" != "$1" ] && [ "$(printf '%s\n' "$have" "$1" | sort -V | head -n 1)" = "$have" ]
}

# jq on a text: field JSON FILTER
field() { jq -r "$2" <<<"$1"; }

need() { # need TOOL…: skips where the box would not find one
        local tool
        for tool; do
                hutch -c "command -v $tool" >/dev/null 2>&1 || skip "needs $tool in the system's directories"
        done
}

# Waits until no process has the text in its arguments; at most 20 s.
gone() {
        local i
        for i in {1..400}; do
                pgrep -f -- "$1" >/dev/null || return 0
                sleep 0.05
        done
        pgrep -af -- "$1"
        kill -9 $(pgrep -f -- "$1") # the test failed, but it leaves nothing behind
        return 1
}
# Waits until the file is there; at most 20 s.
appears() {
        local i
        for i in {1..1000}; do
                [ ! -s "$1" ] || return 0
                sleep 0.02
        done
        return 1
}

expect() { [ "$2" = "$3" ] || differs "$1: '$2', not '$3'"; }
ends() { # ends STATUS COMMAND…
        local want=$1
        shift
        run "$@"
        [ "$status" -eq "$want" ] || differs "[$*] status $status, not $want: $output"
}
