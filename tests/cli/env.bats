# The environment of the box, and that no value ever stands where others can read it.
load helper

@test "the environment is exactly the safe list" {
        out=$(env -i PATH=/usr/bin:/bin HOME="$HOME" TERM=xterm COLORTERM=c NO_COLOR=1 LANG=C.UTF-8 LC_TIME=C LC_X=1 TZ=UTC SECRET=s AWS_SECRET_ACCESS_KEY=s \
                SSH_AUTH_SOCK=/x DISPLAY=:0 XDG_RUNTIME_DIR=/run/user/0 DBUS_SESSION_BUS_ADDRESS=x LD_PRELOAD= HUTCH_X=1 \
                "$HUTCH_BUILD/hutch" env | cut -d= -f1 | grep -v NPM_CONFIG_GLOBALCONFIG | sort | xargs)
        [ "$out" = "COLORTERM HOME LANG LC_TIME LC_X LOGNAME NO_COLOR NPM_CONFIG_PREFIX PATH PIP_BREAK_SYSTEM_PACKAGES SHELL TERM TMPDIR TZ USER XDG_RUNTIME_DIR" ]
        out=$(env -i "$HUTCH_BUILD/hutch" -d "$T/ws" env | cut -d= -f1 | grep -v NPM_CONFIG_GLOBALCONFIG | sort | xargs)
        [ "$out" = "HOME LOGNAME NPM_CONFIG_PREFIX PATH PIP_BREAK_SYSTEM_PACKAGES SHELL TMPDIR USER XDG_RUNTIME_DIR" ]
}

@test "XDG_RUNTIME_DIR is an empty directory of the box's own that nobody else can read" {
        look='[ -O "$XDG_RUNTIME_DIR" ] && stat -c %a "$XDG_RUNTIME_DIR" && ls -A "$XDG_RUNTIME_DIR" && echo x >"$XDG_RUNTIME_DIR/x" && cat "$XDG_RUNTIME_DIR/x"'
        mkdir "$T/run" && echo secret >"$T/run/bus"
        for options in "" "--as user" "--as root" "--isolation landlock" "--isolation bwrap"; do
                hutch $options true 2>/dev/null || continue
                out=$(XDG_RUNTIME_DIR=$T/run hutch $options sh -c "$look") || differs "$options: $out"
                [ "$out" = $'700\nx' ] || differs "$options: $out"
        done
        agree
        [ "$(hutch printenv XDG_RUNTIME_DIR)" = "/run/user/$(id -u)" ]
        [ "$(hutch --env XDG_RUNTIME_DIR=/x printenv XDG_RUNTIME_DIR)" = /x ]
}

@test "PATH holds the caller's directories that the box shows, then the standard ones" {
        out=$(PATH=/usr/bin:$HOME/bin:relative::/bin "$HUTCH_BUILD/hutch" printenv PATH)
        [[ $out == /usr/bin:* ]] && [[ $out != *$HOME* ]] && [[ $out != *relative* ]] && [[ :$out: != *::* ]]
        for dir in /usr/local/bin /usr/bin /bin /usr/sbin; do
                [[ :$out: == *:$dir:* ]]
        done
}

@test "--env sets and passes" {
        export PASSED='a b' EMPTY=
        unset UNSET
        prints "--env A=1               | echo \$A                            | 1
--env A=1 --env A=2                     | echo \$A                            | 2
--env 'A=x=y z'                         | echo \"\$A\"                        | x=y z
--env A=                                | echo [\${A-unset}]                  | []
--env PASSED                            | echo \"\$PASSED\"                   | a b
--env EMPTY                             | echo [\${EMPTY-unset}]              | []
--env UNSET                             | echo [\${UNSET-unset}]              | [unset]
--env TERM=mine                         | echo \$TERM                         | mine
--env HOME=/srv                         | echo \$HOME                         | /srv
--env PATH=/usr/bin                     | echo \$PATH                         | /usr/bin
--env LD_LIBRARY_PATH=/x                | echo \$LD_LIBRARY_PATH              | /x"
        refused "--env ''               | name
--env =value                            | name
--env 'A B=1'                           | A B"
        run hutch --env 'BAD NAME=s3cret' true
        [[ $output != *s3cret* ]]
}

@test "loader and interpreter hooks are not passed, not even by name, and it is told" {
        for name in LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES NODE_OPTIONS NODE_PATH PYTHONHOME PYTHONPATH PYTHONSTARTUP RUBYOPT PERL5LIB \
                PERL5OPT BASH_ENV ENV CDPATH; do
                out=$(env "$name=" "$HUTCH_BUILD/hutch" --json --env $name printenv $name) || true
                [ "$(field "$out" .exit_code)" = 1 ] || differs "$name was passed"
                [[ $(field "$out" '.notices[]|select(.code == "variable_blocked").subject') == *$name* ]] || differs "$name: no notice"
                run env "$name=" "$HUTCH_BUILD/hutch" printenv $name
                [ "$status" -eq 1 ] || differs "$name came by itself"
        done
        agree
}

