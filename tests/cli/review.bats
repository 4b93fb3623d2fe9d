# Reviewing: how changes are chosen, shown and told to programs.
load helper
load cow

@test "with several directories every path says which one it lies in" {
        mkdir "$T/data"
        echo d >"$T/data/b.txt"
        hutch --workspace cow --cow "$T/data:/srv/d" -c 'echo more >>/srv/d/b.txt; echo more >>b.txt' 2>/dev/null
        run hutch diff --name-only
        [ "$output" = "$T/data/b.txt"$'\n'"$T/ws/b.txt" ] || differs "$output"
        run hutch diff --stat
        [[ ${lines[0]} == "box "*": 2 changes by "* ]] && [ "${lines[1]}" = " M $T/data/b.txt (2 -> 7 bytes) +1 -0" ] || differs "$output"
        hutch diff >"$T/patch"
        grep -qx "diff --git a$T/data/b.txt b$T/data/b.txt" "$T/patch" || differs "$(cat "$T/patch")"
        grep -qx -- "+++ b$T/ws/b.txt" "$T/patch" || differs "$(cat "$T/patch")"
        run hutch diff "$T/data"
        [[ $output == *"$T/data/b.txt"* && $output != *ws/b.txt* ]] || differs "$output"
        hutch discard
        traceless
        agree
}

@test "paths as people write them choose the same in diff, apply and discard" {
        mkdir -p src/deep
        ln -s "$T/ws" "$T/link"
        cow 'echo 1 >src/one; echo 2 >src/deep/two; echo 3 >three'
        chosen() { # chosen PATH NAMES
                run hutch diff --name-only -- "$1"
                [ "$(echo $output)" = "$2" ] || differs "[$1] $output"
        }
        each '
                src | src/deep/two src/one
                src/ | src/deep/two src/one
                ./src//deep/../one | src/one
                src/deep/.. | src/deep/two src/one
                src/. | src/deep/two src/one
                ../ws/three | three
                . | src/deep/two src/one three
                ../ws/ | src/deep/two src/one three' chosen
        chosen "$T/ws//src/deep/" src/deep/two
        chosen "$T/link/three" three
        (cd src && run hutch diff -d .. --name-only ../three && [ "$output" = three ]) || differs "from a directory beneath"
        reviews 125 "no changes at 'nosuch'" diff src nosuch
        reviews 125 "no changes at 'sr'" diff sr
        reviews 0 "1 applied" apply ./src/../src/deep/
        [ -e src/deep/two ] && [ ! -e src/one ] || differs "applied: $(find src)"
        reviews 0 "" discard -- "$T/ws/src//one"
        reviews 0 "1 applied" apply -- ../ws/three
        traceless
        agree
}

@test "a name that begins with a dash, behind --" {
        cow 'echo >-f; echo >--stat; echo >other'
        run hutch diff --name-only -- -f --stat
        [ "$output" = $'--stat\n-f' ] || differs "$output"
        reviews 0 "1 applied" apply -- -f
        [ -e ./-f ] && [ ! -e other ] || differs "$(ls)"
        reviews 0 "" discard -- --stat
        run hutch diff --name-only
        [ "$output" = other ] || differs "$output"
        hutch discard
        agree
}

@test "names are quoted as git quotes them, and valid UTF-8 is left alone" {
        cow $'echo >grün; echo >\'a\nb\'; echo >$(printf "\\377x"); echo >$(printf "\\033[31mred"); echo >$(printf "left\\342\\200\\256right")'
        run hutch diff --name-only
        [ "$output" = $'"\\033[31mred"\n"a\\nb"\ngrün\n"left\\342\\200\\256right"\n"\\377x"' ] || differs "$output"
        run hutch diff --stat
        [[ $output == *$' A grün (0 -> 1 bytes)'* ]] || differs "$output"
        hutch discard
        agree
}

