# Package managers in a box: they work without root, write to the box only, and their databases agree.
load helper

more_setup() {
        unset XDG_STATE_HOME
        export XDG_CACHE_HOME=$HUTCH_TMP/cache
        mkdir -p "$XDG_CACHE_HOME"
        host >"$T/before"
}

# What installing would change on the host.
host() {
        cat /var/lib/dpkg/status /etc/passwd /etc/group 2>/dev/null || :
        find /usr/bin /usr/sbin /usr/local/bin /usr/local/lib /usr/lib/python3/dist-packages /usr/local/lib/python3*/dist-packages /usr/lib/node_modules \
                /usr/local/lib/node_modules /etc /etc/apt /var/lib/apt /var/lib/apt/lists /var/lib/dpkg /var/lib/dpkg/info /var/cache/apt \
                -maxdepth 1 \( -type d -printf '%p %M %U:%G\n' -o -printf '%p %M %U:%G %s %T+ %l\n' \) 2>/dev/null || :
        find "$HOME" -mindepth 1 -path "$HOME/.local" -prune -o -mindepth 1 -printf '%p %m %s\n'
        find "$HOME/.local" -mindepth 1 -name state -prune -o -mindepth 1 -print 2>/dev/null || :
}
untouched() { host | diff "$T/before" - >"$T/changed" || differs "the host is not as it was: $(cat "$T/changed")"; }

# deb NAME VERSION [FIELDS]: a package of the directory NAME, which may have a DEBIAN directory.
deb() {
        mkdir -p "$1/DEBIAN"
        printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Nobody <nobody@localhost>\nDescription: a test\n%s' "$1" "$2" "${3:-}" >"$1/DEBIAN/control"
        dpkg-deb --root-owner-group -b "$1" "$1_$2.deb" >/dev/null
}
wheel() { # wheel NAME VERSION REQUIRES
        python3 - "$@" <<'EOF'
import sys, zipfile
name, version, requires = sys.argv[1:]
info = f"{name}-{version}.dist-info"
with zipfile.ZipFile(f"{name}-{version}-py3-none-any.whl", "w") as z:
    z.writestr(f"{name}/__init__.py", f"def main():\n    print('{name} {version}')\n")
    z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (f"Requires-Dist: {requires}\n" if requires else ""))
    z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name}={name}:main\n")
    z.writestr(f"{info}/RECORD", "")
EOF
}
debian() { command -v dpkg-deb >/dev/null && [ -e /var/lib/dpkg/status ] || skip "needs a Debian"; }
in_box() { run hutch --cow / --as user -c "$1"; [ "$status" -eq 0 ] || differs "status $status: $output"; }

@test "dpkg: install, upgrade, depend, remove; scripts that are root's business; the database agrees" {
        debian
        mkdir -p hutch-a/usr/bin hutch-a/etc hutch-a/usr/share/hutch-a
        printf '#!/bin/sh\necho one\n' >hutch-a/usr/bin/hutch-a
        chmod 4755 hutch-a/usr/bin/hutch-a
        ln hutch-a/usr/bin/hutch-a hutch-a/usr/bin/hutch-a2
        mkdir hutch-a/usr/share/hutch-a/shared && chmod 2775 hutch-a/usr/share/hutch-a/shared
        echo conf >hutch-a/etc/hutch-a.conf
        mkdir -p hutch-a/DEBIAN
        echo /etc/hutch-a.conf >hutch-a/DEBIAN/conffiles
        cat >hutch-a/DEBIAN/postinst <<'EOF'
#!/bin/sh
set -e
[ "$(id -u)" = 0 ]
getent group hutchers >/dev/null || groupadd --system hutchers
getent passwd hutcher >/dev/null || useradd --system -g hutchers -d /nonexistent hutcher
chown hutcher:hutchers /etc/hutch-a.conf
chmod 4750 /usr/bin/hutch-a2
install -d -o hutcher -m 2750 /var/lib/hutch-a
mkfifo /var/lib/hutch-a/pipe
mknod /var/lib/hutch-a/null c 1 3
su -s /bin/sh hutcher -c true
ldconfig
EOF
        chmod 755 hutch-a/DEBIAN/postinst
        deb hutch-a 1.0
        mkdir -p hutch-b/usr/bin
        printf '#!/bin/sh\nhutch-a\n' >hutch-b/usr/bin/hutch-b
        chmod 755 hutch-b/usr/bin/hutch-b
        deb hutch-b 1.0 $'Depends: hutch-a (>= 2)\n'
        printf '#!/bin/sh\necho two\n' >hutch-a/usr/bin/hutch-a
        rm -r hutch-a/usr/share/hutch-a
        sed -i '/mkfifo/d' hutch-a/DEBIAN/postinst
        deb hutch-a 2.0
        in_box 'set -e; exec 2>&1
                dpkg -i hutch-a_1.0.deb >/tmp/log || { cat /tmp/log; exit 1; }
                hutch-a; hutch-a2; [ -p /var/lib/hutch-a/pipe ]; getent passwd hutcher | cut -d: -f1
                stat -c %a /usr/bin/hutch-a /usr/share/hutch-a/shared
                if dpkg -i hutch-b_1.0.deb >/tmp/log; then echo "b without a"; fi
                dpkg -i hutch-a_2.0.deb >/tmp/log || { cat /tmp/log; exit 1; }
                dpkg --configure -a >/tmp/log || { cat /tmp/log; exit 1; }
                hutch-b; dpkg-query -W -f "\${Package} \${Version} \${db:Status-Abbrev}\n" hutch-a hutch-b
                dpkg -V hutch-a; dpkg --audit
                dpkg -r hutch-b >/tmp/log; dpkg -P hutch-a >/tmp/log; [ ! -e /usr/bin/hutch-a ] && [ ! -e /etc/hutch-a.conf ] && echo gone'
        [ "$(grep -v -e '^dpkg: ' -e '^ hutch-' -e '^ dependency' -e '^Errors' -e '^  Version' -e '^$' <<<"$output")" = $'one\none\nhutcher\n755\n775\ntwo\nhutch-a 2.0 ii \nhutch-b 1.0 ii \ngone' ] || differs "$output"
        untouched
        agree
}

