# What a session's bash begins with: how to report its state, and how to end a command's text without ending the shell.
# The functions named exit and trap replace the builtins of that name in the session's shell, not in subshells.
# __hutch_channel is the directory of the session's texts and FIFOs.
PS1= PS2=
builtin unset MAILCHECK # or it reports new mail, on stdout
set +o history
set -m
shopt -s execfail # as in any interactive shell: it does not count as one while it reads a text from a file
__hutch_on_exit=
builtin declare -A __hutch_traps
__hutch_dump() {
        builtin printf '\0\001Dbuiltin shopt -s extglob\n' # functions may have been written with it
        builtin declare -p
        builtin printf 'builtin unset -f trap\n'
        builtin trap -p
        builtin printf %s "${__hutch_traps[@]}"
        builtin declare -f
        builtin declare -F
        builtin alias -p
        builtin umask -p
        builtin printf 'set --'
        (($#)) && builtin printf ' %q' "$@"
        builtin printf '\nbuiltin cd -- %q\n' "$PWD"
        [[ ${OLDPWD-} ]] && builtin printf 'OLDPWD=%q\n' "$OLDPWD"
        builtin shopt -p
        builtin set +o
        builtin enable -n
        builtin printf '# end\n\0'
}
# While a text runs the descriptor of the answers is closed, and stays closed for a shell that exits: their FIFO has a name.
__hutch_bye() {
        if [[ ${__hutch_on_exit-} ]]; then
                builtin eval "$__hutch_on_exit" || :
                __hutch_on_exit=
        fi
        if { : >&198; } 2>/dev/null; then
                __hutch_dump "$@" >&198 2>/dev/null || :
        else
                __hutch_dump "$@" >"$__hutch_channel/answers" 2>/dev/null || :
        fi
}
exit() {
        __hutch_ret=${1-$?}
        if [[ $BASHPID != "$$" || ${__hutch_leaving-} || $# -gt 1 || ! ${__hutch_ret#-} || ${__hutch_ret#-} == *[!0-9]* || $(builtin trap -p INT) ]]; then
                builtin unset __hutch_ret
                builtin exit "$@"
        fi
        __hutch_ret=$((__hutch_ret & 255))
        if [[ ${__hutch_on_exit-} ]]; then
                __hutch_leaving=1
                builtin eval "$__hutch_on_exit"
                __hutch_leaving= __hutch_on_exit=
        fi
        builtin kill -INT "$$"
}
trap() {
        if [[ $BASHPID != "$$" ]]; then
                builtin trap "$@"
                return
        fi
        if [[ ${*: -1} == DEBUG && $1 != -p ]]; then # nothing may follow: it would be traced
                [[ $1 == - || $# -eq 1 ]] && builtin set -- : DEBUG
                builtin trap "$@"
        else
                __hutch_trap "$@"
        fi
}
__hutch_trap() {
        builtin trap "${__hutch_on_exit:--}" EXIT
        builtin trap "$@"
        __hutch_status=$?
        # Functions do not see these, and bring them back at their end where they leave none.
        for __hutch_name in "${@^^}"; do
                [[ $__hutch_name == @(ERR|RETURN) ]] || continue
                if [[ $1 == -p ]]; then
                        builtin printf %s "${__hutch_traps[$__hutch_name]-}"
                elif [[ $1 == - || $# -eq 1 ]]; then
                        builtin trap : "$__hutch_name"
                        builtin unset "__hutch_traps[$__hutch_name]"
                else
                        __hutch_traps[$__hutch_name]=$(builtin trap -p "$__hutch_name")$'\n'
                fi
        done
        [[ $# -eq 0 || $* == -p ]] && builtin printf %s "${__hutch_traps[@]}"
        __hutch_on_exit=$(builtin trap -p EXIT)
        builtin eval "set -- ${__hutch_on_exit#trap -- }"
        __hutch_on_exit=${1-}
        builtin trap '__hutch_bye "$@"' EXIT
        return "$__hutch_status"
}
__hutch_state() {
        builtin printf 'cwd\0%s\0' "$PWD"
        builtin printf 'umask\0%s\0' "$(builtin umask)"
        builtin printf 'previous\0%s\0' "${OLDPWD-}"
        builtin printf 'options\0%s\0' "$-"
        builtin local __hutch_name IFS=$'\n'
        for __hutch_name in $(builtin compgen -v); do
                case $__hutch_name in
                BASH | BASH_* | BASHOPTS | BASHPID | COMP_WORDBREAKS | DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HIST* | HOSTTYPE | IFS | LINENO | \
                        MACHTYPE | MAILCHECK | OPTERR | OPTIND | OSTYPE | PIPESTATUS | PPID | PS[124] | RANDOM | SECONDS | SHELLOPTS | SRANDOM | UID | _ | \
                        __hutch_*) ;;
                *)
                        builtin local -n __hutch_ref=$__hutch_name
                        case ${__hutch_ref@a} in
                        *[aA]*) builtin printf 'array\0%s\0%s\0' "$__hutch_name" "$(builtin declare -p "$__hutch_name")" ;;
                        *x*) builtin printf 'exported\0%s\0%s\0' "$__hutch_name" "$__hutch_ref" ;;
                        *) builtin printf 'variable\0%s\0%s\0' "$__hutch_name" "$__hutch_ref" ;;
                        esac
                        builtin unset -n __hutch_ref
                        ;;
                esac
        done
        for __hutch_name in $(builtin compgen -A function); do
                case $__hutch_name in
                __hutch_* | exit | trap) ;;
                *) builtin printf 'function\0%s\0%s\0' "$__hutch_name" "$(builtin declare -f "$__hutch_name")" ;;
                esac
        done
        for __hutch_name in "${!BASH_ALIASES[@]}"; do
                builtin printf 'alias\0%s\0%s\0' "$__hutch_name" "${BASH_ALIASES[$__hutch_name]}"
        done
        while IFS= builtin read -r __hutch_name; do
                [[ $__hutch_name ]] && builtin printf 'job\0%s\0' "$__hutch_name"
        done <<<"$(builtin jobs -l)"
} 2>/dev/null
builtin trap '__hutch_bye "$@"' EXIT
builtin history -c
