#!/usr/bin/env bats
# hutch wrap: a command that something else starts, in its own way.
load helper

wrapped() { # wrapped OPTIONS… -- COMMAND…: sets W to the words of the wrapped command
        local line
        line=$(hutch wrap "$@") || return 1
        eval "W=($line)"
}

@test "wrap: streams, arguments and the exit status are the command's own" {
        wrapped -- sh -c 'cat; printf "[%s]" "$@"; echo err >&2; exit 7' sh 'a  b' '' "q'\"" $'new\nline'
        run bash -c 'printf in | "$@" 2>err' bash "${W[@]}"
        [ "$status" -eq 7 ]
        [ "$output" = "in[a  b][][q'\"][new"$'\n'"line]" ]
        [ "$(cat err)" = err ]
}

@test "wrap: the walls of the policy stand" {
        wrapped --workspace ro -- sh -c 'cat "$1/.ssh/id_rsa" || touch made' sh "$HOME"
        run "${W[@]}"
        [ "$status" -ne 0 ]
        [ ! -e made ]
        [[ $output != private* ]]
        run sh -c 'cat "$1/.ssh/id_rsa"' sh "$HOME" # the control
        [ "$output" = private ]
}

@test "wrap: the directory and the environment are those of the start" {
        mkdir -p sub/deeper
        wrapped --env PASSED -- sh -c 'pwd; echo "$PASSED-$UNKNOWN"'
        run env PASSED=yes UNKNOWN=no bash -c 'cd sub/deeper && "$@"' bash "${W[@]}"
        [ "$status" -eq 0 ]
        [ "${lines[0]}" = "$T/ws/sub/deeper" ]
        [ "${lines[1]}" = "yes-" ]
        wrapped --env '*' -- sh -c 'echo "$UNKNOWN"'
        run env UNKNOWN=no "${W[@]}"
        [ "$output" = no ]
}

@test "wrap: no value of a variable is in the arguments, and the request is private and gone after the start" {
        wrapped --env SECRET=hush -- sh -c 'echo "$SECRET"'
        [[ "${W[*]}" != *hush* ]]
        file=${W[3]}
        [ "$(stat -c %a "$file")" = 600 ]
        run "${W[@]}"
        [ "$output" = hush ]
        [ ! -e "$file" ]
        run "${W[@]}"
        [ "$status" -eq 125 ]
        [[ $output == *"(each can be run once)" ]]
}

@test "wrap: a request in a box's reach, of another mode or shape is refused" {
        wrapped -- true
        file=${W[3]}
        cp "$file" mine
        chmod 644 mine
        run hutch run --request mine
        [ "$status" -eq 125 ]
        chmod 600 mine
        truncate -s -1 mine
        run hutch run --request mine
        [ "$status" -eq 125 ]
        [[ $output == *"not a request that this version of hutch wrote" ]]
        ln -s "$file" link
        run hutch run --request link
        [ "$status" -eq 125 ]
        run hutch run --request "$file" --strict
        [ "$status" -eq 125 ]
        [ -e "$file" ]
        rm "$file"
}

@test "wrap: a second wrap and a refused policy are refused, and leave nothing" {
        wrapped -- true
        run hutch wrap -- "${W[@]}"
        [ "$status" -eq 125 ]
        [[ $output == "hutch: the command is wrapped already" ]]
        rm "${W[3]}"
        run hutch wrap --ro /nonexistent -- true
        [ "$status" -eq 125 ]
        run hutch wrap
        [ "$status" -eq 125 ]
        [ -z "$(ls -A "$HOME/.local/state/hutch/requests")" ]
}

@test "wrap: --isolation none leaves the command as it is, --json names the backend" {
        run hutch wrap --isolation none -- echo 'a b'
        [ "$output" = "echo 'a b'" ]
        run hutch wrap --json --isolation namespace -- echo x
        [[ $output == '{"argv":["'*'/hutch","run","--request","'*'"],"backend":"namespace"}' ]]
        rm -f "$HOME"/.local/state/hutch/requests/*
}

@test "wrap: the death of the process that was started ends the box" {
        wrapped -- sh -c "echo up; sleep $NAP"
        coproc "${W[@]}" 2>/dev/null
        pid=$COPROC_PID
        read -r line <&"${COPROC[0]}"
        [ "$line" = up ]
        kill -9 "$pid"
        for _ in $(seq 100); do
                pgrep -f "sleep $NAP" >/dev/null || break
                sleep 0.1
        done
        ! pgrep -f "sleep $NAP"
}
