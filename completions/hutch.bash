# bash completion for hutch. Stands alone; where bash-completion is loaded, the command's own completion is used behind it.

_hutch_options='--dir --same-path --workspace --ro --rw --cow --ephemeral --track --hide --tmpfs --dev --as --net --allow-host --isolation --timeout
        --memory --cpu --cpu-time --pids --disk --output-cap --output-overflow --env --env-block --env-file --allow-degraded --strict
        --allow-nested --box --cmd --stdin --json --result --capture --help --version'
_hutch_shell_options='--shell'
_hutch_start_options='--shell --idle-timeout'
_hutch_session_run_options='--cmd --timeout --output-cap --env --stdin --json --help'
_hutch_stop_options='--discard --help'
_hutch_diff_options='--box --dir --stat --name-only --json --help'
_hutch_apply_options='--box --dir --force --help'
_hutch_discard_options='--box --dir --older-than --help'
_hutch_snapshot_options='--box --dir --session --stop --copy --list --remove --help'
_hutch_restore_options='--box --dir --session --help'
_hutch_fork_options='--box --dir --session --stop --copy --help'
_hutch_export_options='--box --dir --session --help'
_hutch_import_options='--dir --force --max-size --max-entries --help'

# Completes the value of option $1 that begins with $2.
_hutch_value() {
        case $1 in
        --workspace) mapfile -t COMPREPLY < <(compgen -W 'rw ro cow none' -- "$2") ;;
        --as) mapfile -t COMPREPLY < <(compgen -W 'host user root' -- "$2") ;;
        --net) mapfile -t COMPREPLY < <(compgen -W 'deny open loopback allowlist' -- "$2") ;;
        --isolation) mapfile -t COMPREPLY < <(compgen -W 'auto none restricted namespace' -- "$2") ;;
        --output-overflow) mapfile -t COMPREPLY < <(compgen -W 'kill truncate' -- "$2") ;;
        --stdin) mapfile -t COMPREPLY < <(compgen -W 'inherit none' -f -- "$2") ;;
        --env) mapfile -t COMPREPLY < <(compgen -e -- "$2") ;;
        --allow-host) mapfile -t COMPREPLY < <(compgen -A hostname -- "$2") ;;
        --dir | -d | --tmpfs) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
        --dev) mapfile -t COMPREPLY < <(compgen -f -- "${2:-/dev/}") ;;
        --ro | --rw | --cow | --hide | --env-file | --result) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
        --shell) mapfile -t COMPREPLY < <(compgen -W '/bin/bash /bin/sh' -- "$2") ;;
        --box) mapfile -t COMPREPLY < <(compgen -W "$(hutch boxes 2>/dev/null | sed -n '2,$s/ .*//p')" -- "$2") ;;
        --session) mapfile -t COMPREPLY < <(compgen -W "$(hutch session list 2>/dev/null | sed -n '2,$s/ .*//p')" -- "$2") ;;
        --remove) mapfile -t COMPREPLY < <(compgen -W "$(hutch snapshot --list 2>/dev/null | sed -n '2,$s/ .*//p')" -- "$2") ;;
        *) COMPREPLY=() ;; # numbers, durations, shell text
        esac
        [[ $1 == --@(dir|tmpfs|dev|ro|rw|cow|hide|env-file|result|stdin) || $1 == -d ]] && compopt -o filenames 2>/dev/null
        return 0
}