@test "links have git's mode" {
        need git
        ln -s old was
        cow 'ln -s target new; rm was'
        run hutch diff
        [[ $output == *"new file mode 120000"* && $output == *"deleted file mode 120000"* && $output != *120777* ]] || differs "$output"
        hutch diff | git apply --check - || differs "git does not take it"
        hutch discard
        agree
}

@test "diff --json: one object a change" {
        printf 'a\0b' >bin
        BEFORE=$(picture)
        cow $'echo new >a.txt; sed -i s/x/y/ b.txt; rm -r src; printf "a\\0c" >bin; mkdir -p .vscode; echo {} >.vscode/tasks.json; ln -s a.txt l; mkfifo p; echo >$(printf "\\377")'
        hutch diff --json >"$T/json"
        python3 - "$T/json" "$T/ws" <<'E' || differs "$(cat "$T/json")"
import json, sys
all = json.load(open(sys.argv[1]))
by = {c["path"] if isinstance(c["path"], str) else "base64": c for c in all}
assert set(by) == {"a.txt", "b.txt", "src", "src/main.c", "bin", ".vscode", ".vscode/tasks.json", "l", "p", "base64"}, by.keys()
for c in all:
    assert list(c) == ["kind", "path", "host_path", "type", "old_mode", "new_mode", "old_size", "new_size", "binary", "protected", "note", "diff"], list(c)
a, b, s = by["a.txt"], by["b.txt"], by["src/main.c"]
assert a["kind"] == "created" and a["host_path"] == sys.argv[2] + "/a.txt" and a["old_mode"] is None and a["old_size"] is None
assert a["new_mode"].startswith("100") and a["new_size"] == 4 and a["diff"].endswith("+new\n") and a["type"] == "file"
assert b["kind"] == "modified" and b["old_size"] == b["new_size"] == 6 and "\n-x\n+y\n" in b["diff"]
assert s["kind"] == "deleted" and s["new_mode"] is None and s["old_size"] == 4
assert by["src"]["type"] == "directory" and by["src"]["diff"] is None
assert by["bin"]["binary"] and by["bin"]["diff"] is None and not a["binary"]
assert by[".vscode/tasks.json"]["protected"] and by[".vscode/tasks.json"]["note"] and not a["protected"] and a["note"] is None
assert by["l"]["type"] == "link" and by["l"]["new_mode"] == "120000" and by["p"]["type"] == "fifo"
assert by["base64"]["path"] == {"base64": "/w=="}
E
        hutch diff --json b.txt src | python3 -c 'import json, sys; assert [c["path"] for c in json.load(sys.stdin)] == ["b.txt", "src", "src/main.c"]' || differs "chosen paths"
        reviews 125 "no changes at 'none'" diff --json none
        hutch discard
        untouched
        agree
}

@test "the result tells the box that keeps the changes" {
        hutch --json --workspace cow -c 'echo >new' >"$T/json"
        id=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["box"])' "$T/json")
        reviews 0 "new" diff --name-only --box "$id"
        hutch discard --box "$id"
        for options in "--workspace cow" "--workspace rw" "--workspace cow --ephemeral"; do
                [[ $options != *ephemeral ]] || memory_layers || continue
                hutch --json $options true | python3 -c 'import json, sys; r = json.load(sys.stdin); assert "box" not in r' || differs "$options"
        done
        agree
}

# at_terminal COMMAND: what a terminal of its own would get.
at_terminal() { script -qec "$1" /dev/null </dev/null | tr -d '\r'; }

@test "JSON holds no character that a terminal obeys" {
        cow 'printf "\302\2332J\177" >"$(printf "n\302\23331m\177")" #'$'\302\233\177'
        for verb in "diff --json" "boxes --json" "--json -c 'printf \"\\302\\2332J\\177\"'"; do
                out=$(eval "hutch $verb")
                ! LC_ALL=C grep -q $'\302[\200-\237]\|\177' <<<"$out" || differs "$verb: $(cat -v <<<"$out")"
                [[ $out == *u009b*u007f* ]] || differs "not escaped: $out"
        done
        [ "$(hutch diff --json | jq -r '.[0].path')" = $'n\302\23331m\177' ] || differs "another name: $(hutch diff --json | cat -v)"
        agree
}

