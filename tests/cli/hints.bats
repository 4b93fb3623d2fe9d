# Verbs, options, help and hints: what is refused, and what a person is told to type instead.
load helper

@test "U c: help and version for hutch and for each verb" {
        run hutch help
        [ "$status" -eq 0 ] && [[ $output == *"  diff "* ]] && [[ $output == *"--workspace"* ]]
        run hutch version
        [[ $output == hutch\ [0-9]* ]]
        for verb in run shell session boxes diff apply discard snapshot restore fork export import explain doctor; do
                [ "$(hutch help $verb)" = "$(hutch $verb --help)" ] || [ $verb = run ]
                [[ $(hutch help $verb) == "usage: hutch $verb"* ]]
        done
        [[ $(hutch help session run) == "usage: hutch session run"* ]]
        [[ $(hutch diff --help) == *--stat* ]] && [[ $(hutch diff --help) != *--memory* ]]
        run hutch
        [ "$status" -eq 125 ] && [ "${#lines[@]}" -le 10 ]
}

@test "U c: an option of another verb is refused, whichever it is" {
        while IFS=$'\t' read -r kind verb option _; do
                [ "$kind" = option ] || continue
                [[ $(hutch help --tables) == *$'\n'"option"$'\t'"boxes"$'\t'"$option"$'\t'* ]] && continue
                run hutch boxes "--$option=x"
                [ "$status" -eq 125 ] && [ "$output" = "hutch: option '--$option' is not valid for 'hutch boxes'" ] || {
                        echo "$option: $output"
                        return 1
                }
        done < <(hutch help --tables)
        run hutch boxes --capture --stdin nosuch --net open
        [ "$status" -eq 125 ]
        run hutch diff --force
        [ "$output" = "hutch: option '--force' is not valid for 'hutch diff'" ]
}

@test "options may stand before the verb" {
        run hutch --json boxes
        [ "$status" -eq 0 ] && [ "$output" = "[]" ]
        run hutch --force diff
        [ "$status" -eq 125 ]
}

@test "U c: a link on PATH into another directory: the hint names both" {
        mkdir -p "$HOME/bin" "$HOME/lib"
        printf '#!/bin/sh\necho ran\n' >"$HOME/lib/tool"
        chmod +x "$HOME/lib/tool"
        ln -s ../lib/tool "$HOME/bin/tool"
        PATH=$HOME/bin:$PATH run hutch tool
        [ "$status" -eq 127 ] && [[ $output == *"(try: --ro $HOME/bin --ro $HOME/lib)" ]]
        PATH=$HOME/bin:$PATH run hutch --ro "$HOME/bin" --ro "$HOME/lib" tool
        [ "$output" = ran ]
}

@test "U m: JSON of boxes, sessions and snapshots, also when there are none" {
        [ "$(hutch boxes --json)" = "[]" ]
        [ "$(hutch session list --json)" = "[]" ]
        [ "$(hutch snapshot --list --json)" = "[]" ]
        hutch --quiet --workspace cow -c 'echo 1 >new'
        [ "$(hutch boxes --json | jq -r '.[0].changes')" -ge 1 ]
        [ "$(hutch boxes --json | jq -r '.[0].workspace')" = "$PWD" ]
        hutch snapshot 'a "name"' >/dev/null
        [ "$(hutch snapshot --list --json | jq -r '.[0].name')" = 'a "name"' ]
        out=$(hutch session run nosuch --json -- true 2>/dev/null) || true
        [ "$(jq -r .error.code <<<"$out")" != null ] && [ "$(jq .exit_code <<<"$out")" = 125 ]
}

@test "U m: the default session, and a command with options behind the name" {
        hutch session start >/dev/null
        [ "$(hutch session run -c 'echo text')" = text ]
        [ "$(hutch session run -- echo words)" = words ]
        [[ $(hutch session run default ls -la /) == total* ]]
        [ "$(hutch session list --json | jq -r '.[0].name')" = default ]
        hutch session stop
}

@test "U b: a plain run that succeeds prints nothing of hutch's own; explain needs no command" {
        run hutch true
        [ "$status" -eq 0 ] && [ -z "$output" ] || differs "$status: $output"
        # at a terminal: events.bats
        run hutch explain
        [ "$status" -eq 0 ] && [[ $output == *guarantees* ]] || differs "explain: $status: $output"
        agree
}

@test "W4d: --stdin follows no link that an earlier box left" {
        echo secret >"$HOME/secret"
        hutch -c "ln -s $HOME/secret in; mkdir d; ln -s $HOME up"
        for file in in "$PWD/in" up/secret d/../in; do
                run hutch --stdin "$file" cat
                [ "$status" -eq 125 ] && [[ $output != *secret ]] || { echo "$file: $output"; return 1; }
        done
        ln -s secret "$HOME/own"
        [ "$(hutch --stdin "$HOME/own" cat)" = secret ]
}

@test "W4g: directories that other programs keep their sockets in are refused as workspaces and writable paths" {
        for dir in /tmp /var/tmp /run; do
                for how in "-d $dir" "-d $dir --workspace ro" "-d $dir --workspace cow" "--rw $dir" "--cow $dir"; do
                        run hutch $how true
                        [ "$status" -eq 125 ] && [[ $output == *"$dir: refused, "* ]] || { echo "$how: $output"; return 1; }
                done
        done
        mkdir -p "$T/inside"
        run hutch -d "$T/inside" true
        [ "$status" -eq 0 ]
}

@test "B63: patterns pass and block variables; a block beats explicit values and those of a request" {
        export AWS_KEY=a AWS_ID=b OTHER=c
        [ "$(hutch --env 'AWS_*' -c 'echo $AWS_KEY$AWS_ID$OTHER')" = ab ]
        [ "$(hutch --env 'AWS_*' --env-block AWS_KEY -c 'echo $AWS_KEY$AWS_ID')" = b ]
        [ "$(hutch --env AWS_KEY=x --env-block 'AWS_*' -c 'echo .$AWS_KEY')" = . ]
        [ "$(hutch --json --env AWS_KEY=x --env-block 'AWS_*' true | jq -r '.notices|length')" -ge 1 ]
        hutch session start --env-block 'AWS_*' >/dev/null
        [ "$(hutch session run --env AWS_KEY=x -c 'echo .$AWS_KEY')" = . ]
        hutch session stop
}

@test "W4d: --env-file follows no link that an earlier box left" {
        echo SECRET=1 >"$HOME/vars"
        hutch -c "ln -s $HOME/vars vars"
        run hutch --env-file vars env
        [ "$status" -eq 125 ] && [[ $output != *SECRET* ]]
        [[ $(hutch --env-file "$HOME/vars" env) == *SECRET=1* ]]
}
