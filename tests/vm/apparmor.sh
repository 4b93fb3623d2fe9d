#!/bin/bash
# AppArmor refuses user namespaces to a user's programs: boxes run on landlock, doctor prints the remedy, and what `make install` puts in place gives
# the namespace backend back. Twice: the namespace itself is refused, or it is made and has no rights inside, as on Ubuntu 24.04.
#
# Ubuntu's sysctl for this is not in Debian's kernel; the two profiles below do the same to whatever is started under them. Its other one,
# which keeps an ordinary user from leaving a profile (26.04), is in both and switched on.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"
cd "$scratch" || exit 1
chmod 755 . "$scratch"
install -m 755 "$HUTCH_BUILD"/hutch{,-init,-warden,-relay,-archive,-scan} /usr/local/bin # programs look for each other beside themselves
install -d -o vmuser /srv/w

cat >profiles <<'PROFILES'
abi <abi/4.0>,
profile no-namespace {
  capability, network, unix, signal, ptrace, mount, umount, pivot_root, mqueue, io_uring, change_profile,
  /{,**} rwlk, /** m, /** pix,
}
profile no-rights {
  userns, network, unix, signal, ptrace, mount, umount, pivot_root, mqueue, io_uring, change_profile,
  /{,**} rwlk, /** m, /** pix,
}
PROFILES
check "the kernel's AppArmor is on" grep -q Y /sys/module/apparmor/parameters/enabled
check "the profiles are loaded" apparmor_parser -r -K -T profiles
check "nothing leaves a profile" sysctl -q -w kernel.apparmor_restrict_unprivileged_unconfined=1

user() { # user PROFILE TEXT [ARGUMENT…]: an ordinary user's shell under a profile
        local profile=$1
        shift
        setpriv --reuid vmuser --regid vmuser --clear-groups env -i HOME=/home/vmuser PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
                timeout 120 aa-exec -p "$profile" -- bash -c "cd /srv/w && $1" bash "${@:2}" </dev/null
}

remove_profile() {
        [ ! -e /etc/apparmor.d/hutch ] || apparmor_parser -R /etc/apparmor.d/hutch
        rm -f /etc/apparmor.d/hutch
}

for profile in no-namespace no-rights; do
        user $profile 'unshare -Urm true' 2>/dev/null
        same "$profile: a program gets no namespace of its own" 1 $?
        same "$profile: a box, on landlock" "0 landlock" "$(user $profile 'hutch --json true' 2>err | jq -r '"\(.exit_code) \(.backend)"')" "$(cat err)"
        user $profile 'hutch --isolation namespace true' 2>err
        same "$profile: the namespace backend is refused" "125 1" "$? $(grep -c "hutch doctor" err)" "$(cat err)"
        user $profile 'hutch doctor' >table 2>err
        check "$profile: doctor prints the profile" grep -q 'profile hutch "/usr/local/bin/hutch" flags=(unconfined)' table
        check "$profile: doctor prints what loads it" grep -q 'apparmor_parser -r /etc/apparmor.d/hutch' table

        # What doctor prints is what is done.
        sed -n '/^  cat >.etc.apparmor.d.hutch/,/^  apparmor_parser/p' table | sed 's/^  //' >remedy
        check "$profile: the remedy works" bash -e remedy
        user $profile 'unshare -Urm true' 2>/dev/null
        same "$profile: other programs still get no namespace" 1 $?
        same "$profile: a box, on namespace" "0 namespace" "$(user $profile 'hutch --json true' 2>err | jq -r '"\(.exit_code) \(.backend)"')" "$(cat err)"
        same "$profile: no namespace inside" 1 "$(user $profile 'hutch unshare -Urm true; echo $?' 2>err)" "$(cat err)"
        same "$profile: a session" 5 "$(user $profile 'hutch session start --workspace none s >/dev/null; hutch session run s -c "x=5"; hutch session run s -c "echo \$x"; hutch session stop s >/dev/null' 2>err)" "$(cat err)"
        user $profile 'hutch doctor' >table 2>err
        check "$profile: doctor agrees" grep -q '^namespace boxes work here' table
        remove_profile

        # So is what is installed.
        sed -e 's,@bindir@,/usr/local/bin,; s,@libexecdir@,/usr/local/bin,' -e 's,hutch/hutch-warden,hutch-warden,' "$HUTCH_SRC/data/apparmor-hutch.in" >installed
        check "$profile: make install puts the profile in place" sh "$HUTCH_SRC/tools/install-apparmor" installed
        same "$profile: a box, on namespace, with what is installed" "0 namespace" "$(user $profile 'hutch --json true' 2>err | jq -r '"\(.exit_code) \(.backend)"')" "$(cat err)"
        remove_profile
        same "$profile: without the profile it is landlock again" landlock "$(user $profile 'hutch --json true' 2>err | jq -r .backend)" "$(cat err)"
done
finish
