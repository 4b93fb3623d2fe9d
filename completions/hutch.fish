# fish completion for hutch.

# Where the cursor is: prints "options" before the command (with the verb behind it, if there is one), or the command's words.
function __fish_hutch_where
    set -l words (commandline -opc)
    set -l takes_value -d --dir --workspace --ro --rw --cow --hide --tmpfs --dev --as --net --allow-host --isolation --timeout \
        --memory --cpu --cpu-time --pids --disk --output-cap --output-overflow --env --env-file -c --cmd --stdin --result \
        --box --older-than --remove --max-size --max-entries --session --shell --idle-timeout --env-block
    set -l verb ''
    set -l i 2
    while test $i -le (count $words)
        set -l word $words[$i]
        if test "$word" = --
            set i (math $i + 1)
            set verb "$verb --"
            break
        else if contains -- $word $takes_value
            set i (math $i + 2)
            continue
        else if test -z "$verb"; and contains -- $word run explain shell session boxes diff apply discard snapshot restore fork export import doctor
            set verb $word
        else if test "$verb" = session; and contains -- $word start run state reset attach list stop
            set verb "session-$word"
        else if contains -- "$verb" session-run session-state session-reset session-attach session-stop session-start; and not string match -q -- '-*' $word
            set verb "$verb-named"
        else if contains -- "$verb" boxes diff apply discard snapshot restore fork export import # their words are paths
        else if not string match -q -- '-*' $word
            break
        end
        set i (math $i + 1)
    end
    if test $i -le (count $words)
        printf '%s\n' command $words[$i..-1]
    else
        printf '%s\n' options $verb
    end
end

# Whether an option of a box may stand here; with verbs as arguments, whether one of them was named.
function __fish_hutch_at
    set -l where (__fish_hutch_where)
    test $where[1] = options; or return 1
    if string match -q -- '*--' "$where[2]"
        test "$argv[1]" = command
        return
    end
    switch "$argv[1]"
        case options # of one command
            contains -- "$where[2]" '' run explain
        case box # what a box is made of
            contains -- "$where[2]" '' run explain shell session-start session-start-named
        case verb
            test -z "$where[2]"
        case command
            contains -- "$where[2]" '' run explain
        case '*'
            contains -- "$where[2]" $argv
    end
end

# What the command itself completes to.
function __fish_hutch_rest
    set -l where (__fish_hutch_where)
    test $where[1] = command; or return
    complete -C (string join ' ' -- (string escape -- $where[2..-1]) (commandline -ct))
end

function __fish_hutch_snapshots
    string match -q -- '-*' (commandline -ct); and return
    command -q hutch; and hutch snapshot --list 2>/dev/null | string match -rg '^([0-9a-z]+)'
end

function __fish_hutch_commands
    complete -C (commandline -ct | string replace -r '^-.*' '')
end