@test "--env-file" {
        printf '# a comment\n\nA=1\n  B=two words\nC="quoted"\nD=x=y\nPASSED\nE=\r\n\r\nF=last' >env
        export PASSED=p
        prints "--env-file env          | echo \$A/\$B/\$C/\$D/\$PASSED/[\${E-unset}]/\$F    | 1/two words/\\\"quoted\\\"/x=y/p/[]/last
--env-file env --env A=2                | echo \$A                                           | 2
--env A=2 --env-file env                | echo \$A                                           | 1"
        printf 'A=1\n=s3cret\n' >bad1
        printf 'A=1\n\nB C=s3cret\n' >bad2
        printf 'A=\0s3cret' >bad3
        refused "--env-file bad1        | bad1:2
--env-file bad2                         | bad2:3
--env-file bad3                         | bad3
--env-file .                            | .
--env-file none                         | none"
        run hutch --env-file bad1 true
        [[ $output != *s3cret* ]]
        mkdir -p "$HOME" && echo A=home >"$HOME/env"
        prints "--env-file ~/env        | echo \$A            | home"
}

@test "no value stands in an argv that hutch makes, inside or outside" {
        echo TOKEN=s3cret-of-file >"$T/env"
        export PASSED=s3cret-passed
        "$HUTCH_BUILD/hutch" --env-file "$T/env" --env PASSED -c "echo >started; sleep $NAP; echo \$TOKEN" &
        appears started
        run ps -eo args
        kill $! 2>/dev/null
        wait $! || true
        [[ $output == *$NAP* ]] && [[ $output != *s3cret-of-file* ]] && [[ $output != *s3cret-passed* ]]
        # What the person typed is in hutch's own arguments, but the box cannot see it.
        run hutch --env TOKEN=s3cret-typed --ro "$HOME/.ssh:/srv/ssh" -c 'for f in /proc/[0-9]*/cmdline; do tr "\0" " " <$f; done; ps axww'
        [[ $output != *s3cret-typed* ]] && [[ $output != *srv/ssh* ]]
        # Nor what hutch itself was started with.
        export HOST_SECRET=s3cret-host
        run hutch -c 'cat /proc/*/environ 2>/dev/null | tr "\0" "\n"'
        [[ $output != *s3cret-host* ]]
}

@test "proxies, certificates and registries reach a box that has a network, without their secrets" {
        local before
        mkdir -p "$HOME/.config/pip" "$HOME/.cargo" "$T/ca"
        echo CA >"$T/ca/corp.pem"
        printf 'registry=https://npm.example.org/\n//npm.example.org/:_authToken=s3cret\n_password=s3cret\n//x/:key=s3cret\nfund=false\n' >"$HOME/.npmrc"
        printf '[global]\nindex-url = https://u:s3cret@pip.example.org/simple\ntimeout = 9\n' >"$HOME/.config/pip/pip.conf"
        printf '[net]\noffline = true\n[registries.a]\ntoken = "s3cret"\n' >"$HOME/.cargo/config.toml"
        export HTTPS_PROXY=http://proxy.example.org:3128 no_proxy=.example.net NODE_EXTRA_CA_CERTS=$T/ca/corp.pem GOPROXY=https://go.example.org,direct
        export PIP_INDEX_URL=https://u:s3cret@pip.example.org/simple ALL_PROXY=http://127.0.0.1:3128
        all='cat "$NODE_EXTRA_CA_CERTS" ~/.npmrc ~/.config/pip/pip.conf ~/.cargo/config.toml 2>/dev/null; env'
        for options in '--net deny' '--net loopback'; do
                run hutch $options -c "$all"
                [[ $output != *example.org* && $output != *s3cret* ]] || differs "$options: $output"
        done
        run hutch --net open --env-only TERM env
        [[ $output != *PROXY* ]] || differs "--env-only: $output"
        run hutch --net open -c "$all"
        for text in CA registry=https://npm.example.org/ fund=false 'timeout = 9' 'offline = true' HTTPS_PROXY=http://proxy.example.org:3128 \
                no_proxy=.example.net GOPROXY=https://go.example.org,direct ALL_PROXY=http://127.0.0.1:3128; do
                [[ $output == *"$text"* ]] || differs "open: no $text: $output"
        done
        [[ $output != *s3cret* ]] || differs "open: $output"
        [[ $(hutch --net open --json true | jq -r '.notices[] | select(.subject == "PIP_INDEX_URL").text') == *"holds credentials"* ]] || differs notice
        [[ $(hutch --net open --env PIP_INDEX_URL printenv PIP_INDEX_URL) == *s3cret* ]] || differs "by name"
        run hutch --net open --env-block HTTPS_PROXY -c 'echo "[$HTTPS_PROXY]"'
        [ "$output" = "[]" ] || differs "block: $output"
        run hutch --allow-host go.example.org:443 -c "$all"
        [[ $output == *GOPROXY* && $output == *CA* && $output != *HTTPS_PROXY* && $output != *npm.example.org* ]] || differs "list: $output"
        run hutch --allow-host '*.example.org' --allow-host-port 3128 -c "$all"
        [[ $output == *HTTPS_PROXY=http://proxy* && $output == *registry=* && $output == *ALL_PROXY=* && $output != *s3cret* ]] || differs "wide list: $output"
        before=$(cat "$HOME/.npmrc")
        hutch --net open -c 'echo x >~/.npmrc'
        [ "$(cat "$HOME/.npmrc")" = "$before" ]
        agree
}
