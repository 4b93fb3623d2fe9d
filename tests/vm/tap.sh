# shellcheck shell=bash disable=SC2034
# For the jobs of this suite: results as TAP, and what hutch said of a run.
count=0 bad=0
hutch=$HUTCH_BUILD/hutch
scratch=$HUTCH_TMP

say() { # say ok|"not ok" WHAT [WHY]
        count=$((count + 1))
        [ "$1" = ok ] || bad=$((bad + 1))
        echo "$1 $count - $2"
        [ "$1" = ok ] || [ -z "${3:-}" ] || sed 's/^/#   /' <<<"$3"
}

check() { # check WHAT COMMAND…: ok if the command succeeds
        local what=$1 told
        shift
        if told=$("$@" 2>&1); then say ok "$what"; else say "not ok" "$what" "${told:-$*}"; fi
}

same() { # same WHAT EXPECTED GOT
        if [ "$2" = "$3" ]; then say ok "$1"; else say "not ok" "$1" "expected $2, got $3${4:+$'\n'$4}"; fi
}

between() { # between WHAT LOW HIGH GOT: whole numbers; a fraction is dropped
        local got=${4%%.*}
        if [[ $got =~ ^[0-9]+$ ]] && [ "$2" -le "$got" ] && [ "$got" -le "$3" ]; then
                say ok "$1 ($got)"
        else
                say "not ok" "$1" "expected $2 to $3, got $4${5:+$'\n'$5}"
        fi
}

# box OPTION… COMMAND: a run under an outer limit of time, with its exit status in $status, the result's fields in got and all of it in
# $result. One jq for all of them: a process costs a lot here.
declare -A got
box() {
        timeout -k 5 300 "$hutch" run --json "$@" >"$scratch/result.json" 2>"$scratch/stderr" </dev/null
        status=$?
        got=([exit_code]='' [kill_reason]='' [killed]='' [cpu_ms]='' [duration_ms]='' [peak]='' [stdout]='' [code]=''
                [memory]='' [cpu]='' [pids]='' [disk]='')
        eval "$(jq -r '{exit_code, kill_reason, killed, cpu_ms, duration_ms, peak: .peak_memory_bytes, stdout, code: .error.code} + .enforced |
                to_entries[] | "got[\(.key)]=\(.value | tostring | @sh)"' "$scratch/result.json" 2>/dev/null)"
        got[stdout]=${got[stdout]%$'\n'}
        result="$(cut -c1-700 "$scratch/result.json"; cat "$scratch/stderr")"
}

finish() {
        echo "1..$count"
        [ $bad -eq 0 ]
        exit
}