@test "a terminal gets colours and a pager; a pipe and NO_COLOR get neither" {
        need script
        cow $'echo new >a.txt; printf "\\033]0;title\\007\\n" >esc'
        printf '#!/bin/sh\necho begin; cat; echo end\n' >"$T/pager" && chmod +x "$T/pager"
        out=$(TERM=xterm PAGER=$T/pager at_terminal "$HUTCH_BUILD/hutch diff")
        [[ $out == begin*$'\e[32m+new\e[m'*end ]] || differs "$out"
        [[ $out != *$'\e]0'* && $out == *'\x1b]0;title\x07'* ]] || differs "what a terminal obeys: $out"
        out=$(TERM=xterm PAGER=$T/pager NO_COLOR=1 at_terminal "$HUTCH_BUILD/hutch diff")
        [[ $out == begin*$'\n+new'*end && $out != *$'\e'* ]] || differs "NO_COLOR: $out"
        out=$(TERM=dumb PAGER=cat at_terminal "$HUTCH_BUILD/hutch diff")
        [[ $out != *$'\e'* && $out != begin* && $out == *$'\n+new'* ]] || differs "TERM=dumb: $out"
        out=$(TERM=xterm PAGER='false' at_terminal "$HUTCH_BUILD/hutch diff a.txt; echo rc=\$?")
        [[ $out == *rc=* ]] || differs "a pager that reads nothing: $out"
        out=$(PAGER=$T/pager hutch diff)
        [[ $out != begin* && $out != *$'\e[3'* ]] || differs "a pipe: $out"
        hutch discard
        agree
}

@test "--track: the workspace, and further directories that are written directly" {
        mkdir -p "$T/more/sub" "$T/else" sub
        echo old >"$T/more/old"; echo old >"$T/more/sub/gone"; echo one >single
        tracked() { # tracked OPTION… TEXT: created, modified, deleted
                hutch --track --json "${@:1:$#-1}" -c "${@: -1}" | jq -r '.changes | [.created, .modified, .deleted] | map(join(" ")) | join("|")'
        }
        is() { [ "$1" = "$2" ] || differs "'$1', not '$2'"; }
        is "$(tracked --rw "$T/more:/mnt/more" --rw "$T/else" "echo x >w; echo y >/mnt/more/new; echo z >>/mnt/more/old; rm /mnt/more/sub/gone; touch $T/else/e")" \
                "$T/ws/w /mnt/more/new $T/else/e|/mnt/more/old|/mnt/more/sub/gone"
        is "$(tracked --rw "$T/more" true)" "||"
        # Nothing is told twice: a directory in the workspace, a directory around it, the same one again.
        is "$(tracked --rw "$T/ws/sub:/mnt/sub" 'echo x >/mnt/sub/a')" "$T/ws/sub/a||"
        is "$(tracked -d "$T/more/sub" --rw "$T/more" --rw "$T/more:/mnt/more" "echo x >b; echo x >$T/more/c; echo x >/mnt/more/d")" "$T/more/sub/b $T/more/c $T/more/d||"
        is "$(tracked --workspace none --rw "$T/more:/mnt/more" 'echo x >/mnt/more/e')" "/mnt/more/e||"
        is "$(tracked --workspace ro --rw "$T/ws/single:/mnt/single" 'echo x >/mnt/single')" "||"
        run hutch --track --rw "$T/none" true
        told 125 "$T/none"
        agree
}

