# Export and import: a box's changes as a file, and back, also from strangers.
load helper
load cow

# A tree that has one of everything.
everything() {
        mkdir -p opaque/old gone
        echo 1 >opaque/a && echo 2 >gone/b && echo 3 >opaque/old/c
        BEFORE=$(picture)
        cow $'rm -r gone opaque; mkdir opaque; echo new >opaque/n; sed -i s/x/y/ b.txt; ln -s /nowhere link; echo h >hard1; ln hard1 hard2
                truncate -s 3M sparse; printf end >>sparse; printf mid | dd of=sparse bs=1 seek=1048576 conv=notrunc status=none
                python3 -c "import os; os.setxattr(\'b.txt\', \'user.colour\', b\'b\\0lue\')"; mkdir -m 700 deep; echo s >deep/secret; chmod 0 deep/secret; chmod 500 deep
                touch -d "2001-02-03 04:05:06.789" b.txt; echo >$(printf "in\\377valid"); echo >\'new\nline\'; mkfifo fifo; echo >grün; : >empty'
}

@test "export, import elsewhere, diff and apply: the same tree; same bytes twice; nothing left" {
        everything
        cp -a "$T/ws" "$T/other"
        run hutch export "$T/one.tar.zst"
        [ "$status" -eq 0 ] && [[ $output == *"1 left out: FIFOs"* ]] || differs "$output"
        sleep 1
        hutch export --box "$(box)" "$T/two.tar.zst" >/dev/null 2>&1
        cmp "$T/one.tar.zst" "$T/two.tar.zst" || differs "other bytes the second time"
        hutch diff | tail -n +2 >"$T/diff1"
        cd "$T/other"
        run hutch import --force "$T/one.tar.zst"
        [ "$status" -eq 0 ] && [[ $output =~ ^[0-9a-z]{16}$ ]] || differs "$output"
        hutch diff | tail -n +2 >"$T/diff2"
        diff <(grep -v FIFO "$T/diff1") "$T/diff2" || differs "another diff"
        hutch export "$T/three.tar.zst" >/dev/null
        hutch discard
        hutch import --force "$T/three.tar.zst" >/dev/null
        run hutch apply
        [ "$status" -eq 0 ] && [[ $output != *"not applied"* ]] || differs "$output"
        [ "$(cat b.txt)" = $'a\ny\nc' ] && [ ! -e gone ] && [ "$(ls opaque)" = n ] && [ "$(readlink link)" = /nowhere ] || differs "$(find .)"
        [ "$(stat -c %y b.txt)" = "2001-02-03 04:05:06.789000000 $(date -d 2001-02-03 +%z)" ] || differs "$(stat -c %y b.txt)"
        [ "$(stat -c '%s %a' sparse deep | xargs)" = "3145731 $(stat -c %a hard1) $(stat -c %s deep) 500" ] || differs "$(stat -c '%n %s %a' sparse deep)"
        [ "$(stat -c %b sparse)" -lt 100 ] || differs "sparse is not"
        [ "$(head -c 1048579 sparse | tail -c 3)$(tail -c 3 sparse)" = midend ] || differs "sparse has other content"
        python3 -c 'import os; assert os.getxattr("b.txt", "user.colour") == b"b\0lue"' || differs "the attribute"
        [ -e $'in\377valid' ] && [ -e $'new\nline' ] && [ -e grün ] && [ -e empty ] || differs "names: $(ls)"
        [ "$(stat -c %a deep/secret 2>/dev/null || echo 0)" = 0 ] || differs "deep/secret"
        cd "$T/ws"
        untouched
        hutch discard
        traceless
        agree
}

@test "an imported box is held against the host it came to" {
        mkdir "$T/other"
        cp -a . "$T/other/"
        echo other >"$T/other/b.txt"
        cow 'echo more >>b.txt; echo new >n; rm src/main.c'
        hutch export "$T/x.tar.zst" >/dev/null
        hutch discard
        run hutch import -d "$T/other" "$T/x.tar.zst"
        [ "$status" -eq 0 ] || differs "$output"
        reviews 1 "b.txt: the host changed it since" apply -d "$T/other"
        [ -e "$T/other/n" ] && [ ! -e "$T/other/src/main.c" ] && [ "$(cat "$T/other/b.txt")" = other ] || differs "$(ls "$T/other")"
        reviews 0 "1 applied" apply -d "$T/other" --force
        traceless
        agree
}

