# What a session's plain sh (dash, busybox) begins with. Functions cannot be listed, and last as long as the shell itself.
# `command`: whatever functions a text gave these names.
PS1= PS2=
__hutch_quote() {
        command printf %s "$1" | command sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
}
__hutch_dump() {
        command printf '\0\001D'
        # A value of several lines cannot be cut out of the list. One that cannot be unset would end the subshell, but for `command`.
        (command unset PPID LINENO RANDOM PS1 PS2 PS4 _; set) 2>/dev/null | command grep -v -E '^__hutch_[a-z]*='
        export -p
        alias | command sed 's/^alias //; s/^/alias /'
        command printf 'umask %s\ncd -- %s\n' "$(umask)" "$(__hutch_quote "$PWD")"
        [ -z "${OLDPWD-}" ] || command printf 'OLDPWD=%s\n' "$(__hutch_quote "$OLDPWD")"
        command printf 'set --'
        for __hutch_word; do
                [ "$__hutch_word" ] && command printf ' %s' "$(__hutch_quote "$__hutch_word")" || command printf " ''"
        done
        command printf '\n'
        set +o | command grep -v -E ' (interactive|monitor|stdin|vi|emacs|noexec)$'
        command printf '# end\n\0'
} 2>/dev/null
__hutch_state() {
        local IFS
        unset IFS
        command printf 'cwd\0%s\0umask\0%s\0previous\0%s\0options\0%s\0' "$PWD" "$(umask)" "${OLDPWD-}" "$-"
        for __hutch_word in $(set | command sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
                case $__hutch_word in
                IFS | OPTIND | PPID | PS1 | PS2 | PS4 | LINENO | RANDOM | _ | __hutch_*) continue ;;
                esac
                eval "__hutch_value=\${$__hutch_word-}"
                if export -p | command grep -q "^export $__hutch_word\(=\|\$\)"; then
                        command printf 'exported\0%s\0%s\0' "$__hutch_word" "$__hutch_value"
                else
                        command printf 'variable\0%s\0%s\0' "$__hutch_word" "$__hutch_value"
                fi
        done
        unset __hutch_word __hutch_value
} 2>/dev/null
