# The probes: each is a function that prints one word. They run in the box, all of a policy's in one; those of `after` run on the host when the
# box is gone, because only the host knows what really was changed. A probe works in a shell of its own and minds no other.
yes_no() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
holds() { [ "$(<"$1")" = "$2" ] && echo yes || echo no; } 2>/dev/null
append() { echo x 2>/dev/null >>"$1"; }
p_workspace_read() { holds in.txt workspace; }
p_workspace_write() { echo written 2>/dev/null >"new-$CASE"; echo later; }
after_workspace_write() { holds "$WS/new-$CASE" written; }
p_workspace_owner() { echo later; }
after_workspace_owner() { [ -e "$WS/new-$CASE" ] && { [ "$(stat -c %u:%g "$WS/new-$CASE")" = "$(stat -c %u:%g "$WS")" ] && echo caller || echo other; } || echo no-file; }
p_workspace_host_path() { holds "$WS/in.txt" workspace; }
p_locked_write() { append locked/file; append "$WS/locked/file"; append "/workspace/ws/locked/file"; echo later; }
after_locked_write() { [ "$(cat "$WS/locked/file")" = locked ] && echo no || echo yes; }
p_locked_read() { holds locked/file locked; }
p_locked_own() { yes_no append locked/own; }
p_secret_read() { for at in secret "$WS/secret" /workspace/ws/secret; do [ "$(cat $at/key 2>/dev/null)" = secret ] && { echo yes; return; }; done; echo no; }
p_rename_away() { mv "locked" "moved" 2>/dev/null && mv "moved" "locked" && echo yes || echo no; }
p_data_read() { holds "$DATA/file" data; }
p_data_at() { holds /srv/data/file data; }
p_data_write() { echo written 2>/dev/null >"$DATA/new-$CASE"; echo written 2>/dev/null >"/srv/data/new-$CASE"; echo later; }
after_data_write() { holds "$DATA/new-$CASE" written; }
p_tmpfs_write() { yes_no append /srv/empty/x; }
p_outside_read() { holds "$OUT/file" outside; }
p_outside_write() { mkdir -p "$OUT" 2>/dev/null; echo x 2>/dev/null >"$OUT/new-$CASE"; echo later; }
after_outside_write() { [ -e "$OUT/new-$CASE" ] && echo yes || echo no; }
p_link_out_read() { holds link-out/file outside; }
p_home_read() { [ -n "$(cat "$HOST_HOME/.ssh/id_rsa" 2>/dev/null)" ] && echo yes || echo no; }
p_home_empty() { [ -z "$(ls -A "$HOME" 2>/dev/null)" ] && echo yes || echo no; }
p_home_write() { yes_no append "$HOME/probe-$CASE"; }
p_host_home_write() { echo later; }
after_host_home_write() { [ -e "$HOST_HOME/probe-$CASE" ] && echo yes || echo no; }
p_tmp_write() { yes_no append "/tmp/probe-$MARK"; }
p_host_tmp() { [ -e "/tmp/$MARK" ] && echo yes || echo no; }
p_host_var_tmp() { [ -e "/var/tmp/$MARK" ] && echo yes || echo no; }
p_host_shm() { [ -e "/dev/shm/$MARK" ] && echo yes || echo no; }
p_shm_write() { yes_no append "/dev/shm/probe-$MARK"; }
p_usr_write() { yes_no touch "/usr/hutch-$MARK"; }
p_etc_write() { yes_no touch "/etc/hutch-$MARK"; }
p_root_write() { yes_no touch "/hutch-$MARK"; }
p_shadow_read() { yes_no cat /etc/shadow; }
p_sysctl_write() { [ -n "$(find /proc/sys -writable -print -quit 2>/dev/null)" ] && echo yes || echo no; }
p_core_pattern() { "$PROBE" open-for-writing /proc/sys/kernel/core_pattern; }
p_sysrq() { "$PROBE" open-for-writing /proc/sysrq-trigger; }
p_block_devices() { [ -n "$(find /dev -type b 2>/dev/null)" ] && echo yes || echo no; }
p_mknod() { "$PROBE" mknod "/tmp/node-$MARK"; }
p_pids() { [ "$(ls -d /proc/[0-9]* | wc -l)" -le 8 ] && echo few || echo many; }
p_host_signal() { "$PROBE" signal "$HOST_PID"; }
p_host_environ() { yes_no grep -q . "/proc/$HOST_PID/environ"; }
p_left_behind() { setsid sleep "$LEFT" >/dev/null 2>&1 & [ "$CASE" != control ] || echo $! >"$OUT/left"; sleep 0.02; echo later; }
after_left_behind() { ps -eo args= | grep -q "^sleep $LEFT" && echo yes || echo no; }
p_host_shm_segment() { "$PROBE" shm "$SHM"; }
p_host_abstract() { "$PROBE" abstract "$ABSTRACT"; }
p_host_tcp() { "$PROBE" tcp "$TCP"; }
p_own_loopback() { "$PROBE" own-loopback; }
p_route() { "$PROBE" route 192.0.2.1; }
p_packet_socket() { "$PROBE" packet; }
p_user_namespace() { "$PROBE" userns; }
p_mount() { "$PROBE" mount; }
p_add_key() { "$PROBE" add-key; }
p_trace_child() { "$PROBE" trace; }
p_capabilities() { grep -qE '^Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status && echo some || echo none; }
p_no_new_privs() { grep -q '^NoNewPrivs:.1' /proc/self/status && echo yes || echo no; }
p_filter() { grep -q '^Seccomp:.2' /proc/self/status && echo yes || echo no; }
p_uid() { id -u; }
p_user() { echo "$USER"; }
p_id_name() { [ "$(id -un)" = "$USER" ] && echo same || echo other; }
p_host_name() { uname -n; }
p_home() { echo "$HOME"; }
p_cwd() { pwd -P; }
p_env_token() { [ "${TOKEN-}" = token ] && echo yes || echo no; }
p_env_other() { [ -n "${OTHER_SECRET-}" ] && echo yes || echo no; }
p_env_loader() { [ -n "${LD_LIBRARY_PATH-}${PYTHONPATH-}" ] && echo yes || echo no; }
p_env_set() { [ "${SET-}" = 1 ] && echo yes || echo no; }
p_env_names() { compgen -e | grep -vxE 'PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|XDG_RUNTIME_DIR|TERM|COLORTERM|NO_COLOR|LANG|LC_.*|TZ|PIP_BREAK_SYSTEM_PACKAGES|NPM_CONFIG_PREFIX|NPM_CONFIG_GLOBALCONFIG|PWD|SHLVL|_|OLDPWD|TOKEN|SET|CASE|LEFT' || echo safe; }