@test "several directories; one that is not here; shell state travels" {
        mkdir "$T/data"
        echo d >"$T/data/f"
        hutch --workspace cow --cow "$T/data:/srv/d" -c 'echo more >>/srv/d/f; echo new >a.txt' 2>/dev/null
        echo 'cwd=/x' >"$(echo "$STATE"/*)/shell"
        hutch export "$T/x.tar.zst" >/dev/null
        hutch discard
        reviews 125 "--map $T/data=DIR" import "$T/x.tar.zst"
        hutch import --map "$T/data=$T/data" "$T/x.tar.zst" >/dev/null
        [ "$(cat "$STATE"/*/shell)" = cwd=/x ] || differs "shell"
        run hutch diff --name-only
        [ "$output" = "$T/data/f"$'\n'"$T/ws/a.txt" ] || differs "$output"
        hutch discard
        mv "$T/data" "$T/moved"
        reviews 125 "not a directory" import --map "$T/data=$T/data" "$T/x.tar.zst"
        hutch import --map "$T/data=$T/moved" "$T/x.tar.zst" >/dev/null
        run hutch diff --name-only
        [[ $output == *"$T/moved/f"* ]] || differs "$output"
        hutch discard
        traceless
        agree
}

@test "an imported box can be run on" {
        cow 'echo one >n; rm src/main.c'
        hutch export "$T/x.tar.zst" >/dev/null
        hutch discard
        id=$(hutch import "$T/x.tar.zst")
        run hutch run --box "$id" -c 'cat n; ls src; echo two >>n; echo more >m'
        [ "$status" -eq 0 ] && [ "${lines[0]}" = one ] && [[ $output != *main.c* ]] || differs "$output"
        run hutch diff --name-only
        [ "$output" = $'m\nn\nsrc/main.c' ] || differs "$output"
        reviews 0 "3 applied" apply
        [ "$(cat n)" = $'one\ntwo' ] && [ ! -e src/main.c ] || differs "$(cat n)"
        traceless
        agree
}

# make NAME PYTHON: an archive from another hand. `box` is a fitting hutch-box, add() adds an entry.
make() {
        python3 - "$T" "$1" "$2" <<'E'
import io, json, subprocess, sys, tarfile
T, name, text = sys.argv[1:]
out = io.BytesIO()
tar = tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT)
box = json.dumps({"hutch-box": 1, "workspace": T + "/ws", "command": "x", "created": 1, "layers": [{"lower": T + "/ws", "dest": "/w"}]}).encode()
def add(name, data=b"", type=tarfile.REGTYPE, link="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname, info.mode = len(data), type, link, mode
    tar.addfile(info, io.BytesIO(data))
def start(manifest=b""):
    add("hutch-box", box); add("layers/0/manifest", manifest)
U = "layers/0/upper/"
exec(text)
tar.close()
open(f"{T}/{name}", "wb").write(subprocess.run(["zstd", "-qc"], input=out.getvalue(), stdout=subprocess.PIPE, check=True).stdout)
E
}