complete -c hutch -f
complete -c hutch -n '__fish_hutch_at verb' -a run -d 'run a command in a box'
complete -c hutch -n '__fish_hutch_at verb' -a explain -d 'show the plan, run nothing'
complete -c hutch -n '__fish_hutch_at verb' -a shell -d 'an interactive shell in a box'
complete -c hutch -n '__fish_hutch_at verb' -a session -d 'a shell that stays'
complete -c hutch -n '__fish_hutch_at verb' -a boxes -d 'list boxes that wait for review'
complete -c hutch -n '__fish_hutch_at verb' -a diff -d 'show what a box changed'
complete -c hutch -n '__fish_hutch_at verb' -a apply -d 'take changes to the host'
complete -c hutch -n '__fish_hutch_at verb' -a discard -d 'drop changes'
complete -c hutch -n '__fish_hutch_at verb' -a snapshot -d 'keep the state of a box'
complete -c hutch -n '__fish_hutch_at verb' -a restore -d 'go back to a snapshot'
complete -c hutch -n '__fish_hutch_at verb' -a fork -d 'branch another box off'
complete -c hutch -n '__fish_hutch_at verb' -a export -d 'write a box to a file'
complete -c hutch -n '__fish_hutch_at verb' -a import -d 'read a box from a file'
complete -c hutch -n '__fish_hutch_at verb' -a doctor -d 'what this host can enforce'
complete -c hutch -n '__fish_hutch_at command' -a '(__fish_hutch_commands)'
complete -c hutch -n 'not __fish_hutch_at options' -a '(__fish_hutch_rest)'
complete -c hutch -n '__fish_hutch_at doctor' -l json -d 'print for programs'
complete -c hutch -n '__fish_hutch_at doctor' -s h -l help -d 'show the options'
complete -c hutch -n '__fish_hutch_at diff apply discard export import' -F
complete -c hutch -n '__fish_hutch_at diff apply discard snapshot restore fork export' -l box -x -a "(hutch boxes 2>/dev/null | string match -rg '^([0-9a-z]+)')" -d 'which box'
complete -c hutch -n '__fish_hutch_at diff apply discard snapshot restore fork export' -s d -l dir -x -a '(__fish_complete_directories)' -d 'the newest box of this folder'
complete -c hutch -n '__fish_hutch_at diff' -l stat -d 'one line a change'
complete -c hutch -n '__fish_hutch_at diff' -l name-only -d 'paths alone'
complete -c hutch -n '__fish_hutch_at diff' -l json -d 'print for programs'
complete -c hutch -n '__fish_hutch_at import' -l force -d 'also links that lead out'
complete -c hutch -n '__fish_hutch_at apply' -l force -d 'also protected names and files that the host changed since'
complete -c hutch -n '__fish_hutch_at discard' -l older-than -x -d 'all boxes older than this'
complete -c hutch -n '__fish_hutch_at snapshot restore fork export' -l session -x -a "(hutch session list 2>/dev/null | tail -n +2 | string match -rg '^(\S+)')" -d 'of a session'
complete -c hutch -n '__fish_hutch_at snapshot fork' -l stop -d 'end what runs beside its shell first'
complete -c hutch -n '__fish_hutch_at snapshot fork' -l copy -d 'copy its files while what runs stands still'
complete -c hutch -n '__fish_hutch_at import' -s d -l dir -x -a '(__fish_complete_directories)' -d 'whose changes they are to be'
complete -c hutch -n '__fish_hutch_at import' -l max-size -x -d 'at most so much'
complete -c hutch -n '__fish_hutch_at import' -l max-entries -x -d 'at most so many files'
complete -c hutch -n '__fish_hutch_at snapshot' -l list -d 'list all of them'
complete -c hutch -n '__fish_hutch_at snapshot' -l remove -x -a "(hutch snapshot --list 2>/dev/null | string match -rg '^([0-9a-z]+)')" -d 'remove one'
complete -c hutch -n '__fish_hutch_at restore' -a '(__fish_hutch_snapshots)' -d snapshot
complete -c hutch -n '__fish_hutch_at boxes diff apply discard snapshot restore fork export import' -s h -l help -d 'show the options'

set -l run '__fish_hutch_at session-run session-run-named'
complete -c hutch -n '__fish_hutch_at session' -a start -d 'start a session'
complete -c hutch -n '__fish_hutch_at session' -a run -d 'run a command in it'
complete -c hutch -n '__fish_hutch_at session' -a state -d 'show what its shell remembers'
complete -c hutch -n '__fish_hutch_at session' -a reset -d 'back to how it was started'
complete -c hutch -n '__fish_hutch_at session' -a attach -d 'sit down at it'
complete -c hutch -n '__fish_hutch_at session' -a list -d 'show those that there are'
complete -c hutch -n '__fish_hutch_at session' -a stop -d 'end it'
complete -c hutch -n '__fish_hutch_at session-run session-state session-reset session-attach session-stop' -a "(hutch session list 2>/dev/null | tail -n +2 | string match -rg '^(\S+)')"
complete -c hutch -n '__fish_hutch_at shell session-start session-start-named' -l shell -x -a '/bin/bash /bin/sh' -d 'which shell'
complete -c hutch -n '__fish_hutch_at session-start session-start-named' -l idle-timeout -x -d 'end it when nobody used it for so long'
complete -c hutch -n "$run" -s c -l cmd -x -d 'run shell text'
complete -c hutch -n "$run" -l timeout -x -d 'end the command after this time'
complete -c hutch -n "$run" -l output-cap -x -d 'limit stdout and stderr together'
complete -c hutch -n "$run" -l env -x -d 'set a variable for this run'
complete -c hutch -n "$run" -l json -d 'print one result object'
complete -c hutch -n "$run; or __fish_hutch_at shell" -l stdin -r -F -a 'inherit none' -d 'where standard input comes from'
complete -c hutch -n '__fish_hutch_at shell session-state session-state-named' -l json -d 'print for programs'
complete -c hutch -n '__fish_hutch_at shell' -l result -r -F -d 'write the result object there'
complete -c hutch -n '__fish_hutch_at shell' -l capture -d 'print stdout at the end, in one piece'
complete -c hutch -n '__fish_hutch_at shell' -s V -l version -d 'show the version'
complete -c hutch -n '__fish_hutch_at session-stop session-stop-named' -l discard -d 'drop what it changed'
for verb in shell session session-{start,run,state,reset,attach,stop}{,-named} session-list
    complete -c hutch -n "__fish_hutch_at $verb" -s h -l help -d 'show the options'
