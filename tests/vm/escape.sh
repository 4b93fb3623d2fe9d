#!/bin/bash
# The attacks. This kernel is also the one without Landlock's newer parts.
#
# In short, those on what kernels differ in: ids, mounts, /proc, devices, keys; on the usual kind of box, and what an attack names for itself.
# The other kinds differ in what hutch does, not in what the kernel does, and each costs a minute here.
set -u
export HUTCH_ESCAPE_LIMIT=120
attacks=()
[ "${HUTCH_SHORT:-}" != 1 ] || export HUTCH_ESCAPE_VARIANTS=/
[ "${HUTCH_SHORT:-}" != 1 ] || attacks=(capabilities chroot device_nodes foreign_files groups hide_alias hide_move home inherited_fd keys kill_host mknod
        mount_propagation nested_userns open_by_handle pivot_root proc_environ proc_fd proc_global proc_mem proc_root proc_sys ptrace
        remount_rw ro_in_rw ro_link ro_submount ro_write self_exe session_socket setns setuid_file setuid_leave setuid_system shadow
        stdin_reopen survivor symlink_dest symlink_out umount_cover unix_socket)
for attack in "${attacks[@]}"; do # one that was renamed would be gone without a word
        compgen -G "$HUTCH_SRC/tests/escape/$attack.*" >/dev/null || { echo "not ok - there is no attack $attack"; exit 1; }
done
exec "$HUTCH_SRC/tests/escape/run" "${attacks[@]}"