@test "archives of strangers: each refused with one line, and nothing left" {
        need zstd
        echo secret >"$T/outside"
        hostile() { # hostile TEXT PYTHON
                make bad.tar.zst "$2" || { differs "[$2] was not made"; return; }
                run hutch import --force "$T/bad.tar.zst"
                told 125 "$1"
                [ -z "$(find "$STATE" -mindepth 1 2>/dev/null)" ] || differs "[$2] left: $(find "$STATE" -mindepth 1)"
        }
        each '
                an absolute name | start(); add("/etc/x", b"x")
                leads out | start(); add(U + "../../../x", b"x")
                leads out | start(); add("../x", b"x")
                leads out | start(); add(U + "a/../b", b"x")
                leads out | start(); add(U, b"x")
                a name that leads out, or is none | start(); add(U + "./x", b"x")
                a device, FIFO or socket | start(); add(U + "x", type=tarfile.CHRTYPE)
                a device, FIFO or socket | start(); add(U + "x", type=tarfile.BLKTYPE)
                a device, FIFO or socket | start(); add(U + "x", type=tarfile.FIFOTYPE)
                leads through something that is no directory | start(); add(U + "l", type=tarfile.SYMTYPE, link=T); add(U + "l/outside", b"x")
                leads through something that is no directory | start(b"w l/x\0"); add(U + "l", type=tarfile.SYMTYPE, link=T)
                leads through something that is no directory | start(b"x 757365722e61 62 l\0"); add(U + "l", type=tarfile.SYMTYPE, link=T + "/outside")
                leads through something that is no directory | start(b"o l\0"); add(U + "l", type=tarfile.SYMTYPE, link=T)
                a hard link that leads out | start(); add(U + "x", type=tarfile.LNKTYPE, link=T + "/outside")
                a hard link that leads out | start(); add(U + "x", type=tarfile.LNKTYPE, link="layers/0/upper/../../../meta")
                a hard link that leads out | start(); add(U + "x", type=tarfile.LNKTYPE, link="hutch-box")
                does not have before it | start(); add(U + "x", type=tarfile.LNKTYPE, link=U + "y")
                does not have before it | start(); add(U + "l", type=tarfile.SYMTYPE, link=T + "/outside"); add(U + "x", type=tarfile.LNKTYPE, link=U + "l")
                twice | start(); add(U + "x", b"1"); add(U + "x", b"2")
                twice | start(); add(U + "x", type=tarfile.DIRTYPE); add(U + "x", b"2")
                twice | start(b"w x\0"); add(U + "x", b"1")
                twice | start(); add("layers/0/manifest")
                no directory for it | start(); add(U + "a/b", b"x")
                a set-id bit | start(); add(U + "x", b"x", mode=0o4755)
                a set-id bit | start(); add(U + "x", b"x", mode=0o2755)
                manifest: damaged | start(b"w ../x\0")
                manifest: damaged | start(b"w /x\0")
                manifest: damaged | start(b"w x")
                manifest: damaged | start(b"x 757365722e6f7665726c61792e6f7061717565 79 d\0"); add(U + "d", type=tarfile.DIRTYPE)
                manifest: damaged | start(b"x 74727573746564 79 d\0"); add(U + "d", type=tarfile.DIRTYPE)
                manifest: damaged | start(b"s 10 1 9223372036854775807 9223372036854775807 f\0")
                manifest: damaged | start(b"z x\0")
                not what the manifest says | start(b"s 10 1 2 3 f\0"); add(U + "f", b"1234")
                an archive that | add("other", b"x")
                an archive that | add("hutch-box", b"{}")
                an archive that | add("hutch-box", b"not json")
                an archive that | add("hutch-box", type=tarfile.SYMTYPE, link="x")
                an archive that | add("hutch-box", box)
                an archive that | add("hutch-box", box); add(U + "x", b"x")
                an archive that | start(); add("layers/1/upper/x", b"x")
                an archive that | start(); add("extra", b"x")
                an archive that | pass
                later version | add("hutch-box", box.replace(b"1,", b"9,", 1))' hostile
        [ "$(cat "$T/outside")" = secret ] || differs "outside was written"
        [ -z "$(getfattr -d "$T/outside" 2>/dev/null)" ] || differs "outside has attributes"
        untouched
        agree
}

@test "an archive gives directories no set-id bits, and takes none of the host's" {
        need zstd
        mkdir shared && chmod 2775 shared
        make bits.tar.zst 'start(); d = dict(type=tarfile.DIRTYPE, mode=0o6775); add(U + "new", **d); add(U + "shared", **d); add(U + "shared/new", **d); add(U + "shared/f", b"x")'
        hutch import "$T/bits.tar.zst" >/dev/null
        hutch apply >/dev/null
        [ "$(stat -c %a new shared shared/new)" = $'775\n2775\n2775' ] || differs "$(stat -c %a new shared shared/new)"
        rm -r new shared
        traceless
        agree
}

@test "an archive without a record replaces no empty directory of the host" {
        need zstd
        mkdir empty
        make none.tar.zst 'start(); add(U + "empty", b"x")'
        hutch import "$T/none.tar.zst" >/dev/null
        run hutch apply
        [ "$status" -ne 0 ] && [[ $output == *"empty: the host made a directory of that name since"* ]] && [ -d empty ] || differs "$output"
        hutch discard
        rmdir empty
        traceless
        agree
}