end

set -l at __fish_hutch_at options
set -l box __fish_hutch_at box
complete -c hutch -n "$box" -s d -l dir -x -a '(__fish_complete_directories)' -d 'the workspace'
complete -c hutch -n "$box" -l same-path -d "start in the workspace's host path"
complete -c hutch -n "$box" -l workspace -x -a 'rw ro cow none' -d 'how the workspace is attached'
complete -c hutch -n "$box" -l ro -r -F -d 'attach a further path read-only'
complete -c hutch -n "$box" -l rw -r -F -d 'attach a further path read-write'
complete -c hutch -n "$box" -l cow -r -F -d 'attach a further path copy-on-write'
complete -c hutch -n "$box" -l track -d 'tell what a run changed in a workspace that it writes directly'
complete -c hutch -n "$box" -l ephemeral -d 'keep copy-on-write changes in memory, gone with the box'
complete -c hutch -n "$box" -l hide -r -F -d 'mask a path'
complete -c hutch -n "$box" -l tmpfs -x -a '(__fish_complete_directories)' -d 'put an empty writable folder there'
complete -c hutch -n "$box" -l dev -r -F -d 'attach a device node'
complete -c hutch -n "$box" -l as -x -a 'host user root' -d 'identity inside the box'
complete -c hutch -n "$box" -l net -x -a 'deny open loopback allowlist' -d 'the network policy'
complete -c hutch -n "$box" -l allow-host -x -a '(__fish_print_hostnames)' -d 'allow one host'
complete -c hutch -n "$box" -l isolation -x -a 'auto none restricted namespace' -d 'the backend'
complete -c hutch -n "$box" -l timeout -x -d 'end the box after this time'
complete -c hutch -n "$box" -l memory -x -d 'limit the memory'
complete -c hutch -n "$box" -l cpu -x -d 'limit the processor share, of one core'
complete -c hutch -n "$box" -l cpu-time -x -d 'limit the processor time'
complete -c hutch -n "$box" -l pids -x -d 'limit the number of processes'
complete -c hutch -n "$box" -l disk -x -d "limit what the box's own places hold"
complete -c hutch -n "$box" -l output-cap -x -d 'limit stdout and stderr together'
complete -c hutch -n "$box" -l output-overflow -x -a 'kill truncate' -d 'what happens at the cap'
complete -c hutch -n "$box" -l env -x -a '(set -nx)' -d "set a variable, or pass the caller's"
complete -c hutch -n "$box" -l env-block -x -a '(set -nx)' -d 'never pass a variable'
complete -c hutch -n "$box" -l env-file -r -F -d 'set the variables of a file'
complete -c hutch -n "$box" -l allow-degraded -d 'accept less where it cannot be enforced'
complete -c hutch -n "$box" -l strict -d 'refuse where anything would be degraded'
complete -c hutch -n "$box" -l allow-nested -d 'let the box make namespaces and mounts'
complete -c hutch -n "$at" -l box -x -a "(hutch boxes 2>/dev/null | string match -rg '^([0-9a-z]+)')" -d 'go on in a box that was kept'
complete -c hutch -n "$at" -s c -l cmd -x -d 'run shell text'
complete -c hutch -n "$at" -l stdin -r -F -a 'inherit none' -d 'where standard input comes from'
complete -c hutch -n "$at" -l json -d 'print one result object'
complete -c hutch -n "$at" -l result -r -F -d 'write the result object there'
complete -c hutch -n "$at" -l capture -d 'print stdout at the end, in one piece'
complete -c hutch -n "$at" -s h -l help -d 'show the options'
complete -c hutch -n "$at" -s V -l version -d 'show the version'
