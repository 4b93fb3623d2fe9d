# What attacks found in named sessions of 0.1.0, each with its number.
load helper

more_setup() { unset XDG_STATE_HOME; }
eval "$(declare -f teardown | sed '1s/teardown/tidy/')"
teardown() {
        local name
        for name in $(hutch session list 2>/dev/null | sed '1d; s/ .*//'); do
                hutch session stop "$name" --discard
        done
        tidy
}
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }

@test "W5b: a thousand connections without a proof neither spin the warden nor keep others out" {
        hutch session start flood >/dev/null
        local warden before
        warden=$(hutch session list | awk '$1 == "flood" {print $3}')
        perl -e 'use Socket; my @s; chdir $ARGV[0] or die;
                for (1..1000) { socket(my $s, PF_UNIX, SOCK_SEQPACKET, 0) or last; connect($s, pack_sockaddr_un("socket")); push @s, $s }
                sleep 6' "$HOME/.local/state/hutch/sessions/flood" 3>&- &
        sleep 1
        before=$(ticks "$warden")
        sleep 1
        [ $(($(ticks "$warden") - before)) -lt 30 ]
        run timeout 10 "$HUTCH_BUILD/hutch" session run flood -c 'echo on'
        [ "$output" = on ]
        kill $!
}

@test "W5h: a session where the state directory's path has a symbolic link in it" {
        mkdir -p "$HOME/real"
        ln -s real "$HOME/link"
        export XDG_STATE_HOME=$HOME/link/state
        hutch session start linked >/dev/null
        run hutch session run linked -c 'echo a > f; cat f'
        [ "$output" = a ]
        hutch session stop linked --discard
}

@test "W5f: a snapshot, restore or fork that is interrupted at any moment loses no session" {
        local ms id
        hutch session start kept >/dev/null
        hutch session run kept -c 'x=here; echo a > f'
        id=$(hutch snapshot --session kept)
        answers() { [ "$(hutch session run kept -c 'echo $x; cat f' 2>/dev/null)" = "here
a" ]; }
        for ms in 4 8 12 16 20 30; do
                timeout -s INT "0.0$(printf %02d $ms)" "$HUTCH_BUILD/hutch" snapshot --session kept >/dev/null || true
                timeout -s TERM "0.0$(printf %02d $ms)" "$HUTCH_BUILD/hutch" restore --session kept "$id" >/dev/null || true
                for _ in {1..100}; do
                        answers && break
                        sleep 0.1
                done
                answers
        done
}