@test "W3a, W3b: an archive chooses no directory of the host" {
        need zstd
        mkdir -p "$HOME/sec"
        echo key >"$HOME/sec/key"
        one() { # one LOWER: the archive's second or only layer
                make bad.tar.zst "import json; b = json.loads(box); b['layers'] = [{'lower': '$1', 'dest': '/w'}]; add('hutch-box', json.dumps(b).encode()); add('layers/0/manifest'); add(U + 'planted', b'x')"
                run hutch import "$T/bad.tar.zst"
                told 125 "--map"
                traceless
        }
        one "$T/ws/.."
        one "$HOME"
        one "$T/ws/src"
        one /etc
        for place in /home /etc/../home /usr/ home/x .. '' /proc /tmp; do
                make bad.tar.zst "import json; b = json.loads(box); b['layers'] = [{'place': '$place'}]; add('hutch-box', json.dumps(b).encode()); add('layers/0/manifest'); add(U + 'planted', b'x')"
                run hutch import "$T/bad.tar.zst"
                told 125 "not an archive that 'hutch export' made"
                traceless
        done
        make bad.tar.zst "import json; b = json.loads(box); b['layers'] = [{'place': 'tmp'}] * 2; add('hutch-box', json.dumps(b).encode()); add('layers/0/manifest'); add('layers/1/manifest')"
        run hutch import "$T/bad.tar.zst"
        told 125 "not an archive"
        make bad.tar.zst "import json; b = json.loads(box); b['layers'] = [{'place': '/usr'}] + b['layers']; add('hutch-box', json.dumps(b).encode()); add('layers/0/manifest'); add('layers/0/upper/bin', type=tarfile.SYMTYPE, link='$HOME'); add('layers/0/upper/bin/x', b'x'); add('layers/1/manifest')"
        run hutch import "$T/bad.tar.zst"
        [ "$status" -eq 125 ] && [ ! -e "$HOME/x" ] || differs "through a link: $output"
        run hutch import --workspace-only "$T/bad.tar.zst"
        [ "$status" -eq 0 ] || differs "left out: $output"
        hutch boxes >/dev/null # it has no changes
        traceless
        make bad.tar.zst "import json; b = json.loads(box); b['layers'] *= 2; add('hutch-box', json.dumps(b).encode()); add('layers/0/manifest'); add('layers/1/manifest')"
        run hutch import "$T/bad.tar.zst"
        told 125 "two directories"
        make bad.tar.zst "import json; b = json.loads(box); b['layers'][0]['lower'] = b['workspace'] = '/nowhere'; add('hutch-box', json.dumps(b).encode()); add('layers/0/manifest'); add(U + 'planted', b'x')"
        hutch import "$T/bad.tar.zst" >/dev/null
        run hutch diff --name-only
        [ "$output" = planted ] || differs "the workspace that was chosen: $output"
        hutch discard
        [ ! -e "$HOME/planted" ] && [ ! -e "$T/planted" ] || differs "planted"
        traceless
        agree
}

@test "an import or an export of a session that is killed leaves no box" {
        need zstd
        local delay boxes=0
        make many.tar.zst 'start(); [add(U + "f%05d" % i, b"x" * 2000) for i in range(20000)]'
        for delay in 0.02 0.05 0.1 0.2 0.4; do
                run timeout -s KILL "$delay" "$HUTCH_BUILD/hutch" import "$T/many.tar.zst"
                [ "$status" -ne 0 ] || boxes=$((boxes + 1))
        done
        run hutch boxes --json
        [ "$(grep -c '"id"' <<<"$output")" -eq "$boxes" ] || differs "$boxes whole ones: $output"
        hutch discard --older-than 0s >/dev/null
        hutch session start killed >/dev/null
        hutch session run killed -c 'head -c 60M /dev/urandom | split -b 20K -a 4'
        for delay in 0.05 0.1 0.2; do
                timeout -s KILL "$delay" "$HUTCH_BUILD/hutch" export --session killed "$T/s.tar.zst" || true
                rm -f "$T/s.tar.zst"
        done
        run find "$T" -maxdepth 1 -name '*.part'
        [ -z "$output" ] || differs "left beside the file: $output"
        run hutch session run killed -c 'ls | wc -l'
        [ "$output" -gt 2000 ] || differs "the session: $output"
        hutch session stop killed --discard
        reviews 0 "no boxes with changes" boxes
        find "$STATE" -mindepth 1 -maxdepth 1 -exec touch -d '1 minute ago' {} +
        hutch boxes >/dev/null
        traceless
        agree
}

@test "W3c: a manifest without records of the host overwrites and deletes nothing" {
        need zstd
        make bad.tar.zst 'start(b"w src/main.c\0o d\0"); add(U + "b.txt", b"theirs"); add(U + "src", type=tarfile.DIRTYPE, mode=0o755); add(U + "d", type=tarfile.DIRTYPE, mode=0o755); add(U + "new", b"x")'
        mkdir d
        echo mine >d/mine
        hutch import "$T/bad.tar.zst" >/dev/null
        run hutch apply
        [ "$status" -eq 1 ] || differs "no conflict: $output"
        [ "$(cat b.txt)" = $'a\nx\nc' ] && [ -e src/main.c ] && [ -e d/mine ] || differs "changed: $output"
        [ "$(cat new)" = x ] || differs "what is new is not applied: $output"
        agree
}