# Behind `hutch session`, whose words so far are the arguments behind $1: the sub-verb, the name, or options, that begin with $1.
_hutch_session() {
        local cur=$1 words=''
        shift
        if [ $# -eq 0 ]; then
                words='start run state reset attach list stop'
        elif [[ $cur == -* ]]; then
                case $1 in
                start)
                        words="${_hutch_options/--box --cmd --stdin --json --result --capture/} $_hutch_start_options"
                        words=${words/--version/}
                        ;;
                run) words=$_hutch_session_run_options ;;
                state) words='--json --help' ;;
                stop) words=$_hutch_stop_options ;;
                *) words='--help' ;;
                esac
        elif [[ $# -eq 1 && $1 == @(run|state|reset|attach|stop) ]]; then
                words=$(hutch session list 2>/dev/null | sed -n '2,$s/ .*//p')
        fi
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

_hutch() {
        local i word verb='' words=() cur=${COMP_WORDS[COMP_CWORD]}

        COMPREPLY=()
        for ((i = 1; i < COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                case $word in
                --)
                        i=$((i + 1))
                        break
                        ;;
                --dir | -d | --workspace | --ro | --rw | --cow | --hide | --tmpfs | --dev | --as | --net | --allow-host | --isolation | \
                        --timeout | --memory | --cpu | --cpu-time | --pids | --disk | --output-cap | --output-overflow | --env | \
                        --env-file | --cmd | -c | --stdin | --result | --box | --older-than | --remove | \
                        --max-size | --max-entries | --session | --shell | --idle-timeout | --env-block)
                        i=$((i + 1))
                        # bash makes words of "=" and ":", so --net=deny is three.
                        if [[ ${COMP_WORDS[i]} == = ]]; then
                                [ $i -eq "$COMP_CWORD" ] && cur=
                                [ $i -lt "$COMP_CWORD" ] && i=$((i + 1))
                        fi
                        if [ $i -eq "$COMP_CWORD" ]; then
                                _hutch_value "$word" "$cur"
                                return
                        fi
                        while [[ ${COMP_WORDS[i + 1]} == [:=]* && $((i + 1)) -le $COMP_CWORD ]]; do
                                [ $((i + 1)) -eq "$COMP_CWORD" ] && return
                                [ $((i + 2)) -eq "$COMP_CWORD" ] && return # a place in the box, or a variable's value
                                i=$((i + 2))
                        done
                        ;;
                -*) ;;
                run | explain | shell | session | doctor | boxes | diff | apply | discard | snapshot | restore | fork | export | import)
                        if [ "$verb" = session ]; then
                                words+=("$word")
                        elif [ -n "$verb" ]; then
                                break
                        else
                                verb=$word
                        fi
                        ;;
                *)
                        [[ $verb == @(session|diff|apply|discard|snapshot|restore|fork|export|import) ]] || break
                        words+=("$word")
                        ;;
                esac
        done
        if [ "$verb" = doctor ]; then
                mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur")
        elif [[ $verb == session && $i -ge $COMP_CWORD && ${COMP_WORDS[COMP_CWORD - 1]} != -- ]]; then
                _hutch_session "$cur" "${words[@]}"
        elif [ "$verb" = shell ]; then
                mapfile -t COMPREPLY < <(compgen -W "${_hutch_options/--box --cmd/} $_hutch_shell_options" -- "$cur")
        elif [[ $verb == @(snapshot|restore|fork) ]]; then
                case $verb in
                snapshot) word=$_hutch_snapshot_options ;;
                restore) word=$_hutch_restore_options ;;
                fork) word=$_hutch_fork_options ;;
                esac
                if [[ $cur == -* ]]; then
                        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
                elif [ "$verb" = restore ]; then
                        _hutch_value --remove "$cur" # a snapshot, too
                fi
        elif [[ $verb == @(boxes|diff|apply|discard|export|import) ]]; then
                case $verb in
                boxes) word='--help' ;;
                diff) word=$_hutch_diff_options ;;
                apply) word=$_hutch_apply_options ;;
                discard) word=$_hutch_discard_options ;;
                export) word=$_hutch_export_options ;;
                import) word=$_hutch_import_options ;;
                esac
                if [[ $cur == -* ]]; then
                        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
                elif [ "$verb" != boxes ]; then
                        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                        compopt -o filenames 2>/dev/null
                fi
        elif [ $i -lt "$COMP_CWORD" ]; then # inside of the command
                if declare -F _command_offset >/dev/null; then
                        _command_offset $i
                else
                        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                        compopt -o filenames 2>/dev/null
                fi
        elif [[ $cur == -* && ${COMP_WORDS[COMP_CWORD - 1]} != -- ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$_hutch_options" -- "$cur")
        elif [[ -z $verb && ${COMP_WORDS[COMP_CWORD - 1]} != -- ]]; then
                mapfile -t COMPREPLY < <(compgen -W 'run explain shell session boxes diff apply discard snapshot restore fork export import doctor' -- "$cur"; compgen -c -- "$cur")
        else
                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        fi
        return 0
}

complete -F _hutch hutch