@test "what reviews can write nowhere but where it must, and reaches no socket" {
        mkdir "$T/bin"
        # git is asked by the review, inside its walls; this one writes down what it can do.
        cat >"$T/bin/git" <<-'END'
		#!/bin/bash
		out=
		for path in "$HOME/stray" "$T/ws/inside" "$HOME/.local/state/hutch/boxes/inside"; do
		        : 2>/dev/null >"$path" && out+=" ${path##*/}"
		done
		{ : 3<>/dev/tcp/127.0.0.1/1; } 2>"$T/ws/socket"
		exec perl -e 'use Socket; use Errno "EPERM"; my $out = $ARGV[0];
		        $out .= " dgram" if socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0);
		        $out .= " stream" if socketpair($a, $b, AF_UNIX, SOCK_STREAM, 0);
		        my $id = shmget(0, 64, 0600);
		        if (defined $id) { $out .= " shm"; shmctl($id, 0, 0) }
		        my $key = "x"; ioctl(STDIN, 0x5412, $key); $out .= " type" if $! != EPERM; # TIOCSTI; it is no terminal
		        open(F, ">", "$ENV{HOME}/.local/state/hutch/boxes/said"); print F "asked:$out\n"; exit 1' "$out"
	END
        chmod +x "$T/bin/git"
        export T
        asked() { PATH=$T/bin:$PATH hutch "$@" >/dev/null 2>&1; cat "$STATE/said"; rm -f "$STATE/said" "$STATE/inside" "$T/ws/inside"; }
        cow 'echo int >>src/main.c'
        run "$T/bin/git" # the control
        [ "$(cat "$STATE/said")" = "asked: stray inside inside dgram stream shm type" ] && rm "$HOME/stray" || differs "control: $(cat "$STATE/said")"
        [[ $(cat socket) == *[Rr]efused* ]] || differs "control: $(cat socket)"
        rm -f socket
        [ "$(asked diff)" = "asked: inside stream" ] || differs "diff: $(asked diff)"
        [ ! -e "$HOME/stray" ] && [ ! -e inside ] && [ ! -e socket ] || differs "written: $(ls "$HOME" .)"
        [ "$(asked apply)" = "asked: inside inside stream" ] || differs "apply"
        [ ! -e "$HOME/stray" ] && [[ $(cat socket) == *"not permitted"* ]] || differs "apply: $(ls "$HOME") $(cat socket)"
        rm -f socket
        agree
}

@test "killed while it removes a box: the box is there or it is not, and nothing is left" {
        command -v strace >/dev/null || skip "strace is needed"
        killed_at() { # killed_at VERB N: before its n-th removal
                cow 'mkdir new; echo >new/a'
                strace -f -qq -o "$T/trace" -e "inject=unlinkat:signal=KILL:when=$2" "$HUTCH_BUILD/hutch" "$1" >/dev/null 2>&1 3>&- &&
                        differs "$1 was not killed at $2"
                run hutch discard --box "$(box)"
                [ "$status" -eq 0 ] || [[ $output == *"no such box: '$(box)'"* ]] || differs "$1 at $2: $output"
                hutch boxes >/dev/null
                traceless
                rm -rf new
        }
        each '
                discard | 1
                discard | 3
                discard | 4
                discard | 5
                discard | 9
                discard | 20
                apply   | 12
                apply   | 13
                apply   | 14
                apply   | 18' killed_at
        agree
}

@test "what a run changed is listed by a process that has confined itself" {
        command -v strace >/dev/null || skip "strace is needed"
        strace -f -qq -o "$T/trace" -e trace=renameat,prctl,landlock_restrict_self "$HUTCH_BUILD/hutch" --workspace cow -c 'echo >new' >/dev/null 2>&1 ||
                skip "strace cannot be used here"
        hutch=$(sed -n 's/^\([0-9]*\) .*/\1/p' "$T/trace" | head -1)
        pid=$(sed -n 's/^\([0-9]*\) .*"base\.new.*/\1/p' "$T/trace")
        [ -n "$pid" ] && [ "$pid" != "$hutch" ] || differs "$pid lists: $(cat "$T/trace")"
        sed "/^$pid .*base\.new/,\$d" "$T/trace" | grep -q "^$pid .*SECCOMP_MODE_FILTER" || differs "it has no filter: $(grep "^$pid" "$T/trace")"
        run hutch diff --name-only
        [ "$output" = new ] || differs "$output"
        hutch discard
        traceless
        agree
}