@test "W3d: links out are judged by where they lead" {
        need zstd
        out() { # out PYTHON
                make bad.tar.zst "start(); S = tarfile.SYMTYPE; $1"
                run hutch import "$T/bad.tar.zst"
                told 125 "a link that leads out"
                traceless
        }
        ln -s src/.. hostlink
        out 'add(U + "s", type=S, link="."); add(U + "t", type=S, link="s/../home/.ssh/id_rsa")'
        out 'add(U + "t", type=S, link="s/../home"); add(U + "s", type=S, link=".")'
        out 'add(U + "d", type=tarfile.DIRTYPE, mode=0o755); add(U + "d/s", type=S, link=".."); add(U + "t", type=S, link="d/s/../home")'
        out 'add(U + "t", type=S, link="hostlink/../home")'
        out 'add(U + "t", type=S, link="/etc/passwd")'
        out 'add(U + "t", type=S, link="t")'
        make good.tar.zst 'start(); S = tarfile.SYMTYPE; add(U + "d", type=tarfile.DIRTYPE, mode=0o755); add(U + "d/up", type=S, link="../b.txt"); add(U + "e", type=S, link="d/up"); add(U + "n", type=S, link="none/x")'
        run hutch import "$T/good.tar.zst"
        [ "$status" -eq 0 ] || differs "links inside: $output"
        hutch discard
        agree
}

@test "bombs, cut and foreign files" {
        need zstd
        refused() { # refused TEXT OPTION…
                run hutch import "${@:2}" "$T/bad.tar.zst"
                told 125 "$1"
                traceless
        }
        make bad.tar.zst 'start(); add(U + "zeroes", bytes(64 << 20))'
        [ "$(stat -c %s "$T/bad.tar.zst")" -lt 100000 ] || differs "no bomb"
        refused "more than 33554432 bytes: --max-size allows more" --max-size 32M
        make bad.tar.zst 'start(); [add(U + str(i)) for i in range(200)]'
        refused "more than 100 entries: --max-entries allows more" --max-entries 100
        run hutch import --max-entries 300 "$T/bad.tar.zst"
        [ "$status" -eq 0 ] || differs "$output"
        hutch discard
        make bad.tar.zst 'start(b"".join(b"w %d\0" % i for i in range(200)))'
        refused "more than 100 entries: --max-entries allows more" --max-entries 100
        make whole.tar.zst 'import os; start(); add(U + "f", os.urandom(100000)); add(U + "g", os.urandom(100000))'
        for at in 10 100 1000 50000 150000 199000; do
                head -c $at "$T/whole.tar.zst" >"$T/bad.tar.zst"
                refused ""
        done
        cp "$T/whole.tar.zst" "$T/bad.tar.zst" && printf 'XXXX' | dd of="$T/bad.tar.zst" bs=1 seek=90000 conv=notrunc status=none
        run hutch import "$T/bad.tar.zst" # no checksum in it, so it may be taken; but only whole
        [ "$status" -eq 0 ] || told 125 ""
        hutch discard 2>/dev/null || true
        echo text >"$T/bad.tar.zst"
        refused "damaged, or not an archive"
        : >"$T/bad.tar.zst"
        refused ""
        rm "$T/bad.tar.zst" && mkfifo "$T/bad.tar.zst"
        refused "not a regular file"
        rm "$T/bad.tar.zst"
        refused "does not exist"
        reviews 125 "missing argument: hutch import [OPTIONS] FILE.tar.zst" import
        reviews 125 "unexpected argument 'b' for 'hutch export'" export a b
        cow 'echo >n'
        reviews 125 "cannot write" export "$T/none/x.tar.zst"
        reviews 125 "cannot write" export /dev/full/x
        hutch discard
        [ -z "$(ls "$T" | grep part)" ] || differs "$(ls "$T")"
        agree
}

@test "the helper can open nothing" {
        run "$HUTCH_BUILD/hutch-archive"
        [ "$status" -eq 125 ] || differs "$output"
        command -v strace >/dev/null || skip "strace is needed"
        cow 'echo >n'
        strace -f -o "$T/trace" "$HUTCH_BUILD/hutch" export "$T/x.tar.zst" >/dev/null 2>&1 || skip "strace cannot be used here"
        pid=$(sed -n 's/^\([0-9]*\) .*SECCOMP_MODE_FILTER.*/\1/p' "$T/trace" | tail -1)
        sed -n "/^$pid .*SECCOMP_MODE_FILTER/,\$p" "$T/trace" | grep "^$pid" | grep -E 'open|socket\(|exec|clone|fork' && differs "it tries to"
        hutch discard
        agree
}