@test "dpkg: what the host has installed can be upgraded and replaced" {
        debian
        local name
        name=$(dpkg-query -S /bin/gzip /usr/bin/gzip 2>/dev/null | head -n 1 | cut -d: -f1)
        [ "$name" = gzip ] || skip "needs the package gzip"
        mkdir -p gzip/usr/bin gzip/bin
        printf '#!/bin/sh\necho newer\n' | tee gzip/bin/gzip >gzip/bin/zcat
        chmod 755 gzip/bin/*
        ln gzip/bin/gzip gzip/bin/gunzip
        deb gzip 99 $'Essential: yes\n'
        in_box 'set -e; exec 2>&1; dpkg -i gzip_99.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
                gzip; zcat; gunzip; dpkg-query -W -f "\${Version}\n" gzip; [ ! -e /usr/share/doc/gzip/copyright ] && dpkg -V gzip'
        [ "$output" = $'newer\nnewer\nnewer\n99' ] || differs "$output"
        untouched
        agree
}

@test "apt-get: a local package with its dependency, from a script and from make; then removed" {
        debian
        command -v apt-get >/dev/null || skip "needs apt-get"
        mkdir -p hutch-c/usr/bin hutch-d
        printf '#!/bin/sh\necho c\n' >hutch-c/usr/bin/hutch-c
        chmod 755 hutch-c/usr/bin/hutch-c
        deb hutch-c 1
        deb hutch-d 1 $'Depends: hutch-c\n'
        printf 'all:\n\tsh ./install\n' >Makefile
        printf 'apt-get install -y ./hutch-d_1.deb ./hutch-c_1.deb\n' >install
        in_box 'set -e; exec 2>&1; if command -v make >/dev/null; then make; else sh install; fi >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
                hutch-c; apt list --installed "hutch-*" 2>/dev/null | sed -n "s,/.*,,p"; apt-mark showmanual | grep hutch-
                apt-get remove -y hutch-c >/tmp/log || { cat /tmp/log; exit 1; }; dpkg -l "hutch-*" 2>/dev/null | grep -c ^ii || true'
        [ "$output" = $'c\nhutch-c\nhutch-d\nhutch-c\nhutch-d\n0' ] || differs "$output"
        untouched
        agree
}

@test "pip: a wheel and one that depends on it, by every name that pip has; in each kind of box" {
        need python3 pip
        wheel hutch_one 1.0 ""
        wheel hutch_two 1.0 "hutch_one>=1"
        one() {
                local words
                eval "words=($1)"
                run hutch "${words[@]}" -c "set -e; $2 install --no-index --find-links . ./hutch_one-*.whl >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
                        sh -c '$2 install --no-index --find-links . hutch_two' >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
                        hutch_two; python3 -c 'import hutch_one; hutch_one.main()'; $2 list 2>/dev/null | grep -c '^hutch[-_]'; $2 check 2>/dev/null | grep hutch || true
                        $2 uninstall -y hutch_two >/dev/null 2>&1; hash -r; command -v hutch_two || echo gone"
                [ "$output" = $'hutch_two 1.0\nhutch_one 1.0\n2\ngone' ] || [[ $output == $'hutch_two 1.0\nhutch_one 1.0\n2\ngone\nhutch: '* ]] || differs "[$1 | $2] $output"
        }
        each ' | pip
--workspace cow | pip3
--as user | python3 -m pip
--cow / --as user | pip
--cow / | python3 -m pip' one
        untouched
        agree
}

@test "npm install -g: a tarball, in each kind of box" {
        need node npm
        mkdir package
        printf '{"name":"hutch-n","version":"1.0.0","bin":{"hutch-n":"n.js"}}' >package/package.json
        printf '#!/usr/bin/env node\nconsole.log("n")\n' >package/n.js
        tar -czf n.tgz package
        one() {
                local words
                eval "words=($1)"
                run hutch "${words[@]}" -c 'npm install -g --offline --no-audit --no-fund ./n.tgz >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; hutch-n; npm ls -g 2>/dev/null | grep -c hutch-n@1.0.0; npm uninstall -g hutch-n >/dev/null 2>&1; hash -r; command -v hutch-n || echo gone'
                [ "${lines[*]:0:3}" = "n 1 gone" ] || differs "[$1] $output"
        }
        each ' | 
--workspace cow --as user | 
--cow / --as user | ' one
        untouched
        agree
}

@test "without a network the option that allows it is named" {
        need python3 pip
        try='pip download --no-deps --no-cache-dir --disable-pip-version-check --retries 0 six'
        run hutch -c "$try"
        [ "$status" -ne 0 ] && [[ $output == *"hutch: warning: the command failed,"*"(try: --allow-host NAME, or --net open)" ]] || differs "$output"
        run hutch --json -c "$try"
        expect "the notice" "$(field "$output" '[.notices[] | select(.code == "network_missing") | .severity, .fix] | join(": ")')" "warning: --allow-host NAME, or --net open"
        run hutch --json -c 'pip --version && false'
        expect "one that does not try" "$(field "$output" '[.notices[] | select(.code == "network_missing")] | length')" 0
        run hutch -c 'false # about pipes'
        [[ $output != *"--net open"* ]] || differs "a hint about nothing: $output"
        run hutch --net open -c 'pip --version; false'
        [[ $output != *"--net open"* ]] || differs "a hint where there is a network: $output"
        agree
}

@test "pretending: root for those who ask, no rights for those who try" {
        debian
        in_box 'sudo id -u; sudo -u nobody -E X=1 sh -c "echo \$X"; id -u
                sudo chown root:root kept 2>/dev/null || sudo touch f && sudo chown root f && stat -c %U f
                sudo chmod 4755 f && stat -c %a f
                sudo mount -t tmpfs none /mnt 2>/dev/null; sudo cat /proc/1/environ 2>/dev/null; sudo sh -c ": >/proc/sys/kernel/core_pattern" 2>/dev/null; sudo mknod n c 1 3; [ ! -e n ] && echo none'
        [ "$(grep -v ^hutch: <<<"$output")" = $'0\n1\n1000\nuser\n644\nnone' ] || differs "$output"
        untouched
        agree
}

# The real registries, as the host knows them.
reaches() { # reaches WHAT COMMAND…: skips where even the host does not reach it
        local what=$1
        shift
        (cd "$T" && timeout 60 "$@" >/dev/null 2>&1) || skip "needs a network with $what"
        host >"$T/before"
}

@test "apt-get install of a small package from Debian" {
        debian
        reaches "Debian's archive" apt-get download hello
        run hutch --cow / --as user --net open -c 'apt-get update >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; apt-get install -y hello >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; hello; dpkg-query -W -f "\${db:Status-Abbrev}\n" hello; apt-get remove -y hello >/dev/null 2>&1; hash -r; command -v hello || echo gone'
        [ "${lines[*]:0:3}" = "Hello, world! ii  gone" ] || differs "$output"
        untouched
        agree
}

@test "pip install of a small package" {
        need python3 pip
        reaches "Python's index" python3 -m pip download --no-deps -d "$T/pip" six
        run hutch --workspace cow --net open -c 'pip install --ignore-installed six >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; python3 -c "import six; print(six.__file__)"'
        [ "$status" -eq 0 ] && [[ $output == "$HOME/.local/"* ]] || differs "$output"
        run hutch --cow / --as user --net open -c 'pip install --ignore-installed six >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; python3 -c "import six; print(six.__file__)"'
        [ "$status" -eq 0 ] && [[ $output == /usr/local/* ]] || differs "$output"
        untouched
        agree
}

@test "npm install -g of a small package" {
        need node npm
        reaches "npm's registry" npm view cowsay version
        run hutch --cow / --as user --net open -c 'npm install -g cowsay >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; cowsay hi | grep -c hi'
        [ "${lines[0]}" = 1 ] || differs "$output"
        untouched
        agree
}
