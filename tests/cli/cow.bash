# What the tests of copy-on-write and its review share.
more_setup() {
        unset XDG_STATE_HOME
        STATE=$HOME/.local/state/hutch/boxes
        mkdir src
        echo int >src/main.c
        printf 'a\nx\nc\n' >b.txt
        BEFORE=$(picture)
}

# The workspace as text: every name with type, mode, times and content.
picture() { find . -mindepth 1 -printf '%p %y %m %s %T@ %l\n' | sort; find . -type f -readable -exec sha256sum {} + | sort; }
untouched() { [ "$(picture)" = "$BEFORE" ] || differs "the workspace is not as it was: $(picture)"; }
# Nothing is left in the state directory, but for what was shown once at a terminal (the VM has one).
left_behind() { find "$STATE" -mindepth 1 -not -path "$STATE/seen" -not -path "$STATE/seen/*" 2>/dev/null; }
traceless() { [ -z "$(left_behind)" ] || differs "left in the state: $(left_behind)"; }
cow() { hutch --workspace cow -c "$1" 2>"$T/said" || differs "the box ended with $?: $(cat "$T/said")"; }
# The id that the last cow told.
box() { sed -n 's/.*hutch: kept .* in box \([^ ]*\) .*/\1/p' "$T/said"; }
# reviews STATUS TEXT WORD…: hutch WORD… ends with STATUS and prints TEXT, among other things.
reviews() {
        local want=$1 text=$2
        shift 2
        run hutch "$@"
        [ "$status" -eq "$want" ] || differs "[$*] status $status, not $want: $output"
        [[ $output == *"$text"* ]] || differs "[$*] no '$text' in: $output"
}
